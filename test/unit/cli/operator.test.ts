/**
 * Tests tokens and the audit log on the command line. The audit log contains every change by an operator, and no entry
 * contains a secret.
 */
import { expect, test } from 'vitest';
import { createCommandRig } from './command-rig.ts';

test('a token is printed once, listed by its prefix, and revoked', async () => {
  const rig = await createCommandRig();
  const { token, id } = await rig.runJson<{ token: string; id: number }>('token', 'create', 'ci', '--expires', '90d');
  expect(token).toMatch(/^po_[A-Za-z0-9_-]{43}$/);
  const listResult = await rig.run('token', 'list');
  expect(listResult.stdout).toContain(`${token.slice(0, 10)}…`);
  expect(listResult.stdout).not.toContain(token);
  expect(await rig.run('token', 'create', 'ci')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('token "ci" already exists'),
  });
  expect((await rig.run('token', 'revoke', String(id))).stdout).toBe('revoked the token ci\n');
  expect(await rig.runJson('token', 'list')).toMatchObject([{ name: 'ci', status: 'revoked' }]);
  expect((await rig.run('token', 'revoke', '99')).stderr).toContain('there is no token 99');
  expect((await rig.run('token', 'revoke', 'ci')).code).toBe(2);
});

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

test('an operation that is refused or changes nothing writes no entry to the audit log', async () => {
  const rig = await createCommandRig();
  await rig.run('account', 'lock', 'unknown', '--reason', 'x');
  await rig.run('suppression', 'remove', 'acme', 'nobody@example.com');
  await rig.run('account', 'create', 'acme');
  expect(await rig.runJson('audit')).toEqual([]);
});
