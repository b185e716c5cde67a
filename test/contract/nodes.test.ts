import { describe, expect, test } from 'vitest';
import { createMessage, createRouteStatus } from '../rig/messages.ts';
import { STORES } from '../rig/stores.ts';

const createHeartbeat = (name: string) => ({ name, roles: ['api', 'deliver'], version: '1.2.3' });
const MINUTE_MS = 60_000;

describe.each(STORES)('the $name store', ({ openWithAccounts }) => {
  test('the running time advances with the clock, and an advance that the monotonic time does not confirm is a step of the clock', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    const firstTime = await store.updateRunningTime(0, now);
    expect(firstTime.segments).toHaveLength(1);
    expect(Math.abs(firstTime.seenAt - now)).toBeLessThan(MINUTE_MS);
    const secondTime = await store.updateRunningTime(MINUTE_MS, firstTime.seenAt + 1_000);
    expect(secondTime.segments).toEqual(firstTime.segments);
    expect(secondTime.runningMs - firstTime.runningMs).toBe(secondTime.seenAt - firstTime.seenAt);
    // A store that uses the time of the database server does not detect a step of the caller's clock.
    const thirdTime = await store.updateRunningTime(10, secondTime.seenAt + 3_600_000);
    const stepCount = thirdTime.seenAt - secondTime.seenAt > MINUTE_MS ? 1 : 0;
    expect(thirdTime.segments).toHaveLength(1 + stepCount);
    if (stepCount === 1) expect(thirdTime.runningMs).toBe(secondTime.runningMs);
    expect(await store.updateRunningTime(MINUTE_MS, thirdTime.seenAt)).toMatchObject({ segments: thirdTime.segments });
  });

  test('a node that sends heartbeats is listed with its roles until it is removed', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    const time = await store.recordHeartbeat(createHeartbeat('node-a'), MINUTE_MS, now);
    expect(Math.abs(time - now)).toBeLessThan(MINUTE_MS);
    await store.recordHeartbeat(createHeartbeat('node-b'), MINUTE_MS, now);
    const listedNodes = await store.listNodes(now);
    expect(listedNodes).toMatchObject([createHeartbeat('node-a'), createHeartbeat('node-b')]);
    expect(listedNodes[0]?.aliveUntil).toBe((listedNodes[0]?.seenAt ?? 0) + MINUTE_MS);
    await store.removeNode('node-a');
    expect((await store.listNodes(now)).map(({ name }) => name)).toEqual(['node-b']);
  });

  test('each heartbeat replaces the counts of refused requests and the delivery status of its node, and a node without them has none', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    const createRefusedCounts = (count: number) => [{ reason: 'postmark-unauthenticated', count, lastAt: now }];
    const alarm = { reason: 'configuration', text: '535 bad \0 login', lastAt: now };
    const openStatus = {
      routes: [createRouteStatus({ state: 'failed', lastFailure: { text: 'relay\0', at: now } })],
      alarms: [alarm],
    };
    const closedStatus = { routes: [createRouteStatus()], alarms: [] };
    await store.recordHeartbeat(createHeartbeat('node-a'), MINUTE_MS, now, createRefusedCounts(1), openStatus);
    expect((await store.listNodes(now))[0]?.delivery).toMatchObject({
      routes: [{ name: 'default', state: 'failed', lastFailure: { text: 'relay\uFFFD' } }],
    });
    await store.recordHeartbeat(createHeartbeat('node-a'), MINUTE_MS, now, createRefusedCounts(2), closedStatus);
    await store.recordHeartbeat(createHeartbeat('node-b'), MINUTE_MS, now);
    await store.recordHeartbeat(createHeartbeat('node-c'), -1, now, createRefusedCounts(3));
    expect(
      (await store.listNodes(now)).map(({ isAlive, refusedReports, delivery }) => ({
        isAlive,
        refusedReports,
        delivery,
      })),
    ).toEqual([
      { isAlive: true, refusedReports: createRefusedCounts(2), delivery: closedStatus },
      { isAlive: true, refusedReports: [], delivery: null },
      { isAlive: false, refusedReports: createRefusedCounts(3), delivery: null },
    ]);
  });

  test('leases of a dead node are recovered before they expire, and leases of a live node are not recovered even after they expire', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    for (const name of ['observer', 'live']) await store.recordHeartbeat(createHeartbeat(name), 10 * MINUTE_MS, now);
    await store.recordHeartbeat(createHeartbeat('dead'), -1, now);
    const createLeasedMessage = (owner: string, until: number) => createMessage({ lease: { owner, until } });
    const [deadNodeMessage, liveNodeMessage, expiredMessage] = [
      createLeasedMessage('dead', now + 20 * MINUTE_MS),
      createLeasedMessage('live', now + 20 * MINUTE_MS),
      createLeasedMessage('live', now - MINUTE_MS),
    ];
    await store.accept([deadNodeMessage, liveNodeMessage, expiredMessage]);
    const recoverLeases = (includeDeadNodes: boolean) =>
      store.recover({ now, includeAllLeases: false, includeDeadNodes, onUncertain: 'resend', node: 'observer' });
    expect(await recoverLeases(false)).toBe(0);
    expect(await recoverLeases(true)).toBe(1);
    const states = await Promise.all(
      [deadNodeMessage, liveNodeMessage, expiredMessage].map(async ({ id }) => (await store.findMessage(id))?.state),
    );
    expect(states).toEqual(['queued', 'sending', 'sending']);
  });

  test('a node recovers its own leases, except the leases that the call excludes', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    const lease = { owner: 'node-a', until: now + 60_000 };
    const [excludedMessage, recoveredMessage] = [createMessage({ lease }), createMessage({ lease })];
    await store.accept([excludedMessage, recoveredMessage]);
    const recoverOptions = {
      includeAllLeases: false,
      includeDeadNodes: false,
      onUncertain: 'resend',
      node: 'node-a',
      excludedIds: [excludedMessage.id],
    } as const;
    expect(await store.recover({ now, ...recoverOptions })).toBe(0);
    expect(await store.recover({ now, ownLeasesUntil: lease.until, ...recoverOptions })).toBe(1);
    expect((await store.findMessage(excludedMessage.id))?.state).toBe('sending');
    expect((await store.findMessage(recoveredMessage.id))?.state).toBe('queued');
  });
});
