/**
 * Lists the files of the schema. In schema/, `sqlite.sql` and `postgres.sql` are version 1. A later change is a migration for
 * both databases with the same number, `sqlite-0002-NAME.sql` and `postgres-0002-NAME.sql`. A migration that has run is never
 * changed in what it produces.
 */
import { readdirSync } from 'node:fs';

export const SCHEMA_FOLDER = new URL('./schema/', import.meta.url);

/** Returns the files of a database in the order of their versions: the first file is version 1. */
export function listSchemaFiles(folder: URL, database: 'sqlite' | 'postgres'): readonly URL[] {
  return (
    readdirSync(folder)
      .filter((name) => name === `${database}.sql` || (name.startsWith(`${database}-`) && name.endsWith('.sql')))
      // `.` sorts after `-`, so version 1 would be the last.
      .sort((a, b) => Number(a.startsWith(`${database}-`)) - Number(b.startsWith(`${database}-`)) || (a < b ? -1 : 1))
      .map((name) => new URL(name, folder))
  );
}

/** The error for a store of version 0.1.0, whose schema no later version reads. */
export function createOldStoreText(store: string): string {
  return `${store} is a store of Postrider 0.1.0, which this version cannot read. Set POSTRIDER_DATABASE to a new database, or run version 0.1.0.`;
}
