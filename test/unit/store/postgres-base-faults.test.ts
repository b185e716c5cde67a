/**
 * Tests that each configuration error of the database is reported within a few seconds, in one line, without the
 * password.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/store/open.ts';
import { createTemporaryDatabase, runStatement, startPostgres } from '../../rig/postgres.ts';
import { startServerOfVersion } from '../../rig/postgres-of-version.ts';
import { parsePostgresUrl } from '../../rig/stores.ts';
import { startTransactionPooler } from '../../rig/transaction-pooler.ts';

const SECRET = 'very-secret-word';
/**
 * Maximum time until a fault is reported: longer than the time limit of a connection attempt plus the wait for a
 * connection.
 */
const MAX_FAILURE_MS = 8_000;

/** Returns the error message with which opening the store fails. */
async function readOpenError(url: string): Promise<string> {
  const startedAt = performance.now();
  const openResult = await openStore(parsePostgresUrl(url), { exclusive: true }).then(
    (store) => store.close().then(() => 'it opened'),
    (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : 'no error'),
  );
  expect(performance.now() - startedAt).toBeLessThan(MAX_FAILURE_MS);
  expect(openResult).not.toMatch(/[\r\n]/);
  expect(openResult).not.toContain(SECRET);
  return openResult;
}

function changeUrl(url: string, change: (parts: URL) => void): string {
  const parts = new URL(url);
  change(parts);
  return parts.href;
}

/** Creates a role for this test with the privileges that `sql` grants. */
async function createRoleUrl(url: string, options: string, sql: string): Promise<string> {
  const name = `role_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  await runStatement(url, `CREATE ROLE ${name} LOGIN PASSWORD '${SECRET}' ${options}; ${sql.replaceAll('$1', name)}`);
  onTestFinished(() => runStatement(url, `DROP OWNED BY ${name}; DROP ROLE ${name}`));
  return changeUrl(url, (parts) => {
    parts.username = name;
    parts.password = SECRET;
  });
}

/** Starts a server on a loopback address with the given behavior for each connection. */
async function startServer(behave: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    behave(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

describe('one line reports', () => {
  test('a port without a server', async () => {
    const url = changeUrl(await createTemporaryDatabase(), (parts) => {
      parts.port = '1';
      parts.password = SECRET;
    });
    expect(await readOpenError(url)).toMatch(
      /^StoreError: PostgreSQL 127.0.0.1:1\/test_\w+: the connection was refused\. Start PostgreSQL, or correct host and port/,
    );
  });

  test('a host that does not exist', async () => {
    expect(await readOpenError(`postgres://me:${SECRET}@no-such-host.invalid/mail`)).toMatch(
      /the host was not found .*POSTRIDER_DATABASE/,
    );
  });

  test('a socket that does not exist', async () => {
    expect(await readOpenError(`postgres://me:${SECRET}@/mail?host=/no/such/folder`)).toMatch(
      /the socket does not exist/,
    );
  });

  test('a host that accepts connections and does not answer', async () => {
    const port = await startServer(() => undefined);
    expect(await readOpenError(`postgres://me:${SECRET}@127.0.0.1:${port}/mail?sslmode=disable`)).toMatch(
      /no connection within 2 s|does not answer/,
    );
  });

  test('a port with another kind of server', async () => {
    const port = await startServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    expect(await readOpenError(`postgres://me:${SECRET}@127.0.0.1:${port}/mail?sslmode=disable`)).toMatch(
      /^StoreError: PostgreSQL 127/,
    );
    expect(await readOpenError(`postgres://me:${SECRET}@127.0.0.1:${port}/mail`)).toMatch(
      /^StoreError: PostgreSQL 127\.0\.0\.1:\d+\/mail: the server is not PostgreSQL\. Correct host and port/,
    );
  });

  test('a wrong password', async () => {
    const url = changeUrl(await createTemporaryDatabase(), (parts) => {
      parts.password = SECRET;
    });
    expect(await readOpenError(url)).toMatch(/refuses the user or the password .*Correct them in POSTRIDER_DATABASE/);
  });

  test('a database that does not exist', async () => {
    const url = changeUrl(await createTemporaryDatabase(), (parts) => {
      parts.pathname = '/no_such_database';
    });
    expect(await readOpenError(url)).toMatch(/the database does not exist\. Create it with `createdb`/);
  });

  test('a user who may not create tables', async () => {
    const url = await createRoleUrl(await createTemporaryDatabase(), '', '');
    expect(await readOpenError(url)).toMatch(
      /the user lacks a permission \(permission denied for schema public\)\. Make the user the owner/,
    );
  });

  test('a server with no free connection', async () => {
    const url = await createRoleUrl(await createTemporaryDatabase(), 'CONNECTION LIMIT 0', '');
    expect(await readOpenError(url)).toMatch(/no free connection\. Increase max_connections/);
  });

  test('a replica, which accepts no writes', async () => {
    const primary = await startPostgres();
    const replica = await startPostgres({ standbyOf: primary });
    const pooler = await startTransactionPooler(replica.port);
    const pooledUrl = changeUrl(replica.url('postgres'), (parts) => {
      parts.port = String(pooler.port);
      parts.searchParams.set('pooler', 'transaction');
    });
    for (const url of [replica.url('postgres'), pooledUrl])
      expect(await readOpenError(url)).toMatch(/is a read-only replica\. Set POSTRIDER_DATABASE to the primary/);
  });

  test('a server without TLS if TLS is required', async () => {
    const url = changeUrl(await createTemporaryDatabase(), (parts) => parts.searchParams.set('sslmode', 'require'));
    expect(await readOpenError(url)).toMatch(
      /the TLS connection failed \(The server does not support SSL connections\)\. Correct sslmode=/,
    );
  });

  test('a server that is too old', async () => {
    const port = await startServerOfVersion({ version: 140_012 });
    expect(await readOpenError(`postgres://me:${SECRET}@127.0.0.1:${port}/mail?sslmode=disable`)).toMatch(
      /PostgreSQL 14 at 127\.0\.0\.1 is too old; Postrider needs 15 or later/,
    );
  });

  test('an option that is unknown to the server', async () => {
    const url = changeUrl(await createTemporaryDatabase(), (parts) =>
      parts.searchParams.set('options', '-c no_such_setting=1'),
    );
    expect(await readOpenError(url)).toMatch(/does not recognize a setting .*no_such_setting.*Correct options=/);
  });

  test('the error of each of several hosts', async () => {
    const port = await startServerOfVersion({ version: 140_012 });
    const fault = await readOpenError(`postgres://me:${SECRET}@127.0.0.1:1,127.0.0.1:${port}/mail?sslmode=disable`);
    expect(fault).toMatch(/127\.0\.0\.1:1\/mail: the connection was refused.*PostgreSQL 14 at 127\.0\.0\.1 is too old/);
  });

  test('no error for a server without TLS if TLS is only preferred', async () => {
    const url = changeUrl(await createTemporaryDatabase(), (parts) => parts.searchParams.delete('sslmode'));
    expect(await readOpenError(url)).toBe('it opened');
  });
});
