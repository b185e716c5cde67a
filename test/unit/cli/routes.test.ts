import { describe, expect, test } from 'vitest';
import { createCommandRig } from './command-rig.ts';

const ENVIRONMENT = {
  POSTRIDER_TRANSPORT: 'smtp://user:secret@127.0.0.1:1',
  POSTRIDER_ROUTE_BACKUP: 'ses://eu-west-1',
  POSTRIDER_SENDERS: 'any',
};

describe('the commands of routes', () => {
  test('`route list --json` has fixed members, and no command shows a password', async () => {
    const rig = await createCommandRig(ENVIRONMENT);
    const paused = await rig.run('route', 'pause', 'backup', '--for', '1h', '--reason', 'move');
    expect(paused.stdout).toBe('The route backup is paused until 2030-01-01 01:00:00Z.\n');
    expect(await rig.runJson('route', 'list')).toEqual([
      {
        ...{ name: 'default', transport: 'smtp://127.0.0.1:1', provider: null, state: 'usable', share: 1 },
        ...{ pausedUntil: null, lastFailure: null },
      },
      {
        ...{ name: 'backup', transport: 'ses://eu-west-1', provider: 'Amazon SES', state: 'paused', share: 0 },
        ...{ pausedUntil: '2030-01-01T01:00:00.000Z', lastFailure: null },
      },
    ]);
    expect((await rig.run('route', 'list')).stdout).not.toContain('secret');
    expect((await rig.run('route', 'show', 'backup')).stdout).toMatch(/paused +since .*: move\n/);
    expect((await rig.run('route', 'resume', 'backup')).stdout).toBe('The route backup is resumed, and usable.\n');
  });

  test('a policy is set, shown, tried and removed', async () => {
    const rig = await createCommandRig(ENVIRONMENT);
    await rig.run('routing', 'set', 'backup', '--account', 'acme');
    const changed = await rig.run('routing', 'set', 'backup:9,default:1', '--account', 'acme');
    expect(changed.stdout).toBe('The policy of account acme is backup:9,default:1; it was backup.\n');
    expect(await rig.runJson('routing', 'show')).toEqual({
      policies: [{ account: 'acme', domain: null, list: 'backup:9,default:1' }],
      default: 'default,backup',
    });
    const tried = await rig.run('routing', 'set', 'backup', '--dry-run');
    expect(tried.stdout).toBe('Of 0 messages of the last hour, backup would have got 0. Nothing was changed.\n');
    expect((await rig.run('routing', 'clear', '--account', 'acme')).code).toBe(0);
    expect(await rig.run('routing', 'clear', '--account', 'acme')).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: 'there is no policy of account acme; `postrider routing show` lists policies',
    });
    expect(await rig.run('routing', 'set', 'backup,nowhere')).toMatchObject({
      code: 2,
      stderr: 'LIST: the route "nowhere" is not configured; the routes are default, backup',
    });
  });

  test('`route test` fails with the reply of the next hop in one line', async () => {
    const rig = await createCommandRig(ENVIRONMENT);
    const tested = await rig.run('route', 'test', 'default', '--from', 'shop@example.org', '--to', 'rita@example.com');
    expect(tested.code).toBe(1);
    expect(tested.stderr).toMatch(/^the route default did not accept the message: deferred, connection: .+ \(.+\)$/);
  });
});
