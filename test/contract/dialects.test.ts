import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readBoolean } from '../../src/store/rules/rows.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { createSqliteTransaction } from '../../src/store/sqlite/driver.ts';
import type { Row, Transaction } from '../../src/store/transaction.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createTemporaryDatabase } from '../rig/postgres.ts';
import { createTestPool } from '../rig/stores.ts';

const LIST = 'json_array_elements($1::json) AS e(value)';
const NAMES = JSON.stringify([
  { name: 'b', n: 2 },
  { name: 'B', n: 9_007_199_254_740_991 },
  { name: 'ä', n: null },
]);

const CASES: readonly { title: string; sql: string; values?: readonly unknown[]; rows: readonly Row[] }[] = [
  {
    title: 'an int8 is a number',
    sql: 'SELECT $1::bigint AS n',
    values: [9_007_199_254_740_991],
    rows: [{ n: 9_007_199_254_740_991 }],
  },
  {
    title: 'text is ordered by bytes',
    sql: `SELECT e.value->>'name' AS name FROM ${LIST} ORDER BY e.value->>'name' COLLATE "C"`,
    values: [NAMES],
    rows: [{ name: 'B' }, { name: 'b' }, { name: 'ä' }],
  },
  {
    title: 'the order of null is stated',
    sql: `SELECT (e.value->>'n')::bigint AS n FROM ${LIST} ORDER BY (e.value->>'n')::bigint NULLS LAST`,
    values: [NAMES],
    rows: [{ n: 2 }, { n: 9_007_199_254_740_991 }, { n: null }],
  },
  {
    title: 'an array selects rows',
    sql: `SELECT (e.value->>'n')::bigint AS n FROM ${LIST} WHERE e.value->>'name' = ANY($2::text[])`,
    values: [NAMES, ['b', 'c']],
    rows: [{ n: 2 }],
  },
  {
    title: 'an empty array selects no row',
    sql: `SELECT 1 AS n FROM ${LIST} WHERE e.value->>'name' = ANY($2::text[])`,
    values: [NAMES, []],
    rows: [],
  },
  {
    title: 'objects are aggregated in order',
    sql: `SELECT coalesce(json_agg(json_build_object('n', (e.value->>'n')::bigint) ORDER BY e.value->>'name' COLLATE "C"), '[]')::text AS list
      FROM ${LIST} WHERE e.value->>'name' <> 'ä'`,
    values: [NAMES],
    rows: [{ list: [{ n: 9_007_199_254_740_991 }, { n: 2 }] }],
  },
  {
    title: 'no objects are an empty list',
    sql: `SELECT coalesce(json_agg(json_build_object('n', 1)), '[]')::text AS list FROM ${LIST}`,
    values: ['[]'],
    rows: [{ list: [] }],
  },
  {
    title: 'the greater text by bytes',
    sql: 'SELECT greatest($1::text COLLATE "C", $2::text COLLATE "C") AS n',
    values: ['b', 'B'],
    rows: [{ n: 'b' }],
  },
  {
    title: 'null equals null with IS DISTINCT FROM',
    sql: 'SELECT 1 AS n WHERE NOT ($1::text IS DISTINCT FROM $2::text)',
    values: [null, null],
    rows: [{ n: 1 }],
  },
  {
    title: 'a division of casts is one of integers',
    sql: 'SELECT cast($1 AS bigint) / cast($2 AS bigint) AS n',
    values: [7, 2],
    rows: [{ n: 3 }],
  },
];

function openSqlite(): Transaction {
  const database = openDatabase(join(createTemporaryFolder(), 'postrider.db'));
  onTestFinished(() => database.close());
  return createSqliteTransaction(database);
}

const openPostgres = async (): Promise<Transaction> => createTestPool(await createTemporaryDatabase());

const parseLists = (found: readonly Row[]) =>
  found.map((row) => ({ ...row, ...(typeof row.list === 'string' ? { list: JSON.parse(row.list) } : {}) }));

test.each([
  ['SQLite', openSqlite],
  ['PostgreSQL', openPostgres],
])('on %s, statements have the results that the shared modules rely on', async (_name, open) => {
  const tx = await open();
  for (const { title, sql, values, rows } of CASES)
    expect([title, parseLists(await tx.query(sql, values))]).toEqual([title, rows]);
  const [row = {}] = await tx.query('SELECT $1::boolean AS yes, $2::boolean AS no', [true, false]);
  expect([readBoolean(row, 'yes'), readBoolean(row, 'no')]).toEqual([true, false]);
});
