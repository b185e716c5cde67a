/**
 * Tests tokens and the audit log on the command line. The audit log contains every change by an operator, and no entry
 * contains a secret.
 */
import { expect, test } from 'vitest';
import { createMessage } from '../../rig/messages.ts';
import { createCommandRig } from './command-rig.ts';

interface Entry {
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
}

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

test('the audit log contains every change by an operator with the actor and the values before and after, and no secret', async () => {
  const rig = await createCommandRig();
  const { store } = rig;
  expect((await rig.run('audit')).stdout).toBe('the audit log is empty\n');
  await rig.run('account', 'set', 'acme', '--volume', '10', '--max-bounces', '20%');
  await rig.run('account', 'lock', 'acme', '--reason', 'unpaid');
  await rig.run('account', 'unlock', 'acme');
  await rig.run('account', 'create', 'other');
  const { id, key } = await rig.runJson<{ id: string; key: string }>('key', 'create', 'acme');
  const rotatedKey = await rig.runJson<{ id: string; key: string }>('key', 'rotate', id);
  rig.inputLine = `pr_${'i'.repeat(43)}`;
  await rig.run('key', 'import', 'acme', '--name', 'brought');
  await rig.run('key', 'revoke', rotatedKey.id);
  await rig.run('suppression', 'add', 'acme', 'a@example.com');
  await rig.run('suppression', 'remove', 'acme', 'a@example.com');
  await rig.run('domain', 'add', 'acme', 'example.org');
  await rig.run('domain', 'rotate', 'example.org');
  await rig.run('domain', 'set', 'example.org', '--subdomains', 'yes');
  await rig.run('domain', 'remove', 'example.org');
  const message = createMessage({ acceptedAt: rig.now ?? 0 });
  await store.accept([message]);
  await rig.run('message', 'cancel', message.id);
  const { token } = await rig.runJson<{ token: string }>('token', 'create', 'ci');
  const entries = await rig.runJson<Entry[]>('audit');
  expect(entries.map(({ action, target }) => `${action} ${target}`).reverse()).toEqual([
    'account.set acme',
    'account.lock acme',
    'account.unlock acme',
    'account.create other',
    'key.create acme',
    `key.rotate ${id}`,
    'key.import acme',
    `key.revoke ${rotatedKey.id}`,
    'suppression.add acme',
    'suppression.remove acme',
    'domain.add example.org',
    'domain.update example.org',
    'domain.set example.org',
    'domain.remove example.org',
    `message.cancel ${message.id}`,
    'token.create ci',
  ]);
  const findEntry = (action: string) => entries.find((entry) => entry.action === action);
  expect(findEntry('account.lock')).toMatchObject({
    actor: 'cli:tester',
    before: { locked: null },
    after: { locked: 'unpaid' },
  });
  expect(findEntry('account.set')).toMatchObject({
    before: { limits: { volume: null }, thresholds: { bounceRate: 0.1 } },
    after: { limits: { volume: 10 }, thresholds: { bounceRate: 0.2 } },
  });
  expect(findEntry('message.cancel')).toMatchObject({ before: { state: 'queued' }, after: { state: 'cancelled' } });
  const auditLogText = JSON.stringify(await store.listAudit(null, 100));
  const hashes = (await store.listTokens()).map(({ hash }) => hash);
  const domainKeys = ['sealed', 'PRIVATE'];
  for (const secret of [key, rotatedKey.key, token, ...hashes, ...domainKeys])
    expect(auditLogText).not.toContain(secret);
  expect((await rig.run('audit', '--limit', '1')).stdout).toContain('token.create');
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
