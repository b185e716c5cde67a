/**
 * Tests a `restore` that finds files of an earlier run, is killed, or fails. The result is the complete old database,
 * the complete new database, or one line with the remedy.
 */
import { spawn } from 'node:child_process';
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
import { beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { acquireServeLock } from '../../src/store/sqlite/files.ts';
import { restoreDatabase } from '../../src/store/sqlite/restore.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { createEngine } from '../../src/store/sqlite/thread.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createMessage, NO_LIMITS } from '../rig/messages.ts';
import { IS_LONG_RUN } from '../rig/sample.ts';
import { runCommand, runJsonCommand, startProcess, submitAccepted } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const KILLED_RESTORE_PROGRAM = new URL('../rig/killed-restore.ts', import.meta.url).pathname;
const ONE_LINE = /^postrider: [^\n]+\n$/;
const EMBEDDED_SETTINGS = { POSTRIDER_DATABASE: 'sqlite:./data/postrider.db' };
const FILE_SUFFIXES = ['', '-wal', '-shm'] as const;

/** Returns the accounts of a database as a service reads them. */
async function readAccounts(path: string): Promise<readonly string[]> {
  const store = await openSqliteStore({ path, exclusive: true });
  try {
    return (await store.listAccounts()).map(({ name }) => name).sort();
  } finally {
    await store.close();
  }
}

function createDatabase(path: string, accounts: readonly string[]): void {
  const database = openDatabase(path);
  const { operations, run } = createEngine(database);
  for (const name of accounts) operations.createAccount(name, NO_LIMITS, 1);
  run([
    {
      number: 1,
      name: 'accept',
      args: [Array.from({ length: 50 }, () => createMessage({ message: 'x'.repeat(500) }))],
    },
  ]);
  database.close();
}

/** Creates a database whose account `in-the-log` is only in the `-wal` file, as after a SIGKILL. */
function createCrashedDatabase(path: string): void {
  const folder = createTemporaryFolder();
  const livePath = join(folder, 'live.db');
  const database = openDatabase(livePath);
  const { operations, run } = createEngine(database);
  operations.createAccount('old', NO_LIMITS, 1);
  run([{ number: 1, name: 'accept', args: [Array.from({ length: 50 }, () => createMessage())] }]);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  operations.createAccount('in-the-log', NO_LIMITS, 1);
  for (const suffix of FILE_SUFFIXES) copyFileSync(livePath + suffix, path + suffix);
  database.close();
}

let backup = '';
beforeAll(() => {
  const folder = rig.createFolder();
  backup = join(folder, 'saved.db');
  createDatabase(backup, ['new']);
});

const OLD_ACCOUNTS = ['in-the-log', 'old'];
const NEW_ACCOUNTS = ['new'];

/** Runs a restore that is killed before step number `step`. Resolves to its exit code or signal. */
function runKilledRestore(path: string, step: number, links: string): Promise<number | string> {
  const child = spawn(process.execPath, [KILLED_RESTORE_PROGRAM, backup, path, String(step), links], {
    stdio: 'ignore',
  });
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? code ?? 'unknown')));
}

/** The states of a database before its restore, with the functions that create them. */
const DATABASE_STATES = {
  'whose log is only in the -wal file': createCrashedDatabase,
  'that is damaged': (path: string) => {
    createCrashedDatabase(path);
    writeFileSync(path, Buffer.alloc(20_000, 'garbage '));
  },
  'whose file is missing': (path: string) => {
    createCrashedDatabase(path);
    rmSync(path);
  },
  'on a new machine': () => undefined,
} as const satisfies Record<string, (path: string) => void>;

/** State of the database, support for hard links, and accounts of the old database (null if it cannot be read). */
const CASES = [
  ['whose log is only in the -wal file', 'links', OLD_ACCOUNTS],
  ['that is damaged', 'links', null],
  ['on a new machine', 'links', []],
] as const;
const LONG_RUN_CASES = [
  ['whose log is only in the -wal file', 'no-links', OLD_ACCOUNTS],
  ['whose file is missing', 'links', null],
] as const;

describe.each(IS_LONG_RUN ? [...CASES, ...LONG_RUN_CASES] : CASES)(
  'a restore of a database %s (%s), killed at every step',
  (databaseState, links, expectedAccounts) => {
    // A kill before a step has the same effect as a kill after the previous step.
    test('results in the complete old or new database, or in one line with the remedy', async () => {
      let refusalCount = 0;
      for (let step = 1; ; step += 1) {
        const path = join(createTemporaryFolder(), 'postrider.db');
        DATABASE_STATES[databaseState](path);
        const exitResult = await runKilledRestore(path, step, links);
        if (exitResult === 0) {
          expect(await readAccounts(path)).toEqual(NEW_ACCOUNTS);
          expect(step).toBeGreaterThan(4);
          break;
        }
        expect(exitResult).toBe('SIGKILL');
        const foundAccounts = await readAccounts(path).catch((error: Error) => error.message);
        if (typeof foundAccounts === 'string') {
          refusalCount += 1;
          // The line names `postrider restore FILE`, or reports the earlier damage of the database.
          expect(foundAccounts).toMatch(/restore/i);
          restoreDatabase(backup, path, new Date());
          expect(await readAccounts(path)).toEqual(NEW_ACCOUNTS);
          if (databaseState === 'whose log is only in the -wal file') {
            // The old database is complete under its new name. The folder may also contain files of the killed restore.
            const names = readdirSync(join(path, '..')).filter((name) => /\.before-[^.]+Z$/.test(name));
            const accountLists = await Promise.all(names.map((name) => readAccounts(join(path, '..', name))));
            expect(accountLists).toContainEqual(OLD_ACCOUNTS);
          }
          if (databaseState === 'that is damaged') {
            const names = readdirSync(join(path, '..')).filter((name) => name.includes('.before-'));
            for (const suffix of ['Z', 'Z-wal', 'Z-shm'])
              expect(names.some((name) => name.endsWith(suffix))).toBe(true);
          }
        } else if (foundAccounts.length === 0) {
          // An empty store is correct only if there was no database before the restore.
          expect([databaseState, expectedAccounts]).toEqual(['on a new machine', []]);
        } else if (expectedAccounts === null) expect(foundAccounts).toEqual(NEW_ACCOUNTS);
        else expect([OLD_ACCOUNTS, NEW_ACCOUNTS]).toContainEqual(foundAccounts);
        expect(readdirSync(join(path, '..')).filter((name) => /\.restor/.test(name) && !existsSync(path))).toEqual([]);
      }
      if (databaseState !== 'whose log is only in the -wal file' || links === 'no-links')
        expect(refusalCount).toBeGreaterThan(0);
      else expect(refusalCount).toBe(0);
    });
  },
);

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
    for (const command of [['serve'], ['account', 'list'], ['backup', 'x.db']]) {
      const { code, stdout, stderr } = await runCommand(folder, command, EMBEDDED_SETTINGS);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(ONE_LINE);
      expect(stderr).toMatch(/(missing|empty), but its log .*-wal exists.*postrider restore FILE/);
    }
    const doctor = await runCommand(folder, ['doctor'], EMBEDDED_SETTINGS);
    expect(doctor.stdout).not.toContain('not there yet');
    expect((await runCommand(folder, ['restore', backup], EMBEDDED_SETTINGS)).code).toBe(0);
    expect(await readAccounts(path)).toEqual(NEW_ACCOUNTS);
  },
);

test('serve refuses to start if the database is missing and an earlier version has left the temporary file of a restore', async () => {
  const path = join(createTemporaryFolder(), 'postrider.db');
  copyFileSync(backup, `${path}.restore`);
  await expect(readAccounts(path)).rejects.toThrow(/missing, and an interrupted restore has left .*\.restore\. Run/);
  restoreDatabase(backup, path, new Date());
  expect(await readAccounts(path)).toEqual(NEW_ACCOUNTS);
  expect(existsSync(`${path}.restore`)).toBe(false);
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

test('at least one of two concurrent restores succeeds, a failed restore prints one line, and the database is complete', async () => {
  const folder = createTemporaryFolder();
  mkdirSync(join(folder, 'data'));
  createCrashedDatabase(join(folder, 'data/postrider.db'));
  const restoreResults = await Promise.all(
    [1, 2].map(() => runCommand(folder, ['restore', backup], EMBEDDED_SETTINGS)),
  );
  expect(restoreResults.some(({ code }) => code === 0)).toBe(true);
  for (const { code, stderr } of restoreResults)
    if (code !== 0) expect(stderr).toMatch(/^postrider: another service, a restore or a transfer uses [^\n]+\n$/);
  expect(await readAccounts(join(folder, 'data/postrider.db'))).toEqual(NEW_ACCOUNTS);
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
      const steps = {
        link: linkSync,
        rename: renameSync,
        remove: rmSync,
        sync: () => undefined,
        write: () => undefined,
      };
      const realWrite =
        failingCall === 'write' ? {} : { write: (file: number, bytes: Uint8Array) => writeFileSync(file, bytes) };
      expect(() =>
        restoreDatabase(backup, path, new Date(), { ...steps, ...realWrite, [failingCall]: failCall }),
      ).toThrow(code === 'ENOSPC' ? /^the disk of .* is full/ : /^cannot restore .*restore again\.$/);
      expect(await readAccounts(path)).toEqual(OLD_ACCOUNTS);
    }
  },
);

test('a restore onto a full disk fails with one line, and the database is unchanged', async () => {
  const folder = createTemporaryFolder();
  const firstService = await startProcess(folder, EMBEDDED_SETTINGS);
  const id = await submitAccepted(firstService.publicUrl, firstService.key ?? '');
  firstService.kill('SIGKILL');
  await firstService.exitPromise;
  const bigDatabase = join(folder, 'big.db');
  createDatabase(bigDatabase, ['new']);
  const database = new DatabaseSync(bigDatabase);
  database.exec('CREATE TABLE filler AS SELECT randomblob(3000000) AS bytes');
  database.close();
  const script = `trap '' XFSZ; ulimit -f 3000; exec '${process.execPath}' '${new URL('../../bin/postrider.js', import.meta.url).pathname}' restore big.db`;
  const child = spawn('/bin/sh', ['-c', script], { cwd: folder, env: { ...process.env, ...EMBEDDED_SETTINGS } });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(1);
  expect(stderr).toMatch(/^postrider: [^\n]*full[^\n]*\n$/);
  const list = await runJsonCommand<{ id: string }[]>(folder, ['message', 'list'], EMBEDDED_SETTINGS);
  expect(list.map((message) => message.id)).toEqual([id]);
});

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
