/**
 * `restore` that is killed (SIGKILL) at its Nth step that changes names or content: before it. Run as
 * `node killed-restore.ts BACKUP DATABASE STEP links|no-links`; ends with 0 where there are fewer steps.
 */
import { linkSync, renameSync, rmSync, writeSync } from 'node:fs';
import { syncPath } from '../../src/store/sqlite/files.ts';
import { type RestoreSteps, restoreDatabase } from '../../src/store/sqlite/restore.ts';

const [backup = '', database = '', step = '', links = ''] = process.argv.slice(2);
let left = Number(step);

function mortal<Args extends readonly unknown[]>(act: (...args: Args) => void): (...args: Args) => void {
  return (...args) => {
    left -= 1;
    if (left === 0) process.kill(process.pid, 'SIGKILL');
    act(...args);
  };
}

const steps: RestoreSteps = {
  link: mortal((from: string, to: string) => {
    if (links === 'no-links') throw Object.assign(new Error('no hard links here'), { code: 'EPERM' });
    linkSync(from, to);
  }),
  rename: mortal((from: string, to: string) => renameSync(from, to)),
  remove: mortal((path: string) => rmSync(path, { force: true })),
  sync: mortal(syncPath),
  write: mortal((file: number, bytes: Uint8Array) => void writeSync(file, bytes)),
};

restoreDatabase(backup, database, new Date(), steps);
