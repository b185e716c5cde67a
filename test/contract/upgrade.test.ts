/** Tests on every store that a migration converts the data of an older version. */
import { copyFileSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { toComplainant } from '../../src/model/account.ts';
import { parseAddress, toCanonicalAddress } from '../../src/model/address.ts';
import { openStore } from '../../src/store/open.ts';
import { createPool } from '../../src/store/postgres/database.ts';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createTemporaryDatabase } from '../rig/postgres.ts';
import { parsePostgresUrl, STORES } from '../rig/stores.ts';
import { addressText } from '../unit/model/address-texts.ts';

const MESSAGE = '01997a3c-0000-7000-8000-000000000001';

interface Complainant {
  readonly account_id: number;
  readonly recipient: string;
  readonly at: number;
}

interface Suppression extends Complainant {
  readonly reason: string;
  /** The message of the report; null for an entry of an operator or an import. */
  readonly source: string | null;
}

const complaint = (recipient: string, at: number, more: Partial<Suppression> = {}): Suppression => ({
  ...{ account_id: 1, recipient, at, reason: 'complaint', source: MESSAGE },
  ...more,
});

/** Returns the migration files before the one with this name, and their folder. */
function filesBefore(kind: 'sqlite' | 'postgres', name: string): { readonly folder: URL; readonly names: string[] } {
  const folder = new URL(`../../src/store/${kind}/migrations/`, import.meta.url);
  const names = readdirSync(folder).sort();
  const at = names.findIndex((file) => file.includes(name));
  if (at < 0) throw new Error(`no migration ${name}`);
  return { folder, names: names.slice(0, at) };
}

/** Writes suppressions into a store without the migration, upgrades the store, and returns its complainants. */
const UPGRADES = {
  async sqlite(suppressions: readonly Suppression[]) {
    const path = join(createTemporaryFolder(), 'postrider.db');
    const { folder, names } = filesBefore('sqlite', 'complaints-before');
    const old = new DatabaseSync(path);
    for (const name of names) old.exec(readFileSync(new URL(name, folder), 'utf8'));
    old.exec(`PRAGMA user_version = ${names.length}; PRAGMA application_id = ${0x50524452}`);
    const insert = old.prepare(
      'INSERT INTO suppression (recipient, account_id, reason, source, at) VALUES (?, ?, ?, ?, ?)',
    );
    old.exec('BEGIN');
    for (const { recipient, account_id, reason, source, at } of suppressions)
      insert.run(recipient, account_id, reason, source, at);
    old.exec('COMMIT');
    old.close();
    await (await openStore({ kind: 'sqlite', path }, { exclusive: true })).close();
    const upgraded = new DatabaseSync(path, { readOnly: true });
    onTestFinished(() => upgraded.close());
    return upgraded.prepare('SELECT account_id, recipient, at FROM complainant').all().map(complainantIn);
  },
  async postgres(suppressions: readonly Suppression[]) {
    const url = await createTemporaryDatabase();
    const setting = parsePostgresUrl(url);
    if (setting.kind !== 'postgres') throw new Error('no PostgreSQL URL');
    const { folder, names } = filesBefore('postgres', 'complaints-before');
    const older = createTemporaryFolder();
    for (const name of names) copyFileSync(new URL(name, folder), join(older, name));
    const pool = createPool({ setting, application: 'postrider test', random: Math.random });
    onTestFinished(() => pool.close());
    await migrate(pool, pathToFileURL(`${older}/`));
    const client = new pg.Client({ connectionString: url });
    onTestFinished(() => client.end());
    await client.connect();
    for (const { recipient, account_id, reason, source, at } of suppressions) {
      await client.query(
        'INSERT INTO suppression (recipient, account_id, reason, source, at) VALUES ($1, $2, $3, $4, $5)',
        [recipient, account_id, reason, source, at],
      );
    }
    await migrate(pool);
    return (await client.query('SELECT account_id, recipient, at FROM complainant')).rows.map(complainantIn);
  },
} as const;

function complainantIn(row: Readonly<Record<string, unknown>>): Complainant {
  return { account_id: Number(row.account_id), recipient: String(row.recipient), at: Number(row.at) };
}

const byName = (one: Complainant, other: Complainant) =>
  one.account_id - other.account_id || (one.recipient < other.recipient ? -1 : 1);

for (const { name } of STORES) {
  test(`${name}: a recipient whose complaint was counted before the upgrade is a complainant after the upgrade`, async () => {
    const found = await UPGRADES[name]([
      complaint('rita@example.com', 5),
      complaint('rita+news@example.com', 9),
      complaint('rita+news@example.com', 3, { account_id: 2 }),
      complaint('+rita@example.com', 4),
      complaint('"a+b c"@example.com', 6),
      complaint('bounced@example.com', 7, { reason: 'bounce' }),
      complaint('imported@example.com', 7, { source: null }),
      complaint('everywhere@example.com', 7, { account_id: 0 }),
    ]);
    expect(found.sort(byName)).toEqual([
      { account_id: 1, recipient: '"a+b c"@example.com', at: 6 },
      { account_id: 1, recipient: '+rita@example.com', at: 4 },
      { account_id: 1, recipient: 'rita@example.com', at: 9 },
      { account_id: 2, recipient: 'rita@example.com', at: 3 },
    ]);
  });

  test(`${name}: the migration canonicalizes complainants as the code does, for every address`, async () => {
    const texts = fc.sample(addressText, { numRuns: 1_000, seed: 12 });
    const recipients = new Set(
      texts.map(parseAddress).flatMap((address) => (address === null ? [] : [toCanonicalAddress(address)])),
    );
    const found = await UPGRADES[name]([...recipients].map((recipient) => complaint(recipient, 1)));
    expect(new Set(found.map(({ recipient }) => recipient))).toEqual(new Set([...recipients].map(toComplainant)));
  });
}
