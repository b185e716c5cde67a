import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const LAUNCHER = join(import.meta.dirname, '../../../bin/postrider.js');

it('with an old version of Node.js, the launcher prints one line with the required version and the remedy', () => {
  const oldVersionModule =
    'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.11.1"}})';
  const launcherRun = spawnSync(process.execPath, ['--import', oldVersionModule, LAUNCHER, 'config'], {
    encoding: 'utf8',
  });
  expect(launcherRun.stderr).toMatch(/^postrider: needs Node 24\.21 or later, [^\n]*npm start[^\n]*\n$/);
  expect({ status: launcherRun.status, stdout: launcherRun.stdout }).toEqual({ status: 1, stdout: '' });
});

it('the launcher uses no syntax that old versions of Node.js cannot parse', () => {
  const code = readFileSync(LAUNCHER, 'utf8');
  expect(code).not.toMatch(/\?\.|\?\?|^\s*await |^import /m);
});
