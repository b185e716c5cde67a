/**
 * Tests that a start that cannot succeed ends the process with one line and code 1, and leaves nothing half-started: no lock, no
 * lease, no node, no socket, no temporary file.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SETTINGS_TABLE } from '../../src/config/table.ts';
import { openStore } from '../../src/store/open.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createTemporaryDatabase, runStatement } from '../rig/postgres.ts';
import { createAuthority } from '../rig/postgres-tls.ts';
import { FailedStart, runCommand, runJsonCommand, startProcess, submit } from '../rig/service.ts';
import { SECRET_WORD, type SettingKey, wrongFormsOf } from '../rig/wrong-settings.ts';

const ONE_LINE = /^postrider: [^\n]+\n$/;
const PATH = 'data/postrider.db';

/** Runs `serve`, which must end with one line. `wrap` adds a shell prefix. */
async function refusedStart(
  folder: string,
  settings: Record<string, string>,
  part: string,
  wrap?: (command: string) => string,
): Promise<FailedStart> {
  const failure: unknown = await startProcess(folder, settings, wrap).then(
    () => new Error(`the service has started with ${JSON.stringify(settings)}`),
    (error: unknown) => error,
  );
  if (!(failure instanceof FailedStart)) throw failure;
  expect(failure.stderr).toMatch(ONE_LINE);
  expect(failure).toMatchObject({ code: 1, stderr: expect.stringContaining(part) });
  return failure;
}

/** Returns the names of all files below the folder. */
function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true }).map(String).sort();
}

async function createDatabase(folder: string): Promise<string> {
  const path = join(folder, PATH);
  mkdirSync(join(folder, 'data'), { mode: 0o700 });
  await (await openStore({ kind: 'sqlite', path }, { exclusive: true })).close();
  return path;
}

/** Returns the nodes that the store still contains after the start failed. */
async function remainingNodes(database: Parameters<typeof openStore>[0]): Promise<readonly unknown[]> {
  const store = await openStore(database, { exclusive: false });
  try {
    return await store.listNodes(Date.now());
  } finally {
    await store.close();
  }
}

test('a wrong value of any setting ends the process with one line and creates no file', async () => {
  const folder = createTemporaryFolder();
  for (const key of Object.keys(SETTINGS_TABLE) as SettingKey[]) {
    const { name, example } = SETTINGS_TABLE[key];
    // The forms that are wrong for every setting precede those of the row.
    const form = wrongFormsOf(key, example).find(({ value }) => /^[^\p{Cc}]+$/u.test(value.trim()));
    const { stdout, stderr } = await refusedStart(folder, { [name]: form?.value ?? '' }, name);
    expect(stdout).toBe('');
    expect(stderr).not.toContain(SECRET_WORD);
  }
  expect(filesBelow(folder)).toEqual([]);
});

describe('certificate files that cannot be used end the start before the store opens', () => {
  test.each([
    ['an empty certificate', { cert: '', key: 'own' }, 'POSTRIDER_TLS_CERT'],
    ['a certificate that is not PEM', { cert: 'x', key: 'own' }, 'POSTRIDER_TLS_CERT'],
    ['a key that is not PEM', { cert: 'own', key: 'x' }, 'POSTRIDER_TLS_KEY'],
    ['a key of another certificate', { cert: 'own', key: 'other' }, 'POSTRIDER_TLS_KEY'],
  ])('%s', async (_name, content, setting) => {
    const [own, other] = await Promise.all([createAuthority('own'), createAuthority('other')]);
    const folder = createTemporaryFolder();
    const keys: Readonly<Record<string, string>> = { own: own.private, other: other.private };
    writeFileSync(join(folder, 'cert.pem'), content.cert === 'own' ? own.cert : content.cert);
    writeFileSync(join(folder, 'key.pem'), keys[content.key] ?? content.key);
    await refusedStart(folder, { POSTRIDER_TLS_CERT: 'cert.pem', POSTRIDER_TLS_KEY: 'key.pem' }, setting);
    expect(filesBelow(folder)).toEqual(['cert.pem', 'key.pem']);
  });
});

/**
 * Root ignores the modes of files. Without these capabilities it does not, and it can still read the checkout.
 */
const WITHOUT_RIGHTS = (command: string) =>
  process.getuid?.() === 0
    ? `exec setpriv --bounding-set=-dac_override,-dac_read_search -- ${command.replace(/^exec /, '')}`
    : command;

describe('a data folder that cannot be written', () => {
  test('a working folder without the right to write', async () => {
    const folder = createTemporaryFolder();
    chmodSync(folder, 0o500);
    await refusedStart(folder, {}, 'Set POSTRIDER_DATABASE to', WITHOUT_RIGHTS);
    chmodSync(folder, 0o700);
    expect(filesBelow(folder)).toEqual([]);
  });

  test('a data folder without the right to write', async () => {
    const folder = createTemporaryFolder();
    mkdirSync(join(folder, 'data'), { mode: 0o500 });
    await refusedStart(folder, {}, 'Set POSTRIDER_DATABASE to', WITHOUT_RIGHTS);
    expect(filesBelow(folder)).toEqual(['data']);
  });

  test('a database file without the right to write', async () => {
    const folder = createTemporaryFolder();
    const path = await createDatabase(folder);
    const before = filesBelow(folder);
    chmodSync(path, 0o400);
    await refusedStart(folder, {}, 'Check its owner and permissions', WITHOUT_RIGHTS);
    expect(filesBelow(folder)).toEqual(before);
  });

  test('a folder with a database and without the right to write', async () => {
    const folder = createTemporaryFolder();
    await createDatabase(folder);
    const before = filesBelow(folder);
    chmodSync(join(folder, 'data'), 0o500);
    await refusedStart(folder, {}, 'Check ', WITHOUT_RIGHTS);
    chmodSync(join(folder, 'data'), 0o700);
    expect(filesBelow(folder)).toEqual(before);
  });

  test('a file in the place of the folder', async () => {
    const folder = createTemporaryFolder();
    writeFileSync(join(folder, 'data'), 'x');
    await refusedStart(folder, {}, 'Set POSTRIDER_DATABASE to');
    expect(filesBelow(folder)).toEqual(['data']);
  });
});

describe('a disk that is full at the start', () => {
  /** Every write to a file fails, as on a full disk. Pipes are not limited. */
  const FULL = (command: string) => `trap '' XFSZ; ulimit -f 0; ${command}`;

  test('a new store: the next start with free space succeeds', async () => {
    const folder = createTemporaryFolder();
    await refusedStart(folder, {}, 'disk', FULL);
    const service = await startProcess(folder);
    expect((await submit(service.publicUrl, service.key ?? '')).status).toBe(201);
  });

  test('an existing store keeps its content and gets no node', async () => {
    const folder = createTemporaryFolder();
    const path = await createDatabase(folder);
    await runJsonCommand(folder, ['account', 'create', 'shop']);
    await refusedStart(folder, {}, 'disk', FULL);
    expect(await remainingNodes({ kind: 'sqlite', path })).toEqual([]);
    expect(await runJsonCommand(folder, ['account', 'list'])).toMatchObject([{ name: 'shop' }]);
  });
});

describe('a database that this version cannot use stays unchanged', () => {
  test('a newer version of the embedded database', async () => {
    const folder = createTemporaryFolder();
    const path = await createDatabase(folder);
    const database = new DatabaseSync(path);
    database.exec('PRAGMA user_version = 999');
    database.close();
    const before = readFileSync(path);
    await refusedStart(folder, {}, 'Run the version that wrote it, or a later one');
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('a newer version of the PostgreSQL database', async () => {
    const url = await createTemporaryDatabase();
    const folder = createTemporaryFolder();
    expect((await runCommand(folder, ['account', 'list'], { POSTRIDER_DATABASE: url })).code).toBe(0);
    await runStatement(url, 'UPDATE postrider SET version = 999, least = 999');
    await refusedStart(folder, { POSTRIDER_DATABASE: url }, 'Run the version that wrote it, or a later one');
    expect(filesBelow(folder)).toEqual([]);
  });

  test('a SQLite database of another application', async () => {
    const folder = createTemporaryFolder();
    mkdirSync(join(folder, 'data'));
    const database = new DatabaseSync(join(folder, PATH));
    database.exec('CREATE TABLE bookmark (url TEXT)');
    database.close();
    const before = readFileSync(join(folder, PATH));
    await refusedStart(folder, {}, 'is not a Postrider database');
    expect(readFileSync(join(folder, PATH)).equals(before)).toBe(true);
    expect(filesBelow(folder)).toEqual(['data', PATH]);
  });

  test('a file that is not a database', async () => {
    const folder = createTemporaryFolder();
    mkdirSync(join(folder, 'data'));
    writeFileSync(join(folder, PATH), 'hello '.repeat(3_000));
    await refusedStart(folder, {}, 'Restore a backup');
    expect(readFileSync(join(folder, PATH), 'utf8')).toBe('hello '.repeat(3_000));
    expect(filesBelow(folder)).toEqual(['data', PATH]);
  });

  test.each([50, 100, 5_000, 8_192, 100_000])('a database of which %d bytes are left', async (size) => {
    const folder = createTemporaryFolder();
    const path = await createDatabase(folder);
    truncateSync(path, size);
    const before = readFileSync(path);
    await refusedStart(folder, {}, 'Restore a backup');
    expect(readFileSync(path).equals(before)).toBe(true);
  });
});

describe('an address that is in use', () => {
  const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:ses-feedback';
  const FEEDBACK = { POSTRIDER_RETURN_PATH_DOMAIN: 'bounces.example.org', POSTRIDER_SES_TOPICS: TOPIC };

  async function listen(server: Server, at: string | 0): Promise<number> {
    await new Promise<void>((resolve) =>
      at === 0 ? server.listen(0, '127.0.0.1', resolve) : server.listen(at, resolve),
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
  ])('%s: the other listeners are closed, no account is created and no node remains', async (setting) => {
    const folder = createTemporaryFolder();
    const port = await listen(createServer(), 0);
    const sockets = {
      POSTRIDER_FEEDBACK_HTTP_LISTEN: `unix:${folder}/events.sock`,
      POSTRIDER_LISTEN: `unix:${folder}/api.sock`,
    };
    const settings = {
      ...FEEDBACK,
      POSTRIDER_FEEDBACK_LISTEN: '127.0.0.1:0',
      ...sockets,
      [setting]: `127.0.0.1:${port}`,
    };
    const { stderr } = await refusedStart(folder, settings, 'the port is in use');
    expect(stderr).toContain(`${setting} 127.0.0.1:${port}`);
    expect(readdirSync(folder)).toEqual(['data']);
    expect(await remainingNodes({ kind: 'sqlite', path: join(folder, PATH) })).toEqual([]);
    expect(await runJsonCommand(folder, ['account', 'list'])).toEqual([]);
  });

  test('a port in use leaves no node in a PostgreSQL database', async () => {
    const folder = createTemporaryFolder();
    const url = await createTemporaryDatabase();
    const port = await listen(createServer(), 0);
    const settings = { POSTRIDER_DATABASE: url, POSTRIDER_LISTEN: `127.0.0.1:${port}` };
    await refusedStart(folder, settings, 'the port is in use');
    expect(await runJsonCommand<{ nodes?: unknown[] }>(folder, ['account', 'list'], settings)).toEqual([]);
    await runStatement(url, 'DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM node); END $$');
  });

  test('the socket of a live process is not replaced', async () => {
    const folder = createTemporaryFolder();
    const socketPath = join(folder, 'api.sock');
    const server = createServer((socket) => void socket.on('error', () => undefined).end('live'));
    await listen(server, socketPath);
    await refusedStart(folder, { POSTRIDER_LISTEN: `unix:${socketPath}` }, 'another process listens on this socket');
    expect(existsSync(socketPath)).toBe(true);
  });

  test('the socket of a killed service is replaced', async () => {
    const folder = createTemporaryFolder();
    const socketPath = join(folder, 'api.sock');
    const settings = { POSTRIDER_LISTEN: `unix:${socketPath}` };
    const killed = await startProcess(folder, settings);
    killed.kill('SIGKILL');
    await killed.ended;
    expect(existsSync(socketPath)).toBe(true);
    const restarted = await startProcess(folder, settings);
    restarted.kill('SIGTERM');
    expect(await restarted.ended).toBe(0);
    expect(existsSync(socketPath)).toBe(false);
  });

  test('a file in the place of the socket is not removed', async () => {
    const folder = createTemporaryFolder();
    writeFileSync(join(folder, 'api.sock'), 'x');
    await refusedStart(folder, { POSTRIDER_LISTEN: `unix:${folder}/api.sock` }, 'is not a socket');
    expect(readFileSync(join(folder, 'api.sock'), 'utf8')).toBe('x');
  });
});

test('a clock before 2026 ends the start before the store opens', async () => {
  const folder = createTemporaryFolder();
  const clock = `Date.now = () => Date.UTC(2025, 11, 31, 23, 59, 59)`;
  const settings = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(clock)}` };
  await refusedStart(folder, settings, '2025-12-31T23:59:59.000Z');
  expect(filesBelow(folder)).toEqual([]);
});
