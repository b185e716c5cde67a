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
import { selectCaseCount } from '../rig/sample.ts';
import { parsePostgresUrl, STORES } from '../rig/stores.ts';
import { addressText } from '../unit/model/address-texts.ts';

const MESSAGE_ID = '01997a3c-0000-7000-8000-000000000001';

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

const createComplaint = (recipient: string, at: number, changes: Partial<Suppression> = {}): Suppression => ({
  ...{ account_id: 1, recipient, at, reason: 'complaint', source: MESSAGE_ID },
  ...changes,
});

/** Returns the migration files before the one with this name, and their folder. */
function listFilesBefore(
  kind: 'sqlite' | 'postgres',
  name: string,
): { readonly folder: URL; readonly names: string[] } {
  const folder = new URL(`../../src/store/${kind}/migrations/`, import.meta.url);
  const names = readdirSync(folder).sort();
  const index = names.findIndex((file) => file.includes(name));
  if (index < 0) throw new Error(`no migration ${name}`);
  return { folder, names: names.slice(0, index) };
}

/** Writes suppressions into a store without the migration, upgrades the store, and returns its complainants. */
const UPGRADES_BY_STORE = {
  async sqlite(suppressions: readonly Suppression[]) {
    const path = join(createTemporaryFolder(), 'postrider.db');
    const { folder, names } = listFilesBefore('sqlite', 'complaints-before');
    const oldDatabase = new DatabaseSync(path);
    for (const name of names) oldDatabase.exec(readFileSync(new URL(name, folder), 'utf8'));
    oldDatabase.exec(`PRAGMA user_version = ${names.length}; PRAGMA application_id = ${0x50524452}`);
    const insert = oldDatabase.prepare(
      'INSERT INTO suppression (recipient, account_id, reason, source, at) VALUES (?, ?, ?, ?, ?)',
    );
    oldDatabase.exec('BEGIN');
    for (const { recipient, account_id, reason, source, at } of suppressions)
      insert.run(recipient, account_id, reason, source, at);
    oldDatabase.exec('COMMIT');
    oldDatabase.close();
    await (await openStore({ kind: 'sqlite', path }, { exclusive: true })).close();
    const upgradedDatabase = new DatabaseSync(path, { readOnly: true });
    onTestFinished(() => upgradedDatabase.close());
    return upgradedDatabase.prepare('SELECT account_id, recipient, at FROM complainant').all().map(parseComplainant);
  },
  async postgres(suppressions: readonly Suppression[]) {
    const url = await createTemporaryDatabase();
    const setting = parsePostgresUrl(url);
    if (setting.kind !== 'postgres') throw new Error('no PostgreSQL URL');
    const { folder, names } = listFilesBefore('postgres', 'complaints-before');
    const olderFolder = createTemporaryFolder();
    for (const name of names) copyFileSync(new URL(name, folder), join(olderFolder, name));
    const pool = createPool({ setting, application: 'postrider test', random: Math.random });
    onTestFinished(() => pool.close());
    await migrate(pool, pathToFileURL(`${olderFolder}/`));
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
    return (await client.query('SELECT account_id, recipient, at FROM complainant')).rows.map(parseComplainant);
  },
} as const;

function parseComplainant(row: Readonly<Record<string, unknown>>): Complainant {
  return { account_id: Number(row.account_id), recipient: String(row.recipient), at: Number(row.at) };
}

const compareComplainants = (left: Complainant, right: Complainant) =>
  left.account_id - right.account_id || (left.recipient < right.recipient ? -1 : 1);

for (const { name } of STORES) {
  test(`in the ${name} store a recipient whose complaint was counted before the upgrade is a complainant after the upgrade`, async () => {
    const complainants = await UPGRADES_BY_STORE[name]([
      createComplaint('rita@example.com', 5),
      createComplaint('rita+news@example.com', 9),
      createComplaint('rita+news@example.com', 3, { account_id: 2 }),
      createComplaint('+rita@example.com', 4),
      createComplaint('"a+b c"@example.com', 6),
      createComplaint('bounced@example.com', 7, { reason: 'bounce' }),
      createComplaint('imported@example.com', 7, { source: null }),
      createComplaint('everywhere@example.com', 7, { account_id: 0 }),
    ]);
    expect(complainants.sort(compareComplainants)).toEqual([
      { account_id: 1, recipient: '"a+b c"@example.com', at: 6 },
      { account_id: 1, recipient: '+rita@example.com', at: 4 },
      { account_id: 1, recipient: 'rita@example.com', at: 9 },
      { account_id: 2, recipient: 'rita@example.com', at: 3 },
    ]);
  });

  test(`in the ${name} store the migration and the function toComplainant canonicalize every address in the same way`, async () => {
    const texts = fc.sample(addressText, { numRuns: selectCaseCount(200, 1_000), seed: 12 });
    const recipients = new Set(
      texts.map(parseAddress).flatMap((address) => (address === null ? [] : [toCanonicalAddress(address)])),
    );
    const complainants = await UPGRADES_BY_STORE[name](
      [...recipients].map((recipient) => createComplaint(recipient, 1)),
    );
    expect(new Set(complainants.map(({ recipient }) => recipient))).toEqual(
      new Set([...recipients].map(toComplainant)),
    );
  });
}
