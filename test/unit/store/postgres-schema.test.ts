/**
 * Compares the schema that the migrations produce, as the server's catalog describes it, with the recorded schema. The
 * test runs on the oldest and on the newest supported PostgreSQL, and thus checks that both have the same schema. A new
 * migration changes postgres-schema.txt: `vitest run --project sqlite test/unit/store/postgres-schema.test.ts --update`
 * records the new schema.
 */
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { createPool } from '../../../src/store/postgres/database.ts';
import { migrate } from '../../../src/store/postgres/migrate.ts';
import { createTemporaryDatabase } from '../../rig/postgres.ts';
import { parsePostgresUrl } from '../../rig/stores.ts';

/**
 * Returns one row of text for each relation, column, index, constraint, sequence, routine and trigger of the schema. Later
 * versions of PostgreSQL also list NOT NULL as a constraint. The recorded schema lists it as a property of the column.
 */
const DESCRIBE_SCHEMA = `
SELECT format('%s %s: kind %s, persistence %s, options %s, partition %s%s', 'relation', c.relname, c.relkind,
    c.relpersistence, coalesce(c.reloptions::text, 'none'), coalesce(pg_get_expr(c.relpartbound, c.oid), 'none'),
    coalesce(', partitioned by ' || pg_get_partkeydef(c.oid), '')) AS fact
  FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind <> 'i' AND c.relkind <> 'I'
UNION ALL
SELECT format('column %s.%s: %s %s, not null %s, storage %s, compression %s, collation %s, identity %s, default %s', c.relname,
    lpad(a.attnum::text, 2, '0'), quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage,
    coalesce(nullif(a.attcompression::text, ''), 'default'), coalesce(l.collname, 'none'),
    coalesce(nullif(a.attidentity::text, ''), 'none'), coalesce(pg_get_expr(d.adbin, d.adrelid), 'none'))
  FROM pg_attribute a
  JOIN pg_class c ON c.oid = a.attrelid
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT format('index %s: %s', c.relname, pg_get_indexdef(c.oid))
  FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('i', 'I')
UNION ALL
SELECT format('constraint %s.%s: %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE connamespace = current_schema()::regnamespace AND contype <> 'n'
UNION ALL
SELECT format('sequence %s: %s from %s by %s, %s to %s, cache %s, cycle %s', sequencename, data_type, start_value, increment_by,
    min_value, max_value, cache_size, cycle)
  FROM pg_sequences WHERE schemaname = current_schema()
UNION ALL
SELECT format('routine %s: %s', oid::regprocedure, prosrc) FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
UNION ALL
SELECT format('trigger %s.%s: %s', tgrelid::regclass, tgname, pg_get_triggerdef(oid)) FROM pg_trigger WHERE NOT tgisinternal`;

test('the migrations produce the recorded schema on every supported version of PostgreSQL', async () => {
  const url = await createTemporaryDatabase();
  const setting = parsePostgresUrl(url);
  if (setting.kind !== 'postgres') throw new Error('no PostgreSQL URL');
  const pool = createPool({ setting, application: 'postrider test', random: Math.random });
  onTestFinished(() => pool.close());
  await migrate(pool);
  const client = new pg.Client({ connectionString: url });
  onTestFinished(() => client.end());
  await client.connect();
  const { rows } = await client.query<{ fact: string }>(DESCRIBE_SCHEMA);
  const facts = rows.map(({ fact }) => fact).sort();
  await expect(`${facts.join('\n')}\n`).toMatchFileSnapshot('postgres-schema.txt');
});
