/** Tests `npm start` as a supervisor uses it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { ROOT } from '../house/source.ts';
import { createTemporaryFolder } from '../rig/folder.ts';
import { buildEnvironment } from '../rig/service.ts';

test('`npm start` that is ended by SIGTERM leaves no process behind', async () => {
  const env = buildEnvironment({ POSTRIDER_DATABASE: `sqlite:${join(createTemporaryFolder(), 'postrider.db')}` });
  const npm = spawn('npm', ['start', '--silent', '--', '--json'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const exitPromise = once(npm, 'exit');
  onTestFinished(() => {
    try {
      process.kill(-(npm.pid ?? 0), 'SIGKILL');
    } catch {
      // The whole group has ended.
    }
  });
  const [firstLine] = (await once(createInterface(npm.stdout), 'line')) as [string];
  const { publicUrl } = JSON.parse(firstLine) as { publicUrl: string };
  npm.kill('SIGTERM');
  await exitPromise;
  await expect
    .poll(() =>
      fetch(`${publicUrl}/healthz`).then(
        () => 'served',
        () => 'refused',
      ),
    )
    .toBe('refused');
});
