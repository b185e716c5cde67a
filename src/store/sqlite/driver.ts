import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { StoreError } from '../error.ts';
import type { Transaction } from '../transaction.ts';

const TRANSLATIONS: readonly (readonly [RegExp, string])[] = [
  [/::[a-z0-9]+(\[\])?/g, ''],
  [/\$(\d+)/g, '?$1'],
  [/ FOR (NO KEY )?UPDATE( OF \w+)?( SKIP LOCKED)?/g, ''],
  [/ COLLATE "C"/g, ''],
  [/\bctid\b/g, 'rowid'],
  [/= ANY\(ARRAY\(/g, 'IN (SELECT * FROM ('],
  [/= ANY\((\?\d+)\)/g, 'IN (SELECT value FROM json_each($1))'],
  [/\bjson_array_elements\((\?\d+)\) AS (\w+)\(value\)/g, 'json_each($1) AS $2'],
  [/\bgreatest\(/g, 'max('],
  [/\bjson_build_object\(/g, 'json_object('],
  [/\bjson_agg\(/g, 'json_group_array('],
];

/** Translates a statement of PostgreSQL. SQLite has one writer, needs no locks, and compares text by bytes. */
export function toSqlite(sql: string): string {
  return TRANSLATIONS.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), sql);
}

/** Runs the statements of the shared modules on one connection. Each text is translated and prepared once, except of statements without a name. */
export function createSqliteTransaction(database: DatabaseSync): Transaction {
  const statements = new Map<string, StatementSync>();
  return {
    dialect: 'sqlite',
    slot: 0,
    async query(statement, values = []) {
      const text = typeof statement === 'string' ? statement : statement.text;
      let prepared = statements.get(text);
      if (prepared === undefined) {
        prepared = database.prepare(toSqlite(text));
        if (typeof statement === 'string') statements.set(text, prepared);
      }
      return prepared.all(...values.map(toSqliteValue));
    },
  };
}

function toSqliteValue(value: unknown): SQLInputValue {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (Array.isArray(value)) return JSON.stringify(value);
  if (value === null || typeof value === 'string' || typeof value === 'number' || value instanceof Uint8Array)
    return value;
  throw new StoreError(`a value of type ${typeof value} cannot be stored.`);
}
