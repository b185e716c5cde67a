/** Tests that the server reads the same values from array parameters in binary format as in text format. */
import { expect, onTestFinished, test } from 'vitest';
import { encodeArray } from '../../../src/store/postgres/connection.ts';
import { createPool } from '../../../src/store/postgres/database.ts';
import { createTemporaryDatabase } from '../../rig/postgres.ts';
import { parsePostgresUrl } from '../../rig/stores.ts';

const SELECT_ROWS = {
  name: 'test_rows',
  text: `SELECT u::text, t, i, b FROM unnest($1::uuid[], $2::text[], $3::int[], $4::bigint[]) WITH ORDINALITY
    AS r(u, t, i, b, o) ORDER BY o`,
};
const SELECT_LENGTHS = {
  name: 'test_lengths',
  text: 'SELECT cardinality($1::text[]) AS texts, cardinality($2::bigint[]) AS numbers',
};

async function openPool() {
  const setting = parsePostgresUrl(await createTemporaryDatabase());
  if (setting.kind !== 'postgres') throw new Error('not a PostgreSQL');
  const connectionPool = createPool({
    setting,
    application: 'postrider test',
    random: Math.random,
  });
  onTestFinished(() => connectionPool.close());
  return connectionPool;
}

test('the server receives every element unchanged: nulls, empty texts, quotes, non-Latin text, and the limits of each range', async () => {
  const columns = [
    [
      '01234567-89ab-7def-8123-456789abcdef',
      null,
      'ffffffff-ffff-ffff-ffff-ffffffffffff',
      '00000000000070008000000000000000',
    ],
    ['', 'NULL', 'a "quoted" \\ one, {with} braces\r\n', 'größer 日本 🚚'],
    [-(2 ** 31), 2 ** 31 - 1, 0, null],
    [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, -1, 2 ** 32],
  ];
  const rows = await (await openPool()).query(SELECT_ROWS, columns);
  expect(rows.map(({ u, t, i, b }) => [u, t, i, b])).toEqual([
    ['01234567-89ab-7def-8123-456789abcdef', '', -(2 ** 31), Number.MIN_SAFE_INTEGER],
    [null, 'NULL', 2 ** 31 - 1, Number.MAX_SAFE_INTEGER],
    ['ffffffff-ffff-ffff-ffff-ffffffffffff', 'a "quoted" \\ one, {with} braces\r\n', 0, -1],
    ['00000000-0000-7000-8000-000000000000', 'größer 日本 🚚', null, 2 ** 32],
  ]);
});

test('the server receives an empty array without elements', async () => {
  expect(await (await openPool()).query(SELECT_LENGTHS, [[], []])).toEqual([{ texts: 0, numbers: 0 }]);
});

test('a value that does not fit its type is sent to the server, which refuses it', async () => {
  expect(encodeArray('int', [2 ** 31])).toBeNull();
  expect(encodeArray('int', [1.5])).toBeNull();
  expect(encodeArray('bigint', [2 ** 60])).toBeNull();
  expect(encodeArray('uuid', ['no id'])).toBeNull();
  expect(encodeArray('uuid', [`${'0'.repeat(31)}g`])).toBeNull();
  expect(encodeArray('text', [1])).toBeNull();
  const connectionPool = await openPool();
  await expect(connectionPool.query(SELECT_ROWS, [['no id'], [''], [1], [1]])).rejects.toThrow('uuid');
  await expect(connectionPool.query(SELECT_LENGTHS, [['a\0b'], []])).rejects.toThrow();
});
