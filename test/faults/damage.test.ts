/**
 * Tests that every fault at a start causes one error line without a stack trace and a non-zero exit code, and changes
 * no file.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { EXIT_INVALID_SETTINGS } from '../../src/cli/failure.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { createEngine } from '../../src/store/sqlite/thread.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createMessage, NO_LIMITS } from '../rig/messages.ts';
import { runCommand, startProcess, submit } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const ONE_LINE = /^postrider: [^\n]+\n$/;

/** Expects `serve` in `folder` to exit with `expectedCode` and one line that matches `expectedLine`. */
async function expectServeToFail(
  folder: string,
  settings: Record<string, string>,
  expectedLine: RegExp,
  expectedCode: number = 1,
): Promise<string> {
  const { code, stdout, stderr } = await runCommand(folder, ['serve'], settings);
  expect(stderr).toMatch(ONE_LINE);
  expect(stderr).toMatch(expectedLine);
  expect(stderr).not.toMatch(/ at .*:\d+:\d+|node:internal/);
  expect([code, stdout]).toEqual([expectedCode, '']);
  return stderr;
}

function prepareDatabasePath(folder: string): string {
  const path = join(folder, 'data/postrider.db');
  mkdirSync(dirname(path), { recursive: true });
  return path;
}

describe('the database file', () => {
  let filledDatabasePath = '';
  beforeAll(() => {
    filledDatabasePath = prepareDatabasePath(rig.createFolder());
    const database = openDatabase(filledDatabasePath);
    const { operations, run } = createEngine(database);
    operations.createAccount('default', NO_LIMITS, 1);
    const batch = Array.from({ length: 200 }, () => createMessage({ message: 'x'.repeat(500) }));
    run([{ number: 1, name: 'accept', args: [batch] }]);
    database.close();
  });

  test('that contains no database is named in the error and not changed', async () => {
    const folder = createTemporaryFolder();
    const garbage = Buffer.alloc(20_000, 'garbage ');
    writeFileSync(prepareDatabasePath(folder), garbage);
    await expectServeToFail(folder, {}, /postrider\.db is damaged .*left unchanged/);
    const commandResult = await runCommand(folder, ['account', 'list']);
    expect([commandResult.code, commandResult.stdout]).toEqual([1, '']);
    expect(commandResult.stderr).toMatch(ONE_LINE);
    expect(readFileSync(prepareDatabasePath(folder)).equals(garbage)).toBe(true);
  });

  test.each([100, 8_192, 24_576, 0.5, 0.98])(
    'truncated at %d (bytes, or a fraction of its length) is refused with one line, or can be used',
    async (cutPosition) => {
      const folder = createTemporaryFolder();
      const path = prepareDatabasePath(folder);
      copyFileSync(filledDatabasePath, path);
      const fullLength = readFileSync(path).length;
      truncateSync(path, cutPosition > 1 ? cutPosition : Math.floor((fullLength * cutPosition) / 8_192) * 8_192);
      const bytesBefore = readFileSync(path);
      const startResult = await startProcess(folder).then(
        (service) => ({ service }),
        (error: Error) => ({ error: error.message }),
      );
      if ('error' in startResult) {
        expect(startResult.error).toMatch(/^serve exited with status 1: postrider: [^\n]*(damaged|malformed)[^\n]+\n$/);
        expect(readFileSync(path).equals(bytesBefore)).toBe(true);
      } else {
        const answer = await submit(startResult.service.publicUrl, 'pr_x');
        expect([401, 500]).toContain(answer.status);
        startResult.service.kill('SIGTERM');
        expect(await startResult.service.exitPromise).toBe(0);
        expect(startResult.service.stderr()).not.toMatch(/\n\s+at /);
      }
    },
  );

  test('of another program is refused and not changed', async () => {
    const folder = createTemporaryFolder();
    const otherDatabase = new DatabaseSync(prepareDatabasePath(folder));
    otherDatabase.exec('CREATE TABLE diary (day TEXT)');
    otherDatabase.close();
    const bytesBefore = readFileSync(prepareDatabasePath(folder));
    await expectServeToFail(folder, {}, /is not a Postrider database.*POSTRIDER_DATABASE/);
    expect(readFileSync(prepareDatabasePath(folder)).equals(bytesBefore)).toBe(true);
  });

  test('of a later version is refused and not changed', async () => {
    const folder = createTemporaryFolder();
    copyFileSync(filledDatabasePath, prepareDatabasePath(folder));
    const laterDatabase = new DatabaseSync(prepareDatabasePath(folder));
    laterDatabase.exec('PRAGMA user_version = 99');
    laterDatabase.close();
    const bytesBefore = readFileSync(prepareDatabasePath(folder));
    await expectServeToFail(folder, {}, /schema version 99, but this version of Postrider supports at most/);
    expect(readFileSync(prepareDatabasePath(folder)).equals(bytesBefore)).toBe(true);
  });

  test('in a folder that cannot be created is named in the error, with the remedy', async () => {
    const folder = createTemporaryFolder();
    writeFileSync(join(folder, 'file'), '');
    await expectServeToFail(
      folder,
      { POSTRIDER_DATABASE: 'sqlite:file/below/postrider.db' },
      /cannot create .*POSTRIDER_DATABASE/,
    );
    await expectServeToFail(folder, { POSTRIDER_DATABASE: 'sqlite:.' }, /postrider: .*(cannot|directory|folder)/);
  });

  test('is used by one service: a second service exits, and the first service continues', async () => {
    const folder = createTemporaryFolder();
    const firstService = await startProcess(folder);
    await expectServeToFail(folder, {}, /another service, a restore or a transfer uses .*postrider\.db/);
    expect((await submit(firstService.publicUrl, firstService.key ?? '')).status).toBe(201);
    firstService.kill('SIGKILL');
    await firstService.exitPromise;
    const nextService = await startProcess(folder);
    expect((await submit(nextService.publicUrl, firstService.key ?? '')).status).toBe(201);
  });
});

test('the error names a listener whose port is in use, and the next start opens the store and creates the first key', async () => {
  const portHolder = createServer();
  await new Promise<void>((resolve) => portHolder.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => portHolder.close(() => resolve())));
  const address = portHolder.address();
  const usedAddress = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  const folder = createTemporaryFolder();
  await expectServeToFail(folder, { POSTRIDER_LISTEN: usedAddress }, new RegExp(`POSTRIDER_LISTEN.*${usedAddress}`));
  await expectServeToFail(
    folder,
    { POSTRIDER_OPERATOR_LISTEN: usedAddress },
    new RegExp(`POSTRIDER_OPERATOR_LISTEN.*${usedAddress}`),
  );
  const service = await startProcess(folder);
  expect((await submit(service.publicUrl, service.key ?? '')).status).toBe(201);
});

/** The exit code is 1 if the fault is found after the settings were read, and otherwise `EXIT_INVALID_SETTINGS`. */
const BAD_SETTINGS: readonly (readonly [settings: Record<string, string>, expectedLine: RegExp, code: 1 | 78])[] = [
  [{ POSTRIDER_TRANSPROT: 'capture:' }, /POSTRIDER_TRANSPROT .*POSTRIDER_TRANSPORT/, 78],
  [{ POSTRIDER_TRANSPORT: 'stmp://relay.example' }, /POSTRIDER_TRANSPORT: .*smtp/, 78],
  [{ POSTRIDER_TRANSPORT: 'smtp:/relay.example' }, /POSTRIDER_TRANSPORT: .*\/\//, 78],
  [{ POSTRIDER_TRANSPORT: 'smtp://relay.example:99999' }, /POSTRIDER_TRANSPORT: .*port/i, 78],
  [{ POSTRIDER_TRANSPORT: 'smtp://relay.example?tsl=required' }, /POSTRIDER_TRANSPORT: .*tls/, 78],
  [{ POSTRIDER_TRANSPORT: 'ses://' }, /POSTRIDER_TRANSPORT: .*names no region/, 78],
  [{ POSTRIDER_TRANSPORT: 'mx:' }, /POSTRIDER_TRANSPORT: .*not supported/, 78],
  [{ POSTRIDER_DATABASE: 'postgres://u:hidden@localhost' }, /POSTRIDER_DATABASE: (?!.*hidden).*names no database/, 78],
  [{ POSTRIDER_DATABASE: 'postgres://u@127.0.0.1:1/x' }, /postrider: .*127\.0\.0\.1:1.*the connection was refused/, 1],
  [{ POSTRIDER_DATABASE: './postrider.db' }, /POSTRIDER_DATABASE: .*sqlite:/, 78],
  [{ POSTRIDER_LISTEN: 'localhost' }, /POSTRIDER_LISTEN: /, 78],
  [{ POSTRIDER_OPERATOR_LISTEN: '0.0.0.0:0' }, /POSTRIDER_OPERATOR_PASSWORD/, 78],
  [{ POSTRIDER_OPERATOR_PASSWORD: 'short' }, /POSTRIDER_OPERATOR_PASSWORD: /, 78],
  [{ POSTRIDER_TLS_CERT: 'missing.pem', POSTRIDER_TLS_KEY: 'missing.pem' }, /POSTRIDER_TLS_CERT: .*missing\.pem/, 78],
  [{ POSTRIDER_TLS_CERT: import.meta.filename }, /POSTRIDER_TLS_KEY/, 78],
  [
    { POSTRIDER_TLS_CERT: import.meta.filename, POSTRIDER_TLS_KEY: import.meta.filename },
    /POSTRIDER_TLS_CERT .*PEM/,
    1,
  ],
  [{ POSTRIDER_MAX_AGE: '24' }, /POSTRIDER_MAX_AGE: /, 78],
  [{ POSTRIDER_MAX_REQUEST: '1 lot' }, /POSTRIDER_MAX_REQUEST: /, 78],
  [{ POSTRIDER_ROLES: 'api,delivery' }, /POSTRIDER_ROLES: .*deliver/, 78],
  [{ POSTRIDER_SENDERS: '' }, /POSTRIDER_SENDERS is empty/, 78],
  [{ POSTRIDER_FEEDBACK_LISTEN: ':25' }, /POSTRIDER_FEEDBACK_LISTEN .*set POSTRIDER_RETURN_PATH_DOMAIN/, 78],
];

test.each(BAD_SETTINGS)(
  'a start with the setting %j ends with one line and creates no database',
  async (settings, expectedLine, code) => {
    const folder = createTemporaryFolder();
    await expectServeToFail(folder, settings, expectedLine, code);
    const stopsBeforeStore = !('POSTRIDER_TLS_CERT' in settings);
    if (stopsBeforeStore) expect(existsSync(join(folder, 'data'))).toBe(false);
  },
);

test.each([
  ['POSTRIDER_LISTEN\n', /\.env line 1/],
  ['# fine\n\nPOSTRIDER_LOG="info\n', /\.env line 3: .*"/],
  ['POSTRIDER_LGO=info\n', /POSTRIDER_LGO in \.env .*POSTRIDER_LOG/],
])('the error about the malformed .env file %j names the line or the setting', async (text, expectedLine) => {
  const folder = createTemporaryFolder();
  writeFileSync(join(folder, '.env'), text);
  await expectServeToFail(folder, {}, expectedLine, EXIT_INVALID_SETTINGS);
});
