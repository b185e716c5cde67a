import { expect, test } from 'vitest';
import type { Setup } from '../../../src/operations/setup.ts';
import { createCommandRig } from './command-rig.ts';

test('`setup` prints each step with its state, and the command of each open step', async () => {
  const rig = await createCommandRig();
  const { stdout, code } = await rig.run('setup');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^STEP +STATE +DETAIL\n/);
  expect(stdout).toMatch(/^Send a test message +open /m);
  expect(stdout).toMatch(/^Add a sending domain +not needed /m);
  expect(stdout).toMatch(/^Send events to your application +optional /m);
  const { steps, openCount } = await rig.runJson<Setup>('setup');
  const commands = steps.flatMap(({ state, command }) => (state === 'open' && command !== null ? [command] : []));
  expect(commands).toHaveLength(openCount);
  for (const command of commands) expect(stdout).toContain(`\n  ${command}\n`);
});
