/**
 * Tests that each fault in the configuration of the database server or its pooler ends `serve` with one line that names
 * the remedy.
 */
import { expect, onTestFinished, test } from 'vitest';
import { EXIT_INVALID_SETTINGS } from '../../src/cli/failure.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { startPoolerProxy } from '../rig/pooler-proxy.ts';
import { createTemporaryDatabase, runStatement } from '../rig/postgres.ts';
import { startServerOfVersion } from '../rig/postgres-of-version.ts';
import { runCommand } from '../rig/service.ts';
import { startTransactionPooler } from '../rig/transaction-pooler.ts';

const PASSWORD = 'very-secret-word';

function changeUrl(url: string, change: (parts: URL) => void): string {
  const parts = new URL(url);
  change(parts);
  return parts.href;
}

/** Returns the URL of a new database for a role that has only the privilege to log in. */
async function createPlainRoleUrl(): Promise<string> {
  const adminUrl = await createTemporaryDatabase();
  const name = `role_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  await runStatement(adminUrl, `CREATE ROLE ${name} LOGIN PASSWORD '${PASSWORD}'`);
  onTestFinished(() => runStatement(adminUrl, `DROP ROLE ${name}`));
  return changeUrl(adminUrl, (parts) => {
    parts.username = name;
    parts.password = PASSWORD;
  });
}

const FAULTS: readonly {
  readonly name: string;
  readonly url: () => Promise<string>;
  /** The text of the error line after the name of the server. */
  readonly line: RegExp;
}[] = [
  {
    name: 'a pooler in transaction mode that was not declared',
    async url() {
      const url = await createTemporaryDatabase();
      const pooler = await startTransactionPooler(Number(new URL(url).port), { unsupportedRequest: 'forward' });
      return changeUrl(url, (parts) => {
        parts.port = String(pooler.port);
      });
    },
    // If the pooler gives the server connection to another client connection between two statements of the start, the
    // service finds a setting of the other connection first.
    line: /^(?:a connection pooler in transaction mode is in front of the server\. Add pooler=transaction to POSTRIDER_DATABASE\.|the server does not apply \w+=\S+ \(its value is [^)]*\)\. If a connection pooler is used, add pooler=transaction to POSTRIDER_DATABASE, or .*\.)$/,
  },
  {
    name: 'options that the pooler refuses',
    async url() {
      const url = await createTemporaryDatabase();
      const proxy = await startPoolerProxy(Number(new URL(url).port), { options: 'refuse' });
      return changeUrl(url, (parts) => {
        parts.port = String(proxy.port);
        parts.searchParams.set('options', '-c ignore_system_indexes=on');
      });
    },
    line: /^the pooler refuses options= in POSTRIDER_DATABASE \(unsupported startup parameter: options\)\. Remove it\.$/,
  },
  {
    name: 'a wrong password',
    url: async () =>
      changeUrl(await createTemporaryDatabase(), (parts) => {
        parts.password = PASSWORD;
      }),
    line: /^the server refuses the user or the password \(password authentication failed .*\)\. Correct them in POSTRIDER_DATABASE, or correct pg_hba\.conf\.$/,
  },
  {
    name: 'a host that does not exist',
    url: async () => `postgres://me:${PASSWORD}@no-such-host.invalid/mail`,
    line: /^the host was not found \(.*\)\. Correct POSTRIDER_DATABASE, or check DNS\.$/,
  },
  {
    name: 'a database that does not exist',
    url: async () =>
      changeUrl(await createTemporaryDatabase(), (parts) => {
        parts.pathname = '/no_such_database';
      }),
    line: /^the database does not exist\. Create it with `createdb`, or correct its name in POSTRIDER_DATABASE\.$/,
  },
  {
    name: 'a role without rights',
    url: createPlainRoleUrl,
    line: /^the user lacks a permission \(permission denied for schema public\)\. Make the user the owner of the database, or make the user the owner of a schema and add schema=NAME to POSTRIDER_DATABASE\.$/,
  },
  {
    name: 'a server without TLS if TLS is required',
    url: async () =>
      changeUrl(await createTemporaryDatabase(), (parts) => parts.searchParams.set('sslmode', 'verify-full')),
    line: /^the TLS connection failed \(The server does not support SSL connections\)\. Correct sslmode= in POSTRIDER_DATABASE, /,
  },
  {
    name: 'a version that is too old',
    async url() {
      const port = await startServerOfVersion({ version: 140_012 });
      return `postgres://me:${PASSWORD}@127.0.0.1:${port}/mail?sslmode=disable`;
    },
    line: /^PostgreSQL 14 at 127\.0\.0\.1 is too old; Postrider needs 15 or later\.$/,
  },
  {
    name: 'a replica',
    async url() {
      const port = await startServerOfVersion({ version: 150_003, isReplica: true });
      return `postgres://me:${PASSWORD}@127.0.0.1:${port}/mail?sslmode=disable`;
    },
    line: /^the server is a read-only replica\. Set POSTRIDER_DATABASE to the primary, or to all hosts separated by commas\.$/,
  },
  {
    name: 'a server whose transactions stay read-only',
    async url() {
      const url = await createTemporaryDatabase();
      const database = new URL(url).pathname.slice(1);
      await runStatement(url, `ALTER DATABASE ${database} SET default_transaction_read_only = on`);
      const proxy = await startPoolerProxy(Number(new URL(url).port), { options: 'drop', ignoresSet: true });
      return changeUrl(url, (parts) => {
        parts.port = String(proxy.port);
      });
    },
    line: /^the server makes every transaction read-only, although it is not a replica\. Set default_transaction_read_only=off for the server, the database and the role\.$/,
  },
];

test.each(FAULTS)('with $name, `serve` exits with a one-line error that names the remedy', async ({ url, line }) => {
  const settings = { POSTRIDER_DATABASE: await url(), POSTRIDER_SECRET: 'ab'.repeat(32) };
  const { code, stdout, stderr } = await runCommand(createTemporaryFolder(), ['serve'], settings);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^postrider: [^\n]+\n$/);
  expect(stderr).not.toContain(PASSWORD);
  expect(stderr.trimEnd().replace(/^postrider: (?:PostgreSQL \S+: )?/, '')).toMatch(line);
});

test('options together with pooler=transaction end serve with one line, before serve connects to the server', async () => {
  const settings = { POSTRIDER_DATABASE: 'postgres://me@db.invalid/mail?pooler=transaction&options=-cjit%3Doff' };
  const { code, stderr } = await runCommand(createTemporaryFolder(), ['serve'], settings);
  expect(code).toBe(EXIT_INVALID_SETTINGS);
  expect(stderr).toMatch(
    /^postrider: [^\n]*a pooler in transaction mode refuses options; set them with ALTER ROLE[^\n]*\n$/,
  );
});
