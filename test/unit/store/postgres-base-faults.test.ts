import type { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startLoopbackServer } from '../../rig/loopback.ts';
import { createTemporaryDatabase, runStatement, startPostgres } from '../../rig/postgres.ts';
import { startServerOfVersion } from '../../rig/postgres-of-version.ts';
import { tryToOpen } from '../../rig/stores.ts';
import { startTransactionPooler } from '../../rig/transaction-pooler.ts';

const SECRET = 'very-secret-word';
async function readOpenError(url: string): Promise<string> {
  const openResult = await tryToOpen(url);
  expect(openResult).not.toMatch(/[\r\n]/);
  expect(openResult).not.toContain(SECRET);
  return openResult;
}

function changeUrl(url: string, change: (parts: URL) => void): string {
  const parts = new URL(url);
  change(parts);
  return parts.href;
}

async function createRoleUrl(url: string, options: string): Promise<string> {
  const name = `role_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  await runStatement(url, `CREATE ROLE ${name} LOGIN PASSWORD '${SECRET}' ${options}`);
  onTestFinished(() => runStatement(url, `DROP OWNED BY ${name}; DROP ROLE ${name}`));
  return changeUrl(url, (parts) => {
    parts.username = name;
    parts.password = SECRET;
  });
}

const changeDatabase = async (change: (parts: URL) => void) => changeUrl(await createTemporaryDatabase(), change);
const listen = async (behave: (socket: Socket) => void, parameters = '?sslmode=disable') =>
  `postgres://me:${SECRET}@127.0.0.1:${(await startLoopbackServer(behave)).port}/mail${parameters}`;

test.each<[string, () => Promise<string> | string, RegExp]>([
  [
    'a port without a server',
    () => changeDatabase((parts) => Object.assign(parts, { port: '1', password: SECRET })),
    /^StoreError: PostgreSQL 127.0.0.1:1\/test_\w+: the connection was refused\. Start PostgreSQL, or correct host and port/,
  ],
  [
    'a host that does not exist',
    () => `postgres://me:${SECRET}@no-such-host.invalid/mail`,
    /the host was not found .*POSTRIDER_DATABASE/,
  ],
  [
    'a socket that does not exist',
    () => `postgres://me:${SECRET}@/mail?host=/no/such/folder`,
    /the socket does not exist/,
  ],
  ['a host that does not answer', () => listen(() => undefined), /no connection within 2 s|does not answer/],
  [
    'a port with another kind of server',
    () => listen((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'), ''),
    /^StoreError: PostgreSQL 127\.0\.0\.1:\d+\/mail: the server is not PostgreSQL\. Correct host and port/,
  ],
  [
    'a wrong password',
    () => changeDatabase((parts) => Object.assign(parts, { password: SECRET })),
    /refuses the user or the password .*Correct them in POSTRIDER_DATABASE/,
  ],
  [
    'a database that does not exist',
    () => changeDatabase((parts) => Object.assign(parts, { pathname: '/no_such_database' })),
    /the database does not exist\. Create it with `createdb`/,
  ],
  [
    'a user who may not create tables',
    async () => createRoleUrl(await createTemporaryDatabase(), ''),
    /the user lacks a permission \(permission denied for schema public\)\. Make the user the owner/,
  ],
  [
    'a server with no free connection',
    async () => createRoleUrl(await createTemporaryDatabase(), 'CONNECTION LIMIT 0'),
    /no free connection\. Increase max_connections/,
  ],
  [
    'a server without TLS if TLS is required',
    () => changeDatabase((parts) => parts.searchParams.set('sslmode', 'require')),
    /the TLS connection failed \(The server does not support SSL connections\)\. Correct sslmode=/,
  ],
  [
    'a server that is too old, after another host that failed',
    async () => {
      const port = await startServerOfVersion({ version: 140_012 });
      return `postgres://me:${SECRET}@127.0.0.1:1,127.0.0.1:${port}/mail?sslmode=disable`;
    },
    /127\.0\.0\.1:1\/mail: the connection was refused.*PostgreSQL 14 at 127\.0\.0\.1 is too old; Postrider needs 15 or/,
  ],
  [
    'an option that is unknown to the server',
    () => changeDatabase((parts) => parts.searchParams.set('options', '-c no_such_setting=1')),
    /does not recognize a setting .*no_such_setting.*Correct options=/,
  ],
  [
    'no error for a server without TLS if TLS is only preferred',
    () => changeDatabase((parts) => parts.searchParams.delete('sslmode')),
    /^it opened$/,
  ],
])('one line reports %s', async (_name, createUrl, expected) => {
  expect(await readOpenError(await createUrl())).toMatch(expected);
});

test('one line reports a replica, which accepts no writes', async () => {
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
