import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { restoreDatabase } from '../../src/store/sqlite/restore.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { createCrashedDatabase, createDatabase, OLD_ACCOUNTS, readAccounts } from '../rig/restored-databases.ts';
import { runCommandProcess } from '../rig/service.ts';
import { createScenario } from '../scenarios/running-service.ts';

const rig = createScenario();
const KILLED_RESTORE_PROGRAM = new URL('../rig/killed-restore.ts', import.meta.url).pathname;

let backup = '';
beforeAll(() => {
  const folder = rig.createFolder();
  backup = join(folder, 'saved.db');
  createDatabase(backup, ['new']);
});

const NEW_ACCOUNTS = ['new'];

function runKilledRestore(path: string, step: number, links: string): Promise<number | string> {
  const child = spawn(process.execPath, [KILLED_RESTORE_PROGRAM, backup, path, String(step), links], {
    stdio: 'ignore',
  });
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? code ?? 'unknown')));
}

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
  ['whose log is only in the -wal file', 'no-links', OLD_ACCOUNTS],
  ['whose file is missing', 'links', null],
] as const;

describe.each(CASES)(
  'a restore of a database %s (%s), killed at every step',
  (databaseState, links, expectedAccounts) => {
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

test('at least one of two concurrent restores succeeds, a failed restore prints one line, and the database is complete', async () => {
  const folder = createTemporaryFolder();
  mkdirSync(join(folder, 'data'));
  createCrashedDatabase(join(folder, 'data/postrider.db'));
  const restoreResults = await Promise.all([1, 2].map(() => runCommandProcess(folder, ['restore', backup])));
  expect(restoreResults.some(({ code }) => code === 0)).toBe(true);
  for (const { code, stderr } of restoreResults)
    if (code !== 0) expect(stderr).toMatch(/^postrider: another service, a restore or a transfer uses [^\n]+\n$/);
  expect(await readAccounts(join(folder, 'data/postrider.db'))).toEqual(NEW_ACCOUNTS);
});
