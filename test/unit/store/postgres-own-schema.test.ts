import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/store/open.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { createTemporaryDatabase, runStatement } from '../../rig/postgres.ts';
import { createTestPool, parsePostgresUrl } from '../../rig/stores.ts';

async function createRole(url: string, sql: string): Promise<URL> {
  const name = `role_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  await runStatement(
    url,
    `CREATE ROLE ${name} LOGIN PASSWORD 'pw'; REVOKE ALL ON SCHEMA public FROM PUBLIC; ${sql.replaceAll('$1', name)}`,
  );
  onTestFinished(() => runStatement(url, `DROP OWNED BY ${name} CASCADE; DROP ROLE ${name}`));
  const roleUrl = new URL(url);
  roleUrl.username = name;
  roleUrl.password = 'pw';
  return roleUrl;
}

function withSchema(url: URL, schema: string): string {
  const schemaUrl = new URL(url);
  schemaUrl.searchParams.set('schema', schema);
  return schemaUrl.href;
}

async function listTableSchemas(url: string): Promise<readonly string[]> {
  const text = `SELECT DISTINCT relnamespace::regnamespace::text AS name FROM pg_class
    WHERE relkind IN ('r', 'p') AND relname IN ('postrider', 'mail_request', 'queue') ORDER BY 1`;
  const rows = await createTestPool(url).query(text);
  return rows.map(({ name }) => String(name));
}

async function runStore(url: string): Promise<void> {
  const store = await openStore(parsePostgresUrl(url), { exclusive: true });
  try {
    await store.createAccount('default', NO_LIMITS, 1);
    expect(await store.accept([createMessage()])).toMatchObject([{ kind: 'accepted' }]);
  } finally {
    await store.close();
  }
}

test('a role that owns only its schema runs the store in it, and two schemas of one database are separate installations', async () => {
  const adminUrl = await createTemporaryDatabase();
  const role = await createRole(
    adminUrl,
    'CREATE SCHEMA mail AUTHORIZATION $1; CREATE SCHEMA "Other-mail" AUTHORIZATION $1',
  );
  await runStore(withSchema(role, 'mail'));
  expect(await listTableSchemas(withSchema(role, 'mail'))).toEqual(['mail']);
  await runStore(withSchema(role, 'Other-mail'));
  expect(await listTableSchemas(withSchema(role, 'mail'))).toEqual(['"Other-mail"', 'mail']);
});

test('a schema that does not exist is created if the role has the permission, and otherwise reported in one line with the remedy', async () => {
  const adminUrl = await createTemporaryDatabase();
  await runStore(withSchema(new URL(adminUrl), 'created'));
  expect(await listTableSchemas(adminUrl)).toEqual(['created']);
  const role = await createRole(adminUrl, '');
  for (const schema of ['missing', 'created']) {
    await expect(openStore(parsePostgresUrl(withSchema(role, schema)), { exclusive: true })).rejects.toThrow(
      /^PostgreSQL \S+: the user lacks a permission \(permission denied for [^)]+\)\. Make the user the owner of the /,
    );
  }
  await expect(openStore(parsePostgresUrl(role.href), { exclusive: true })).rejects.toThrow(
    /^PostgreSQL \S+: no schema of the search path exists \(.*add schema=NAME to POSTRIDER_DATABASE\.$/,
  );
});
