import { expect, test } from 'vitest';
import { createCommandRig } from './command-rig.ts';

test('the text output of `audit` lists the changed members of each entry', async () => {
  const rig = await createCommandRig();
  await rig.run('account', 'set', 'acme', '--volume', '10', '--volume-expires', '2030-12-31');
  await rig.run('account', 'lock', 'acme', '--reason', 'unpaid');
  await rig.run('suppression', 'add', 'acme', 'a@example.com');
  await rig.run('suppression', 'remove', 'acme', 'a@example.com');
  await rig.run('account', 'set', 'acme', '--volume', 'unlimited');
  const { stdout } = await rig.run('audit');
  const changeTexts = stdout
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.slice(line.lastIndexOf('  ') + 2));
  expect(changeTexts.reverse()).toEqual([
    'limits: volume: none → 10; limits: volume expires: none → 2030-12-31 00:00:00Z',
    'locked: none → unpaid',
    'added: 1; addresses: a@example.com',
    'address: a@example.com → none',
    'limits: volume: 10 → none; limits: volume expires: 2030-12-31 00:00:00Z → none',
  ]);
});
