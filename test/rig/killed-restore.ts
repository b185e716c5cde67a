import { linkSync, renameSync, rmSync, writeSync } from 'node:fs';
import { syncPath } from '../../src/store/sqlite/files.ts';
import { type RestoreSteps, restoreDatabase } from '../../src/store/sqlite/restore.ts';

const [backup = '', database = '', step = '', linkMode = ''] = process.argv.slice(2);
let remainingStepCount = Number(step);

function countStep<Args extends readonly unknown[]>(runStep: (...args: Args) => void): (...args: Args) => void {
  return (...args) => {
    remainingStepCount -= 1;
    if (remainingStepCount === 0) process.kill(process.pid, 'SIGKILL');
    runStep(...args);
  };
}

const steps: RestoreSteps = {
  link: countStep((from: string, to: string) => {
    if (linkMode === 'no-links') throw Object.assign(new Error('no hard links here'), { code: 'EPERM' });
    linkSync(from, to);
  }),
  rename: countStep((from: string, to: string) => renameSync(from, to)),
  remove: countStep((path: string) => rmSync(path, { force: true })),
  sync: countStep(syncPath),
  write: countStep((file: number, bytes: Uint8Array) => void writeSync(file, bytes)),
};

restoreDatabase(backup, database, new Date(), steps);
