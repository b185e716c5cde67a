/**
 * Tests that a start that cannot succeed ends the process with one line and a non-zero exit code. The start leaves no
 * lock, lease, node, socket or temporary file.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EXIT_INVALID_SETTINGS } from '../../src/cli/failure.ts';
import { SETTINGS_TABLE } from '../../src/config/table.ts';
import { openStore } from '../../src/store/open.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createTemporaryDatabase, runStatement } from '../rig/postgres.ts';
import { createAuthority } from '../rig/postgres-tls.ts';
import { FailedStart, runCommand, runJsonCommand, startProcess, submit } from '../rig/service.ts';
import { getWrongValues, SECRET_WORD, type SettingKey } from '../rig/wrong-settings.ts';

const ONE_LINE = /^postrider: [^\n]+\n$/;
const DATABASE_PATH = 'data/postrider.db';

/**
 * Runs `serve`, which must end with exit code `code` and one line that contains `errorText`. `wrapCommand` adds a shell
 * prefix to the command.
 */
async function expectRefusedStart(
  folder: string,
  settings: Record<string, string>,
  errorText: string,
  wrapCommand?: (command: string) => string,
  code: number = 1,
): Promise<FailedStart> {
  const failure: unknown = await startProcess(folder, settings, wrapCommand).then(
    () => new Error(`the service started with ${JSON.stringify(settings)}`),
    (error: unknown) => error,
  );
  if (!(failure instanceof FailedStart)) throw failure;
  expect(failure.stderr).toMatch(ONE_LINE);
  expect(failure).toMatchObject({ code, stderr: expect.stringContaining(errorText) });
  return failure;
}

/** Returns the sorted paths of all files and folders below the folder. */
function listFiles(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true }).map(String).sort();
}

async function createDatabase(folder: string): Promise<string> {
  const path = join(folder, DATABASE_PATH);
  mkdirSync(join(folder, 'data'), { mode: 0o700 });
  await (await openStore({ kind: 'sqlite', path }, { exclusive: true })).close();
  return path;
}

/** Returns the nodes that the store contains after a failed start. */
async function listRemainingNodes(database: Parameters<typeof openStore>[0]): Promise<readonly unknown[]> {
  const store = await openStore(database, { exclusive: false });
  try {
    return await store.listNodes(Date.now());
  } finally {
    await store.close();
  }
}

test('a wrong value of any setting ends the process with one line and exit code 78, and creates no file', async () => {
  const folder = createTemporaryFolder();
  for (const key of Object.keys(SETTINGS_TABLE) as SettingKey[]) {
    const { name, example } = SETTINGS_TABLE[key];
    // The first value that is not blank is the example value followed by a line break. No setting accepts a line break.
    const wrongValue = getWrongValues(key, example).find(({ value }) => /^[^\p{Cc}]+$/u.test(value.trim()));
    const settings = { [name]: wrongValue?.value ?? '' };
    const { stdout, stderr } = await expectRefusedStart(folder, settings, name, undefined, EXIT_INVALID_SETTINGS);
    expect(stdout).toBe('');
    expect(stderr).not.toContain(SECRET_WORD);
  }
  expect(listFiles(folder)).toEqual([]);
});

describe('the start ends before the store opens', () => {
  test.each([
    ['an empty certificate', { cert: '', key: 'own' }, 'POSTRIDER_TLS_CERT'],
    ['a certificate that is not PEM', { cert: 'x', key: 'own' }, 'POSTRIDER_TLS_CERT'],
    ['a key that is not PEM', { cert: 'own', key: 'x' }, 'POSTRIDER_TLS_KEY'],
    ['a key of another certificate', { cert: 'own', key: 'other' }, 'POSTRIDER_TLS_KEY'],
  ])('if it reads %s', async (_label, content, setting) => {
    const [own, other] = await Promise.all([createAuthority('own'), createAuthority('other')]);
    const folder = createTemporaryFolder();
    const keys: Readonly<Record<string, string>> = { own: own.private, other: other.private };
    writeFileSync(join(folder, 'cert.pem'), content.cert === 'own' ? own.cert : content.cert);
    writeFileSync(join(folder, 'key.pem'), keys[content.key] ?? content.key);
    await expectRefusedStart(folder, { POSTRIDER_TLS_CERT: 'cert.pem', POSTRIDER_TLS_KEY: 'key.pem' }, setting);
    expect(listFiles(folder)).toEqual(['cert.pem', 'key.pem']);
  });
});

/** Returns a command that runs without the capabilities with which root ignores file modes. */
function dropFileCapabilities(command: string): string {
  return process.getuid?.() === 0
    ? `exec setpriv --bounding-set=-dac_override,-dac_read_search -- ${command.replace(/^exec /, '')}`
    : command;
}

describe('the start creates no file', () => {
  test('if the working folder is read-only', async () => {
    const folder = createTemporaryFolder();
    chmodSync(folder, 0o500);
    await expectRefusedStart(folder, {}, 'Set POSTRIDER_DATABASE to', dropFileCapabilities);
    chmodSync(folder, 0o700);
    expect(listFiles(folder)).toEqual([]);
  });

  test('if the data folder is read-only', async () => {
    const folder = createTemporaryFolder();
    mkdirSync(join(folder, 'data'), { mode: 0o500 });
    await expectRefusedStart(folder, {}, 'Set POSTRIDER_DATABASE to', dropFileCapabilities);
    expect(listFiles(folder)).toEqual(['data']);
  });

  test('if the database file is read-only', async () => {
    const folder = createTemporaryFolder();
    const path = await createDatabase(folder);
    const filesBefore = listFiles(folder);
    chmodSync(path, 0o400);
    await expectRefusedStart(folder, {}, 'Check its owner and permissions', dropFileCapabilities);
    expect(listFiles(folder)).toEqual(filesBefore);
  });

  test('if the folder of an existing database is read-only', async () => {
    const folder = createTemporaryFolder();
    await createDatabase(folder);
    const filesBefore = listFiles(folder);
    chmodSync(join(folder, 'data'), 0o500);
    await expectRefusedStart(folder, {}, 'Check ', dropFileCapabilities);
    chmodSync(join(folder, 'data'), 0o700);
    expect(listFiles(folder)).toEqual(filesBefore);
  });

  test('if the data folder is a file', async () => {
    const folder = createTemporaryFolder();
    writeFileSync(join(folder, 'data'), 'x');
    await expectRefusedStart(folder, {}, 'Set POSTRIDER_DATABASE to');
    expect(listFiles(folder)).toEqual(['data']);
  });
});

describe('a start on a full disk', () => {
  /** Returns a command whose writes to files fail, as on a full disk. Writes to pipes succeed. */
  const failFileWrites = (command: string) => `trap '' XFSZ; ulimit -f 0; ${command}`;

  test('does not prevent the next start, which has free space and creates the store', async () => {
    const folder = createTemporaryFolder();
    await expectRefusedStart(folder, {}, 'disk', failFileWrites);
    const service = await startProcess(folder);
    expect((await submit(service.publicUrl, service.key ?? '')).status).toBe(201);
  });

  test('keeps the content of an existing store and adds no node', async () => {
    const folder = createTemporaryFolder();
    const path = await createDatabase(folder);
    await runJsonCommand(folder, ['account', 'create', 'shop']);
    await expectRefusedStart(folder, {}, 'disk', failFileWrites);
    expect(await listRemainingNodes({ kind: 'sqlite', path })).toEqual([]);
    expect(await runJsonCommand(folder, ['account', 'list'])).toMatchObject([{ name: 'shop' }]);
  });
});

describe('a refused start does not change', () => {
  test('an embedded database of a newer version', async () => {
    const folder = createTemporaryFolder();
    const path = await createDatabase(folder);
    const database = new DatabaseSync(path);
    database.exec('PRAGMA user_version = 999');
    database.close();
    const bytesBefore = readFileSync(path);
    await expectRefusedStart(folder, {}, 'Run the version that wrote the schema, or a later version');
    expect(readFileSync(path).equals(bytesBefore)).toBe(true);
  });

  test('a PostgreSQL database of a newer version', async () => {
    const url = await createTemporaryDatabase();
    const folder = createTemporaryFolder();
    expect((await runCommand(folder, ['account', 'list'], { POSTRIDER_DATABASE: url })).code).toBe(0);
    await runStatement(url, 'UPDATE postrider SET version = 999, least = 999');
    await expectRefusedStart(
      folder,
      { POSTRIDER_DATABASE: url },
      'Run the version that wrote the schema, or a later version',
    );
    expect(listFiles(folder)).toEqual([]);
  });

  test('a SQLite database of another application', async () => {
    const folder = createTemporaryFolder();
    mkdirSync(join(folder, 'data'));
    const database = new DatabaseSync(join(folder, DATABASE_PATH));
    database.exec('CREATE TABLE bookmark (url TEXT)');
    database.close();
    const bytesBefore = readFileSync(join(folder, DATABASE_PATH));
    await expectRefusedStart(folder, {}, 'is not a Postrider database');
    expect(readFileSync(join(folder, DATABASE_PATH)).equals(bytesBefore)).toBe(true);
    expect(listFiles(folder)).toEqual(['data', DATABASE_PATH]);
  });

  test('a file that is not a database', async () => {
    const folder = createTemporaryFolder();
    mkdirSync(join(folder, 'data'));
    writeFileSync(join(folder, DATABASE_PATH), 'hello '.repeat(3_000));
    await expectRefusedStart(folder, {}, 'Restore a backup');
    expect(readFileSync(join(folder, DATABASE_PATH), 'utf8')).toBe('hello '.repeat(3_000));
    expect(listFiles(folder)).toEqual(['data', DATABASE_PATH]);
  });

  test.each([50, 100, 5_000, 8_192, 100_000])('a database that is truncated to %d bytes', async (sizeBytes) => {
    const folder = createTemporaryFolder();
    const path = await createDatabase(folder);
    truncateSync(path, sizeBytes);
    const bytesBefore = readFileSync(path);
    await expectRefusedStart(folder, {}, 'Restore a backup');
    expect(readFileSync(path).equals(bytesBefore)).toBe(true);
  });
});

describe('a start with a listener whose address is in use', () => {
  const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:ses-feedback';
  const FEEDBACK_SETTINGS = { POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org', POSTRIDER_SES_TOPICS: TOPIC };

  async function startListening(server: Server, socketPath: string | 0): Promise<number> {
    await new Promise<void>((resolve) =>
      socketPath === 0 ? server.listen(0, '127.0.0.1', resolve) : server.listen(socketPath, resolve),
    );
    onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
    const address = server.address();
    return typeof address === 'object' ? (address?.port ?? 0) : 0;
  }

  test.each([
    'POSTRIDER_LISTEN',
    'POSTRIDER_OPERATOR_LISTEN',
    'POSTRIDER_FEEDBACK_LISTEN',
    'POSTRIDER_FEEDBACK_HTTP_LISTEN',
  ])('closes the other listeners, creates no account and leaves no node (%s)', async (setting) => {
    const folder = createTemporaryFolder();
    const port = await startListening(createServer(), 0);
    const sockets = {
      POSTRIDER_FEEDBACK_HTTP_LISTEN: `unix:${folder}/events.sock`,
      POSTRIDER_LISTEN: `unix:${folder}/api.sock`,
    };
    const settings = {
      ...FEEDBACK_SETTINGS,
      POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
      ...sockets,
      [setting]: `127.0.0.1:${port}`,
    };
    const { stderr } = await expectRefusedStart(folder, settings, 'the port is in use');
    expect(stderr).toContain(`${setting} 127.0.0.1:${port}`);
    expect(readdirSync(folder)).toEqual(['data']);
    expect(await listRemainingNodes({ kind: 'sqlite', path: join(folder, DATABASE_PATH) })).toEqual([]);
    expect(await runJsonCommand(folder, ['account', 'list'])).toEqual([]);
  });

  test('leaves no node in a PostgreSQL database', async () => {
    const folder = createTemporaryFolder();
    const url = await createTemporaryDatabase();
    const port = await startListening(createServer(), 0);
    const settings = { POSTRIDER_DATABASE: url, POSTRIDER_LISTEN: `127.0.0.1:${port}` };
    await expectRefusedStart(folder, settings, 'the port is in use');
    expect(await runJsonCommand<{ nodes?: unknown[] }>(folder, ['account', 'list'], settings)).toEqual([]);
    await runStatement(url, 'DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM node); END $$');
  });

  test('does not replace the socket of a running process', async () => {
    const folder = createTemporaryFolder();
    const socketPath = join(folder, 'api.sock');
    const server = createServer((socket) => void socket.on('error', () => undefined).end('live'));
    await startListening(server, socketPath);
    await expectRefusedStart(
      folder,
      { POSTRIDER_LISTEN: `unix:${socketPath}` },
      'another process listens on this socket',
    );
    expect(existsSync(socketPath)).toBe(true);
  });

  test('replaces the socket of a killed service', async () => {
    const folder = createTemporaryFolder();
    const socketPath = join(folder, 'api.sock');
    const settings = { POSTRIDER_LISTEN: `unix:${socketPath}` };
    const killedService = await startProcess(folder, settings);
    killedService.kill('SIGKILL');
    await killedService.exitPromise;
    expect(existsSync(socketPath)).toBe(true);
    const restartedService = await startProcess(folder, settings);
    restartedService.kill('SIGTERM');
    expect(await restartedService.exitPromise).toBe(0);
    expect(existsSync(socketPath)).toBe(false);
  });

  test('does not remove a regular file at the path of its socket', async () => {
    const folder = createTemporaryFolder();
    writeFileSync(join(folder, 'api.sock'), 'x');
    await expectRefusedStart(folder, { POSTRIDER_LISTEN: `unix:${folder}/api.sock` }, 'is not a socket');
    expect(readFileSync(join(folder, 'api.sock'), 'utf8')).toBe('x');
  });
});

test('a clock before 2026 ends the start before the store opens', async () => {
  const folder = createTemporaryFolder();
  const clockScript = `Date.now = () => Date.UTC(2025, 11, 31, 23, 59, 59)`;
  const settings = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(clockScript)}` };
  await expectRefusedStart(folder, settings, '2025-12-31T23:59:59.000Z');
  expect(listFiles(folder)).toEqual([]);
});
