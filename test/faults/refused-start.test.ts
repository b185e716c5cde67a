/**
 * Tests that a start that cannot succeed ends with one line that names the remedy, and leaves no lock, lease, node,
 * socket or temporary file. test/unit/config/wrong-settings.test.ts tests every wrong setting,
 * test/unit/store/postgres-base-faults.test.ts every fault of a connection, and test/unit/store/migrate.test.ts the
 * databases of other programs and versions.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EXIT_INVALID_SETTINGS } from '../../src/cli/context.ts';
import { systemClock } from '../../src/clock.ts';
import { openStore } from '../../src/store/open.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { listenOnFreePort } from '../rig/free-port.ts';
import { createMessage } from '../rig/messages.ts';
import { startPoolerProxy } from '../rig/pooler-proxy.ts';
import { createTemporaryDatabase, runStatement } from '../rig/postgres.ts';
import { createAuthority } from '../rig/postgres-tls.ts';
import { selectCaseCount } from '../rig/sample.ts';
import {
  FailedStart,
  runCommand,
  runCommandProcess,
  runJsonCommand,
  startProcess,
  submitUnderLoad,
} from '../rig/service.ts';
import { parsePostgresUrl } from '../rig/stores.ts';
import { startTransactionPooler } from '../rig/transaction-pooler.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const ONE_LINE = /^postrider: [^\n]+\n$/;
const DATABASE_PATH = 'data/postrider.db';

function listFiles(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true }).map(String).sort();
}

async function createDatabase(folder: string): Promise<string> {
  const path = join(folder, DATABASE_PATH);
  mkdirSync(join(folder, 'data'), { mode: 0o700 });
  const store = await openStore({ kind: 'sqlite', path }, { exclusive: true, runsInCallerThread: true });
  await store.createFirstAccount('default', null, 1);
  await store.accept(Array.from({ length: 200 }, () => createMessage({ message: 'x'.repeat(500) })));
  await store.close();
  return path;
}

async function listRemainingNodes(folder: string): Promise<readonly unknown[]> {
  const store = await openStore(
    { kind: 'sqlite', path: join(folder, DATABASE_PATH) },
    { exclusive: false, runsInCallerThread: true },
  );
  const nodes = await store.listNodes(Date.now());
  await store.close();
  return nodes;
}

describe('the process ends with one line', () => {
  test.each<readonly [settings: Record<string, string>, dotEnv: string, line: RegExp, code: number]>([
    [{}, '# a\n\nPOSTRIDER_TRANSPROT=capture:\n', /POSTRIDER_TRANSPROT .*POSTRIDER_TRANSPORT/, EXIT_INVALID_SETTINGS],
    [{ POSTRIDER_DATABASE: 'postgres://u:hidden@127.0.0.1:1/x' }, '', /:1.*the connection was refused/, 1],
  ])('with the settings %j and the .env file %j, and creates no file', async (settings, dotEnv, line, expectedCode) => {
    const folder = createTemporaryFolder();
    if (dotEnv !== '') writeFileSync(join(folder, '.env'), dotEnv);
    const filesBefore = listFiles(folder);
    const { code, stdout, stderr } = await runCommandProcess(folder, ['serve'], settings);
    expect([code, stdout]).toEqual([expectedCode, '']);
    for (const pattern of [ONE_LINE, line]) expect(stderr).toMatch(pattern);
    expect(stderr).not.toMatch(/hidden| at .*:\d+:\d+|node:internal/);
    expect(listFiles(folder)).toEqual(filesBefore);
  });

  test('if the file is not a database, which stays unchanged, as with a command', async () => {
    const folder = createTemporaryFolder();
    mkdirSync(join(folder, 'data'));
    const content = Buffer.alloc(20_000, 'garbage ');
    writeFileSync(join(folder, DATABASE_PATH), content);
    for (const run of [() => runCommandProcess(folder, ['serve']), () => runCommand(folder, ['account', 'list'])]) {
      const { code, stdout, stderr } = await run();
      expect([code, stdout]).toEqual([1, '']);
      for (const pattern of [ONE_LINE, /postrider\.db is damaged .*left unchanged/]) expect(stderr).toMatch(pattern);
    }
    expect(readFileSync(join(folder, DATABASE_PATH)).equals(content)).toBe(true);
    expect(listFiles(folder)).toEqual(['data', DATABASE_PATH]);
  });

  test('if another service uses the database; the first service continues, and after a kill the next service replaces its socket', async () => {
    const folder = createTemporaryFolder();
    const socketPath = join(folder, 'api.sock');
    const settings = {
      POSTRIDER_OPERATOR_LISTEN: `unix:${socketPath}`,
      POSTRIDER_OPERATOR_PASSWORD: 'correct-horse-battery',
    };
    const firstService = await startProcess(folder, settings);
    const { code, stderr } = await runCommandProcess(folder, ['serve']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^postrider: another service, a restore or a transfer uses [^\n]*postrider\.db[^\n]*\n$/),
    ]);
    expect((await submitUnderLoad(firstService.publicUrl, firstService.key ?? '')).status).toBe(201);
    firstService.kill('SIGKILL');
    await firstService.exitPromise;
    expect(existsSync(socketPath)).toBe(true);
    const nextService = await rig.serve(folder, settings);
    await nextService.stop();
    expect(existsSync(socketPath)).toBe(false);
  });
});

/** Returns a command that runs without the capabilities with which root ignores file modes. */
function dropFileCapabilities(command: string): string {
  return process.getuid?.() === 0
    ? `exec setpriv --bounding-set=-dac_override,-dac_read_search -- ${command.replace(/^exec /, '')}`
    : command;
}

const READ_ONLY_CASES = [
  ['the database file', DATABASE_PATH, 0o400, 'Check its owner and permissions'],
  ['the data folder', 'data', 0o500, 'Check '],
  ['the working folder', '', 0o500, 'Set POSTRIDER_DATABASE to'],
] as const;

describe.each(READ_ONLY_CASES.slice(0, selectCaseCount(1, READ_ONLY_CASES.length)))(
  'if %s is read-only',
  (_name, path, mode, errorText) => {
    test('the start ends with one line and changes no file', async () => {
      const folder = createTemporaryFolder();
      if (path !== '') await createDatabase(folder);
      const filesBefore = listFiles(folder);
      chmodSync(join(folder, path), mode);
      const failure: unknown = await startProcess(folder, {}, { wrapCommand: dropFileCapabilities }).catch(
        (error: unknown) => error,
      );
      chmodSync(join(folder, path), 0o700);
      expect(failure).toBeInstanceOf(FailedStart);
      expect(failure).toMatchObject({ code: 1, stderr: expect.stringMatching(ONE_LINE) });
      expect(failure).toMatchObject({ stderr: expect.stringContaining(errorText) });
      expect(listFiles(folder)).toEqual(filesBefore);
    });
  },
);

test('a start on a full disk keeps the store, adds no node, and the next start succeeds', async () => {
  const folder = createTemporaryFolder();
  await createDatabase(folder);
  /** Returns a command whose writes to files fail, as on a full disk. Writes to pipes succeed. */
  const failFileWrites = (command: string) => `trap '' XFSZ; ulimit -f 0; ${command}`;
  await expect(startProcess(folder, {}, { wrapCommand: failFileWrites })).rejects.toMatchObject({
    ...{ code: 1, stderr: expect.stringMatching(/^postrider: [^\n]*disk[^\n]*\n$/) },
  });
  expect(await listRemainingNodes(folder)).toEqual([]);
  await rig.serve(folder);
  expect(await runJsonCommand(folder, ['account', 'list'])).toMatchObject([{ name: 'default' }]);
});

describe('the start is refused before the store opens', () => {
  test('with a key of another certificate', async () => {
    const [own, other] = await Promise.all([createAuthority('own'), createAuthority('other')]);
    const folder = createTemporaryFolder();
    const [certPath, keyPath] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    writeFileSync(certPath, own.cert);
    writeFileSync(keyPath, other.private);
    const settings = { POSTRIDER_TLS_CERT: certPath, POSTRIDER_TLS_KEY: keyPath };
    await expect(rig.serve(folder, settings)).rejects.toThrow('POSTRIDER_TLS_KEY');
    expect(listFiles(folder)).toEqual(['cert.pem', 'key.pem']);
  });

  test('with a clock before 2026', async () => {
    const folder = createTemporaryFolder();
    const clock = { ...systemClock, now: () => Date.UTC(2025, 11, 31, 23, 59, 59) };
    await expect(rig.serve(folder, {}, { clock })).rejects.toThrow('2025-12-31T23:59:59.000Z');
    expect(listFiles(folder)).toEqual([]);
  });
});

describe('a PostgreSQL server is refused', () => {
  const readError = (url: string, port: number) => {
    const changedUrl = new URL(url);
    changedUrl.port = String(port);
    return openStore(parsePostgresUrl(changedUrl.href), { exclusive: true }).then(
      () => 'the store is open',
      (error: unknown) => String(error),
    );
  };

  test('behind a pooler in transaction mode that was not declared', async () => {
    const url = await createTemporaryDatabase();
    const pooler = await startTransactionPooler(Number(new URL(url).port), { unsupportedRequest: 'forward' });
    // If the pooler gives the server connection to another client connection between two statements of the start, the
    // service finds a setting of the other connection first.
    expect(await readError(url, pooler.port)).toMatch(
      /(?:Add|used, add) pooler=transaction to POSTRIDER_DATABASE[^\n]*$/,
    );
  });

  test('if its transactions stay read-only', async () => {
    const url = await createTemporaryDatabase();
    const database = new URL(url).pathname.slice(1);
    await runStatement(url, `ALTER DATABASE ${database} SET default_transaction_read_only = on`);
    const proxy = await startPoolerProxy(Number(new URL(url).port), { options: 'drop', ignoresSet: true });
    expect(await readError(url, proxy.port)).toMatch(
      /the server makes every transaction read-only, although it is not a replica\. Set default_transaction_read_only=off/,
    );
  });
});

test('a database that is truncated at any length is refused with the remedy and not changed, or can be used', async () => {
  const content = readFileSync(await createDatabase(createTemporaryFolder()));
  const sizes = [
    ...[50, 100, 5_000, 8_192, 24_576],
    ...[0.5, 0.98].map((part) => Math.floor((content.length * part) / 8_192) * 8_192),
  ];
  const results: string[] = [];
  for (const size of sizes) {
    const path = join(createTemporaryFolder(), 'postrider.db');
    writeFileSync(path, content);
    truncateSync(path, size);
    const openResult = await openStore({ kind: 'sqlite', path }, { exclusive: true }).then(
      (store) => store.close().then(() => 'usable'),
      (error: Error) => error.message,
    );
    results.push(openResult);
    if (openResult === 'usable') continue;
    expect(openResult).toMatch(/^[^\n]*(damaged|malformed)[^\n]*Restore a backup[^\n]*$/);
    expect(readFileSync(path).equals(content.subarray(0, size))).toBe(true);
  }
  expect(results.slice(0, 4)).not.toContain('usable');
});

describe('a start with a listener whose address is in use', () => {
  const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:ses-feedback';

  async function startListening(): Promise<number> {
    const server = createServer();
    onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
    return listenOnFreePort(server);
  }

  const LISTENERS = ['LISTEN', 'OPERATOR_LISTEN', 'FEEDBACK_LISTEN', 'FEEDBACK_HTTP_LISTEN'];
  test.each(LISTENERS.map((name) => `POSTRIDER_${name}`))(
    'closes the other listeners, creates no account and leaves no node (%s)',
    async (setting) => {
      const folder = createTemporaryFolder();
      const port = await startListening();
      const settings = {
        ...{ POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org', POSTRIDER_SES_TOPICS: TOPIC },
        POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
        POSTRIDER_FEEDBACK_HTTP_LISTEN: `unix:${folder}/events.sock`,
        POSTRIDER_LISTEN: `unix:${folder}/api.sock`,
        [setting]: `127.0.0.1:${port}`,
      };
      await expect(rig.serve(folder, settings)).rejects.toThrow(
        new RegExp(`^[^\n]*${setting} 127\\.0\\.0\\.1:${port}[^\n]*the port is in use[^\n]*$`),
      );
      expect(readdirSync(folder)).toEqual(['data']);
      expect(await listRemainingNodes(folder)).toEqual([]);
      expect(await runJsonCommand(folder, ['account', 'list'])).toEqual([]);
    },
  );

  test('leaves no node in a PostgreSQL database', async () => {
    const url = await createTemporaryDatabase({ content: 'empty-store' });
    const port = await startListening();
    const settings = {
      POSTRIDER_DATABASE: url,
      POSTRIDER_SECRET: '1'.repeat(64),
      POSTRIDER_LISTEN: `127.0.0.1:${port}`,
    };
    await expect(rig.serve(createTemporaryFolder(), settings)).rejects.toThrow('the port is in use');
    await runStatement(
      url,
      'DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM node) AND NOT EXISTS (SELECT FROM account); END $$',
    );
  });
});
