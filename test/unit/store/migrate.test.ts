import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { StoreError } from '../../../src/store/error.ts';
import { listSchemaFiles, SCHEMA_FOLDER } from '../../../src/store/schema.ts';
import { backupDatabase } from '../../../src/store/sqlite/backup.ts';
import { openDatabase } from '../../../src/store/sqlite/database.ts';
import { acquireServeLock } from '../../../src/store/sqlite/files.ts';
import { openSqliteStore } from '../../../src/store/sqlite/store.ts';
import { createEngine } from '../../../src/store/sqlite/thread.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { NO_LIMITS } from '../../rig/messages.ts';
import { createSchemaFolder } from '../../rig/schema.ts';

const NEWEST_VERSION = listSchemaFiles(SCHEMA_FOLDER, 'sqlite').length;

const readVersion = (database: DatabaseSync) => database.prepare('PRAGMA user_version').get()?.user_version;

test('every migration is applied to a new file, and only the owner can read the file and its folder', async () => {
  const path = join(createTemporaryFolder(), 'deep/data/postrider.db');
  const database = openDatabase(path);
  onTestFinished(() => database.close());
  expect(readVersion(database)).toBe(NEWEST_VERSION);
  expect(await createEngine(database).operations.listAccounts()).toEqual([]);
  expect((statSync(path).mode & 0o777).toString(8)).toBe('600');
  expect((statSync(join(path, '..')).mode & 0o777).toString(8)).toBe('700');
});

test('the lock file of a service is readable only by its owner, because every user who can read it could lock it', () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const unlock = acquireServeLock(path);
  expect((statSync(`${path}-serve`).mode & 0o777).toString(8)).toBe('600');
  expect(() => acquireServeLock(path)).toThrow(StoreError);
  unlock();
  acquireServeLock(path)();
});

test('a newer schema than the supported one is refused with both version numbers, and the file is unchanged', () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  openDatabase(path).close();
  const newerDatabase = new DatabaseSync(path);
  newerDatabase.exec(`PRAGMA user_version = ${NEWEST_VERSION + 1}`);
  newerDatabase.close();
  const bytesBefore = readFileSync(path);
  expect(() => openDatabase(path)).toThrow(
    new RegExp(
      `has schema version ${NEWEST_VERSION + 1}, but this version of Postrider supports at most ${NEWEST_VERSION}\\.`,
    ),
  );
  expect(readFileSync(path).equals(bytesBefore)).toBe(true);
});

test('a database of another program is refused and unchanged', () => {
  const path = join(createTemporaryFolder(), 'diary.db');
  const otherDatabase = new DatabaseSync(path);
  otherDatabase.exec('CREATE TABLE diary (day TEXT); PRAGMA application_id = 7');
  otherDatabase.close();
  const bytesBefore = readFileSync(path);
  expect(() => openDatabase(path)).toThrow(/is not a Postrider database/);
  expect(readFileSync(path).equals(bytesBefore)).toBe(true);
});

function createOlderDatabase(): string {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const database = new DatabaseSync(path);
  database.exec('PRAGMA user_version = 0');
  database.close();
  return path;
}

test('an upgrade runs only the migrations that the database does not have', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  const olderDatabase = openDatabase(path);
  await createEngine(olderDatabase).operations.createAccount('default', NO_LIMITS, 1);
  olderDatabase.close();
  const folder = createSchemaFolder('sqlite', 'ALTER TABLE account ADD COLUMN more TEXT');
  const database = openDatabase(path, false, folder);
  onTestFinished(() => database.close());
  expect(readVersion(database)).toBe(NEWEST_VERSION + 1);
  expect(database.prepare('SELECT name, more FROM account').get()).toEqual({ name: 'default', more: null });
});

test('a failing migration changes nothing', () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  openDatabase(path).close();
  const folder = createSchemaFolder('sqlite', 'CREATE TABLE half (n INTEGER); CREATE TABLE account (n INTEGER)');
  expect(() => openDatabase(path, false, folder)).toThrow(/table account already exists/);
  const database = openDatabase(path);
  onTestFinished(() => database.close());
  expect(readVersion(database)).toBe(NEWEST_VERSION);
  expect(database.prepare("SELECT name FROM sqlite_schema WHERE name = 'half'").get()).toBeUndefined();
});

test('a store of version 0.1.0 is refused in one line, and is unchanged', () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  openDatabase(path).close();
  const oldDatabase = new DatabaseSync(path);
  oldDatabase.exec('ALTER TABLE installation RENAME TO meta; PRAGMA user_version = 25');
  oldDatabase.close();
  const bytesBefore = readFileSync(path);
  expect(() => openDatabase(path)).toThrow(/^[^\n]* is a store of Postrider 0\.1\.0, which this version cannot read\./);
  expect(readFileSync(path).equals(bytesBefore)).toBe(true);
});

test('while a service holds the lock, a command does not migrate the schema and names the remedy', () => {
  const path = createOlderDatabase();
  const unlock = acquireServeLock(path);
  onTestFinished(unlock);
  const openWithoutWait = () => openDatabase(path, false, SCHEMA_FOLDER, 0);
  expect(openWithoutWait).toThrow(/running service .* schema version 0, .* Restart the service/);
  const database = new DatabaseSync(path);
  onTestFinished(() => database.close());
  expect(readVersion(database)).toBe(0);
  // The service migrates the schema.
  openDatabase(path, true).close();
  expect(readVersion(database)).toBe(NEWEST_VERSION);
});

test('a second service does not change a database that another service uses', async () => {
  const path = createOlderDatabase();
  const unlock = acquireServeLock(path);
  onTestFinished(unlock);
  await expect(openSqliteStore({ path, exclusive: true })).rejects.toThrow(
    'another service, a restore or a transfer uses',
  );
  const database = new DatabaseSync(path);
  onTestFinished(() => database.close());
  expect(readVersion(database)).toBe(0);
});

test('both databases have migrations with the same numbers and names', () => {
  const listNames = (database: 'sqlite' | 'postgres') =>
    listSchemaFiles(SCHEMA_FOLDER, database).map(({ pathname }) => basename(pathname).replace(database, ''));
  expect(listNames('sqlite')).toEqual(listNames('postgres'));
});

test('the error message for an unusable lock file does not mention another service', () => {
  const folder = createTemporaryFolder();
  mkdirSync(join(folder, 'a.db-serve'));
  writeFileSync(join(folder, 'b.db-serve'), 'garbage '.repeat(1_000));
  for (const name of ['a.db', 'b.db']) {
    expect(() => acquireServeLock(join(folder, name))).toThrow(new RegExp(`cannot lock .*${name}-serve .*Check`));
  }
});

test('a backup of a damaged database is refused', async () => {
  const folder = createTemporaryFolder();
  const [path, draft] = [join(folder, 'postrider.db'), join(folder, 'draft')];
  openDatabase(path).close();
  const bytes = readFileSync(path);
  const database = new DatabaseSync(path);
  // SQLite does not read the page of a table while it copies the pages.
  const { rootpage } = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'audit'").get() ?? {};
  const { page_size: pageSize } = database.prepare('PRAGMA page_size').get() ?? {};
  database.close();
  const end = Number(rootpage) * Number(pageSize);
  writeFileSync(path, bytes.fill(0xff, end - Number(pageSize), end));
  writeFileSync(draft, '');
  await expect(backupDatabase(path, draft, 'the backup', () => undefined)).rejects.toThrow(/the backup is damaged/);
});
