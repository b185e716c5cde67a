/**
 * Tests that the service works with any settings of the role or the database. These settings apply to a connection
 * until the service replaces them. The service sets the statement timeout first and in a separate statement, because
 * the statement timeout of the role may be a few milliseconds.
 */
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/store/open.ts';
import { createPool } from '../../../src/store/postgres/database.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { createTemporaryDatabase, runStatement } from '../../rig/postgres.ts';
import { getTestedVersion } from '../../rig/postgres-version.ts';
import { parsePostgresUrl } from '../../rig/stores.ts';

const ROLE_SETTINGS = {
  default_transaction_read_only: 'on',
  lock_timeout: '5ms',
  statement_timeout: '8s',
  idle_in_transaction_session_timeout: '8s',
  idle_session_timeout: '8s',
};
/** A setting of version 17 and later. */
const VERSION_17_SETTINGS = getTestedVersion() === 'newest' ? { transaction_timeout: '8s' } : {};
/** The statement timeout of a service, from which the service computes its other time limits. */
const STATEMENT_TIMEOUT_MS = 30_000;
const SERVICE_SETTINGS = {
  default_transaction_read_only: 'off',
  lock_timeout: '0',
  statement_timeout: '29s',
  idle_in_transaction_session_timeout: '30s',
  idle_session_timeout: '0',
};

test.each(['ROLE', 'DATABASE'])(
  'the settings of the service take precedence over those of a %s, and accounts and messages are stored',
  async (kind) => {
    const adminUrl = await createTemporaryDatabase();
    const url = new URL(adminUrl);
    const database = url.pathname.slice(1);
    // The role owns the database and is dropped with the server.
    const role = `role_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
    await runStatement(
      adminUrl,
      `CREATE ROLE ${role} LOGIN PASSWORD 'pw'; ALTER DATABASE ${database} OWNER TO ${role}; ALTER SCHEMA public OWNER TO ${role}`,
    );
    const target = kind === 'ROLE' ? `ROLE ${role}` : `DATABASE ${database}`;
    const changes = Object.entries({ ...ROLE_SETTINGS, ...VERSION_17_SETTINGS }).map(
      ([name, value]) => `ALTER ${target} SET ${name} = '${value}'`,
    );
    await runStatement(adminUrl, changes.join('; '));
    url.username = role;
    url.password = 'pw';
    const setting = parsePostgresUrl(url.href);
    if (setting.kind !== 'postgres') throw new Error('no PostgreSQL URL');

    const pool = createPool({
      setting,
      application: 'postrider test',
      random: Math.random,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    });
    onTestFinished(() => pool.close());
    const expectedSettings = {
      ...SERVICE_SETTINGS,
      ...(getTestedVersion() === 'newest' ? { transaction_timeout: '0' } : {}),
    };
    const columns = Object.keys(expectedSettings).map((name) => `current_setting('${name}') AS ${name}`);
    expect(await pool.query({ name: 'test_in_force', text: `SELECT ${columns.join(', ')}` }, [])).toEqual([
      expectedSettings,
    ]);

    const stores = await Promise.all([1, 2, 3].map(() => openStore(setting, { exclusive: true })));
    for (const store of stores) onTestFinished(() => store.close());
    const createResults = await Promise.all(
      stores.flatMap((store, index) =>
        [1, 2, 3, 4].map((n) => store.createAccount(`account-${index}-${n}`, NO_LIMITS, 1)),
      ),
    );
    expect(new Set(createResults.map(({ kind: answer }) => answer))).toEqual(new Set(['done']));
    const results = await Promise.all(stores.map((store) => store.accept([createMessage()])));
    expect(results.flat().map(({ kind: answer }) => answer)).toEqual(stores.map(() => 'accepted'));
  },
);
