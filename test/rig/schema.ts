import { copyFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SCHEMA_FOLDER } from '../../src/store/schema.ts';
import { createTemporaryFolder } from './folder.ts';

export function createSchemaFolder(database: 'sqlite' | 'postgres', sql: string): URL {
  const folder = createTemporaryFolder();
  for (const name of readdirSync(SCHEMA_FOLDER)) copyFileSync(new URL(name, SCHEMA_FOLDER), join(folder, name));
  writeFileSync(join(folder, `${database}-9999-next.sql`), sql);
  return pathToFileURL(`${folder}/`);
}
