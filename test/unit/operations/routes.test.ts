import { describe, expect, onTestFinished, test } from 'vitest';
import { type Attempt, createDeferral } from '../../../src/model/outcome.ts';
import type { RouteStatus } from '../../../src/model/route.ts';
import { perform } from '../../../src/operations/operation.ts';
import { listRoutes, pauseRoute, resumeRoute, showRoute, testRoute } from '../../../src/operations/routes.ts';
import { clearRouting, setRouting, showRouting } from '../../../src/operations/routing.ts';
import { createAttempt, createMessage, createRouteStatus } from '../../rig/messages.ts';
import { startSmtpServer } from '../../rig/smtp-server.ts';
import { createOperationRig, type OperationRig } from './operation-rig.ts';

const HOUR_MS = 3_600_000;
const ROUTES = {
  POSTRIDER_TRANSPORT: 'smtp://user:secret@relay.example:2525',
  POSTRIDER_ROUTE_BACKUP: 'ses://eu-west-1?daily=10&ramp=10d',
  POSTRIDER_ROUTE_OTHER: 'smtps://smtp.postmarkapp.com',
  POSTRIDER_SENDERS: 'any',
};

/** Of nodes named `a`, `b` and so on. */
async function setStatuses({ store, now }: OperationRig, ...nodes: readonly (readonly Partial<RouteStatus>[])[]) {
  for (const [index, statuses] of nodes.entries()) {
    const identity = { name: 'abc'.charAt(index), roles: ['deliver'], version: '1' };
    const delivery = { alarms: [], routes: statuses.map((status) => createRouteStatus(status)) };
    await store.recordHeartbeat(identity, 60_000, now, [], delivery);
  }
}

async function listStates(rig: OperationRig) {
  return (await rig.performSuccessfully(listRoutes, {})).map(({ name, state, share }) => [name, state, share]);
}

const withAttempt = ({ context }: OperationRig, attemptOverRoute: () => Promise<Attempt>) => ({
  ...context,
  attemptOverRoute,
  warn: () => undefined,
});

describe('routes', () => {
  test('have the state that most nodes see, and if they disagree evenly, the worse one', async () => {
    const rig = await createOperationRig(ROUTES);
    expect(await rig.performSuccessfully(listRoutes, {})).toEqual([
      {
        ...{ name: 'default', transport: 'smtp://relay.example:2525', provider: null, state: 'usable', share: 1 },
        ...{ pausedUntil: null, lastFailure: null },
      },
      expect.objectContaining({ name: 'backup', transport: 'ses://eu-west-1', provider: 'Amazon SES', share: 0 }),
      expect.objectContaining({ name: 'other', transport: 'smtps://smtp.postmarkapp.com:465', provider: 'Postmark' }),
    ]);
    const failed = (at: number) => ({ state: 'failed', lastFailure: { text: 'refused', at } }) as const;
    await setStatuses(
      rig,
      [failed(rig.now - 2), { name: 'backup', state: 'probing' }],
      [failed(rig.now - 1), { name: 'backup' }],
      [{}],
    );
    const [first] = await rig.performSuccessfully(listRoutes, {});
    expect(first?.lastFailure).toEqual({ at: new Date(rig.now - 1).toISOString(), text: 'refused' });
    expect(await listStates(rig)).toEqual([
      ['default', 'failed', 0],
      ['backup', 'probing', 0],
      ['other', 'usable', 1],
    ]);
  });

  test('are paused for a time or until they are resumed', async () => {
    const rig = await createOperationRig(ROUTES);
    const until = new Date(rig.now + HOUR_MS).toISOString();
    await rig.performSuccessfully(pauseRoute, { route: 'default', for: '1h', reason: 'Störung' });
    expect(await rig.performSuccessfully(showRoute, { route: 'default' })).toMatchObject({
      ...{ state: 'paused', pausedUntil: until, pause: { reason: 'Störung' }, share: 0 },
    });
    expect((await listStates(rig))[1]).toEqual(['backup', 'usable', 1]);
    await rig.performSuccessfully(pauseRoute, { route: 'backup' });
    expect(await rig.perform(pauseRoute, { route: 'other' })).toMatchObject({ warnings: [{ code: 'all-paused' }] });
    expect(await rig.performSuccessfully(resumeRoute, { route: 'backup' })).toMatchObject({ state: 'usable' });
    rig.now += HOUR_MS;
    expect(await listStates(rig)).toEqual([
      ['default', 'usable', 1],
      ['backup', 'usable', 0],
      ['other', 'paused', 0],
    ]);
    expect(await rig.perform(resumeRoute, { route: 'default' })).toMatchObject({ error: { code: 'conflict' } });
    expect(await rig.listAudit()).toEqual(
      ['pause default', 'pause backup', 'pause other', 'resume backup'].map((action) => `cli:tester route.${action}`),
    );
  });

  test('show their limits, policies, senders and nodes', async () => {
    const rig = await createOperationRig(ROUTES);
    const day = Math.floor(rig.now / 86_400_000);
    await rig.store.recordRouteUse([{ route: 'backup', day, count: 10 }], rig.now);
    const sender = { route: 'backup', domain: 'example.org', acceptedAt: null, refusedAt: rig.now, refusal: 'no' };
    await rig.store.recordRouteSenders([sender]);
    await rig.performSuccessfully(setRouting, { list: 'other', account: 'acme' });
    await rig.performSuccessfully(setRouting, { list: 'BACKUP:1, other:3,default', domain: 'example.org' });
    await setStatuses(rig, [{ name: 'backup', isThrottled: true }]);
    expect(await rig.performSuccessfully(showRoute, { route: 'backup' })).toMatchObject({
      ...{ daily: 10, usedToday: 10, ramp: '10d', rampShare: 0.1, pause: null },
      policies: [{ account: null, domain: 'example.org', list: 'backup:1,other:3,default' }],
      senders: [{ domain: 'example.org', accepted: null, refusal: 'no' }],
      nodes: [{ node: 'a', state: 'usable', isThrottled: true, failingSince: null }],
    });
  });

  test('a test message takes its route alone, and the sender counts as accepted', async () => {
    const server = await startSmtpServer();
    onTestFinished(() => server.close());
    const rig = await createOperationRig({
      ...{ POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:1', POSTRIDER_SENDERS: 'any' },
      POSTRIDER_ROUTE_BACKUP: `smtp://127.0.0.1:${server.port}?tls=never`,
    });
    const input = { from: 'shop@example.org', to: 'rita@example.com' };
    await rig.performSuccessfully(pauseRoute, { route: 'backup' });
    expect(await rig.performSuccessfully(testRoute, { route: 'backup', ...input })).toMatchObject({
      ...{ outcome: 'delivered', reason: null, remote: `127.0.0.1:${server.port}` },
      transcript: expect.arrayContaining([expect.stringContaining('RCPT TO:<rita@example.com>')]),
    });
    expect(server.receivedMessages).toHaveLength(1);
    expect(server.receivedMessages[0]?.data.toString()).toContain('Subject: Test of the route backup');
    expect(await rig.performSuccessfully(testRoute, { route: 'default', ...input })).toMatchObject({
      ...{ outcome: 'deferred', reason: 'connection', remote: null },
    });
    expect(server.receivedMessages).toHaveLength(1);
    const accepted = { route: 'backup', domain: 'example.org', acceptedAt: rig.now, refusedAt: null, refusal: null };
    expect(await rig.store.listRouteSenders()).toEqual([accepted]);
    const outcome = createDeferral('mail', 'not verified', 'sender-refused', 'sender');
    const attempt = async (): Promise<Attempt> => createAttempt(outcome);
    await perform(testRoute, { route: 'backup', ...input }, withAttempt(rig, attempt));
    expect(await rig.store.listRouteSenders()).toEqual([{ ...accepted, refusedAt: rig.now, refusal: 'not verified' }]);
    expect((await rig.listAudit()).slice(1)).toEqual(Array(2).fill('cli:tester route.test backup'));
  });

  test('nothing is sent to a suppressed or a forbidden recipient, or from a domain that is not authenticated', async () => {
    const rig = await createOperationRig({ ...ROUTES, POSTRIDER_SENDERS: 'authenticated' });
    const anySender = await createOperationRig(ROUTES);
    const entry = { address: 'gone@example.com', reason: 'manual', source: null, at: rig.now } as const;
    await anySender.store.addSuppressions('*', [entry]);
    await anySender.store.setAccount('acme', { onlyTo: ['@example.com'] }, rig.now);
    for (const [used, to, field] of [
      [rig, 'rita@example.com', 'from'],
      [anySender, 'gone@example.com', 'to'],
      [anySender, 'rita@example.net', 'to'],
    ] as const) {
      const context = withAttempt(used, () => Promise.reject(new Error('an attempt')));
      const result = await perform(testRoute, { route: 'default', from: 'shop@example.org', to }, context);
      expect(result).toMatchObject({ error: { code: 'conflict', field } });
    }
  });
});

describe('policies', () => {
  test('are set, listed and removed, and the default order is shown', async () => {
    const rig = await createOperationRig(ROUTES);
    expect(await rig.performSuccessfully(setRouting, { list: 'other' })).toMatchObject({ list: 'other', former: null });
    await rig.performSuccessfully(setRouting, { list: 'default', account: 'acme' });
    await rig.performSuccessfully(setRouting, { list: 'default', domain: 'Example.ORG' });
    expect(await rig.performSuccessfully(setRouting, { list: 'backup:2,other:1' })).toMatchObject({ former: 'other' });
    expect(await rig.performSuccessfully(showRouting, {})).toEqual({
      policies: [
        { account: null, domain: null, list: 'backup:2,other:1' },
        { account: 'acme', domain: null, list: 'default' },
        { account: null, domain: 'example.org', list: 'default' },
      ],
      default: 'default,backup,other',
    });
    expect(await listStates(rig)).toEqual([
      ['default', 'usable', 0],
      ['backup', 'usable', 2 / 3],
      ['other', 'usable', 1 / 3],
    ]);
    expect(await rig.performSuccessfully(clearRouting, { account: 'acme' })).toMatchObject({ former: 'default' });
    expect((await rig.performSuccessfully(showRouting, {})).policies).toHaveLength(2);
  });

  test('a dry run changes nothing, and deals the messages of the last hour that the policy is for', async () => {
    const rig = await createOperationRig(ROUTES);
    await rig.performSuccessfully(setRouting, { list: 'other', domain: 'example.net' });
    const accept = (from: string, acceptedAt: number, count: number) =>
      rig.store.accept(Array.from({ length: count }, () => createMessage({ from, acceptedAt })));
    await accept('shop@example.org', rig.now - 2 * HOUR_MS, 3);
    await accept('shop@example.org', rig.now - HOUR_MS / 2, 20);
    await accept('shop@example.net', rig.now - HOUR_MS / 2, 5);
    const input = { list: 'default:90,other:10,backup', account: 'acme', dryRun: 'true' };
    const preview = { messages: 20, isComplete: true, waiting: 0 };
    const toRoutes = (...counts: readonly number[]) =>
      ['default', 'other', 'backup'].map((route, index) => ({ route, messages: counts[index] }));
    expect(await rig.performSuccessfully(setRouting, input)).toMatchObject({
      ...{ account: 'acme', former: null, preview: { ...preview, routes: toRoutes(18, 2, 0) } },
    });
    await setStatuses(rig, [{ state: 'failed' }, { name: 'other', state: 'failed' }]);
    expect(await rig.performSuccessfully(setRouting, input)).toMatchObject({
      preview: { ...preview, routes: toRoutes(0, 0, 20) },
    });
    await rig.performSuccessfully(pauseRoute, { route: 'backup' });
    expect(await rig.performSuccessfully(setRouting, input)).toMatchObject({
      preview: { ...preview, waiting: 20, routes: toRoutes(0, 0, 0) },
    });
    expect((await rig.performSuccessfully(showRouting, {})).policies).toHaveLength(1);
  });
});

test.each([
  [showRoute, { route: 'nowhere' }, 'not-found', 'route'],
  [pauseRoute, { route: 'nowhere' }, 'not-found', 'route'],
  [pauseRoute, { route: 'default', for: '0s' }, 'invalid', 'for'],
  [pauseRoute, { route: 'default', for: '1' }, 'invalid', 'for'],
  [pauseRoute, { route: 'default', reason: 'x'.repeat(201) }, 'invalid', 'reason'],
  [resumeRoute, { route: 'nowhere' }, 'not-found', 'route'],
  [resumeRoute, { route: 'default' }, 'conflict', 'route'],
  [testRoute, { route: 'nowhere', from: 'a@example.org', to: 'b@example.com' }, 'not-found', 'route'],
  [testRoute, { route: 'default', from: 'example.org', to: 'b@example.com' }, 'invalid', 'from'],
  [testRoute, { route: 'default', from: 'a@example.org', to: 'b' }, 'invalid', 'to'],
  [testRoute, { route: 'default', from: 'a@example.org', to: 'success@simulator.postrider.test' }, 'invalid', 'to'],
  [setRouting, { list: '' }, 'invalid', 'list'],
  [setRouting, { list: 'default,nowhere' }, 'invalid', 'list'],
  [setRouting, { list: 'default,default' }, 'invalid', 'list'],
  [setRouting, { list: 'default:0' }, 'invalid', 'list'],
  [setRouting, { list: 'default:-1,backup:2' }, 'invalid', 'list'],
  [setRouting, { list: 'other' }, 'conflict', 'list'],
  [setRouting, { list: 'default', account: 'acme', domain: 'example.org' }, 'invalid', 'domain'],
  [setRouting, { list: 'default', account: 'nobody' }, 'not-found', 'account'],
  [setRouting, { list: 'default', account: 'nobody', dryRun: 'true' }, 'not-found', 'account'],
  [setRouting, { list: 'default', domain: 'no domain' }, 'invalid', 'domain'],
  [clearRouting, {}, 'not-found', null],
  [clearRouting, { account: 'acme' }, 'not-found', 'account'],
  [clearRouting, { account: 'nobody' }, 'not-found', 'account'],
  [clearRouting, { domain: 'example.org' }, 'not-found', 'domain'],
  [clearRouting, { account: 'acme', domain: 'example.org' }, 'invalid', 'domain'],
] as const)(
  '$name %j is refused in one line, changes nothing and writes no entry',
  async (operation, input, code, field) => {
    const rig = await createOperationRig(ROUTES);
    await rig.store.pauseRoute('other', { at: rig.now, until: null, reason: null });
    const result = await perform(operation as typeof showRoute, input, rig.context);
    expect(result).toMatchObject({ ok: false, error: { code, field, message: expect.not.stringContaining('\n') } });
    expect(await rig.listAudit()).toEqual([]);
  },
);
