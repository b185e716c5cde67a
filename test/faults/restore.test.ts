import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { acquireServeLock } from '../../src/store/sqlite/files.ts';
import { restoreDatabase } from '../../src/store/sqlite/restore.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createCrashedDatabase, createDatabase, OLD_ACCOUNTS, readAccounts } from '../rig/restored-databases.ts';
import { runCommand } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const ONE_LINE = /^postrider: [^\n]+\n$/;

let backup = '';
beforeAll(() => {
  const folder = rig.createFolder();
  backup = join(folder, 'saved.db');
  createDatabase(backup, ['new']);
});

const NEW_ACCOUNTS = ['new'];

test('a restore does not replay an existing -wal file, and keeps the file', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  createCrashedDatabase(path);
  const log = readFileSync(`${path}-wal`);
  rmSync(path);
  const keptPath = restoreDatabase(backup, path, new Date());
  expect(await readAccounts(path)).toEqual(NEW_ACCOUNTS);
  const database = new DatabaseSync(path);
  expect(database.prepare('PRAGMA integrity_check').get()?.integrity_check).toBe('ok');
  database.close();
  expect(readFileSync(`${keptPath}-wal`).equals(log)).toBe(true);
  expect(existsSync(`${keptPath}-shm`)).toBe(true);
});

test.each(['missing', 'empty'])(
  'serve, account list and backup refuse a database file that is %s although its log exists, and a restore succeeds',
  async (fileState) => {
    const folder = createTemporaryFolder();
    mkdirSync(join(folder, 'data'));
    const path = join(folder, 'data/postrider.db');
    createCrashedDatabase(path);
    rmSync(path);
    if (fileState === 'empty') writeFileSync(path, '');
    const refusal = /(missing|empty), but its log .*-wal exists.*postrider restore FILE/;
    await expect(rig.serve(folder)).rejects.toThrow(refusal);
    for (const command of ['account list', 'backup x.db']) {
      const { code, stdout, stderr } = await runCommand(folder, command.split(' '));
      expect([code, stdout]).toEqual([1, '']);
      for (const pattern of [ONE_LINE, refusal]) expect(stderr).toMatch(pattern);
    }
    const doctor = await runCommand(folder, ['doctor']);
    expect(doctor.stdout).not.toContain('not there yet');
    expect((await runCommand(folder, ['restore', backup])).code).toBe(0);
    expect(await readAccounts(path)).toEqual(NEW_ACCOUNTS);
  },
);

test('serve refuses to start if the database is missing and a restore has left its temporary file', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  copyFileSync(backup, `${path}.restore-0123456789ab`);
  await expect(readAccounts(path)).rejects.toThrow(
    /missing, and an interrupted restore has left .*\.restore-0123456789ab\. Run/,
  );
  restoreDatabase(backup, path, new Date());
  expect(await readAccounts(path)).toEqual(NEW_ACCOUNTS);
  expect(existsSync(`${path}.restore-0123456789ab`)).toBe(false);
});

test('a database that a restore has preserved can be restored, including the content of its log', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  createCrashedDatabase(path);
  const keptPath = join(createTemporaryFolder(), 'kept.db');
  createCrashedDatabase(keptPath);
  restoreDatabase(backup, path, new Date());
  restoreDatabase(keptPath, path, new Date());
  expect(await readAccounts(path)).toEqual(OLD_ACCOUNTS);
});

test('a restore preserves the complete old database in one file, by a hard link, and only the owner can read the new database', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  createCrashedDatabase(path);
  const inodeBefore = statSync(path).ino;
  const keptPath = restoreDatabase(backup, path, new Date(0)) ?? '';
  expect(keptPath).toBe(`${path}.before-1970-01-01T00-00-00-000Z`);
  expect([statSync(keptPath).ino, statSync(keptPath).nlink, existsSync(`${keptPath}-wal`)]).toEqual([
    inodeBefore,
    1,
    false,
  ]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(await readAccounts(keptPath)).toEqual(OLD_ACCOUNTS);
  expect(readdirSync(join(path, '..')).filter((name) => name.includes('.restor'))).toEqual([]);
});

test('a restore is refused and changes nothing if the backup is the database itself, or if another process has the database open', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  createDatabase(path, ['old']);
  expect(() => restoreDatabase(path, path, new Date())).toThrow(/is the database itself/);
  const releaseLock = acquireServeLock(path);
  expect(() => restoreDatabase(backup, path, new Date())).toThrow(/another service, a restore or a transfer uses .*/);
  releaseLock();
  const openedDatabase = openDatabase(path);
  expect(() => restoreDatabase(backup, path, new Date())).toThrow(/another process has .* open.*restore again/i);
  openedDatabase.close();
  expect(await readAccounts(path)).toEqual(['old']);
  expect(readdirSync(join(path, '..')).filter((name) => name.includes('.restor'))).toEqual([]);
});

test.each(['ENOSPC', 'EACCES', 'EIO'])(
  'a restore that fails with %s reports the error in one line, and the old database is unchanged',
  async (code) => {
    for (const failingCall of ['write', 'sync', 'link', 'rename'] as const) {
      const path = join(createTemporaryFolder(), 'postrider.db');
      createCrashedDatabase(path);
      const failCall = () => {
        throw Object.assign(new Error('no'), { code });
      };
      const noStep = () => undefined;
      const steps = { link: linkSync, rename: renameSync, remove: rmSync, sync: noStep, write: noStep };
      const realWrite =
        failingCall === 'write' ? {} : { write: (file: number, bytes: Uint8Array) => writeFileSync(file, bytes) };
      expect(() =>
        restoreDatabase(backup, path, new Date(), { ...steps, ...realWrite, [failingCall]: failCall }),
      ).toThrow(code === 'ENOSPC' ? /^the disk of .* is full/ : /^cannot restore .*restore again\.$/);
      expect(await readAccounts(path)).toEqual(OLD_ACCOUNTS);
    }
  },
);

test('an error names a backup that cannot be read, and the database is unchanged', () => {
  const folder = createTemporaryFolder();
  const path = join(folder, 'postrider.db');
  // On Linux the unreadable file is `/proc/self/mem`. Even root cannot read it at offset 0, because no page is mapped
  // at address 0. On other systems it is a file without permissions, which only root can read.
  const unreadablePath = process.platform === 'linux' ? '/proc/self/mem' : join(folder, 'unreadable');
  if (process.platform !== 'linux') writeFileSync(unreadablePath, 'x', { mode: 0 });
  createDatabase(path, ['old']);
  const bytesBefore = readFileSync(path);
  expect(() => restoreDatabase(unreadablePath, path, new Date())).toThrow(`cannot read ${unreadablePath} (`);
  expect(readFileSync(path).equals(bytesBefore)).toBe(true);
});

test('a restore into a folder without write access fails with one line', () => {
  // Even root cannot create files in `/proc`.
  expect(() => restoreDatabase(backup, '/proc/postrider.db', new Date())).toThrow(/^cannot lock [^\n]+$/);
  const file = join(createTemporaryFolder(), 'file');
  writeFileSync(file, '');
  expect(() => restoreDatabase(backup, join(file, 'postrider.db'), new Date())).toThrow(
    /^cannot create the folder [^\n]+$/,
  );
});
