import { expect, test } from 'vitest';
import { createDeferral } from '../../../src/model/outcome.ts';
import { createRouteHealth } from '../../../src/queue/route-health.ts';
import { createAttempt, createMessage } from '../../rig/messages.ts';
import { START } from '../../rig/queue.ts';
import { createRoutedQueue, type RoutedQueueOptions } from '../../rig/routed-queue.ts';

const DELIVERED = createAttempt().outcome;
const REFUSED = createDeferral('connect', 'refused', 'connection', 'route');
const THROTTLED = createDeferral('mail', 'slow down', 'throttled', 'route');

function createQueue(options: Partial<RoutedQueueOptions> = {}) {
  const queue = createRoutedQueue({ routes: ['default', 'backup'], respond: () => DELIVERED, ...options });
  const wait = (ms: number) => new Promise<void>((resolve) => queue.clock.after(ms, resolve));
  const setPolicy = (list: string, accountId: number | null = null) =>
    queue.applyRouting({ policies: [{ accountId, domain: null, list }], pauses: [], firstUses: [] });
  const accept = (count: number, members: Parameters<typeof createMessage>[0] = {}) => {
    const messages = Array.from({ length: count }, () => createMessage({ acceptedAt: START, ...members }));
    queue.accept(messages);
    return messages;
  };
  const countEnded = () => [...queue.readStates().values()].filter((state) => state === 'delivered').length;
  return { ...queue, wait, setPolicy, accept, countEnded };
}

test('a backlog for one of two healthy routes is not parked, and leaves as fast as with one route', async () => {
  const createLoad = async (routes: readonly string[]) => {
    const queue = createQueue({
      routes,
      concurrency: 50,
      async respond() {
        await queue.wait(50);
        return DELIVERED;
      },
    });
    queue.accept(4_000);
    queue.addNode('node-a');
    await queue.clock.advance(3_000);
    return queue;
  };
  const one = await createLoad(['default']);
  const two = await createLoad(['default', 'backup']);
  expect(two.calls.park).toBe(0);
  expect(two.countEnded()).toBeGreaterThan(0.95 * one.countEnded());
});

test.each([
  ['many', 3_000, 'Thank you.'],
  ['large', 60, 'a'.repeat(900_000)],
])(
  '%s messages for a route that does not answer starve no message of another route',
  async (_label, count, message) => {
    const queue = createQueue({
      async respond({ route }) {
        if (route === 'default') await queue.wait(500_000);
        return DELIVERED;
      },
    });
    queue.accept(count, { message });
    queue.addNode('node-a');
    queue.setPolicy('backup', 2);
    await queue.clock.advance(1_000);
    const others = queue.accept(100, { accountId: 2 });
    await queue.clock.advance(20_000);
    const states = queue.readStates();
    expect(others.filter(({ id }) => states.get(id) !== 'delivered')).toEqual([]);
  },
);

test('messages that were parked because their lane was full return as soon as it has room', async () => {
  let waitMs = 500_000;
  const queue = createQueue({
    concurrency: 20,
    async respond({ route }) {
      if (route === 'default') await queue.wait(waitMs);
      return DELIVERED;
    },
  });
  queue.accept(2_000);
  queue.addNode('node-a');
  queue.setPolicy('default', 1);
  await queue.clock.advance(30_000);
  expect(queue.countParked()).toBeGreaterThan(0);
  waitMs = 10;
  await queue.clock.advance(490_000);
  expect(queue.countEnded()).toBe(2_000);
});

test('a message that breaks every route takes its retry schedule, while other messages keep the circuit breakers closed', async () => {
  const attempts: string[] = [];
  const queue = createQueue({
    respond({ route, message }) {
      if (message.envelope.to !== 'poison@example.com') return DELIVERED;
      attempts.push(route);
      return REFUSED;
    },
  });
  queue.addNode('node-a');
  await queue.submit(createMessage({ acceptedAt: START, to: 'poison@example.com' }));
  for (let second = 0; second < 40; second += 1) {
    queue.submit(createMessage({ acceptedAt: queue.clock.now() }));
    await queue.clock.advance(1_000);
  }
  expect(attempts).toEqual(['default', 'backup']);
  await queue.clock.advance(40_000);
  expect(attempts).toEqual(['default', 'backup', 'default', 'backup']);
});

test('a changed policy counts from the next attempt of a message, and a retry stays with its member of a group', async () => {
  const routesOf = new Map<string, string[]>();
  const queue = createQueue({
    respond({ route, message: { id } }) {
      routesOf.set(id, [...(routesOf.get(id) ?? []), route]);
      return createDeferral('rcpt', 'later', 'greylisted', 'message');
    },
  });
  queue.accept(4);
  queue.addNode('node-a');
  queue.setPolicy('default:1,backup:1');
  await queue.clock.advance(70_000);
  expect([...routesOf.values()].map((routes) => routes.join()).toSorted()).toEqual([
    'backup,backup',
    'backup,backup',
    'default,default',
    'default,default',
  ]);
  queue.setPolicy('backup,default');
  await queue.clock.advance(330_000);
  expect([...routesOf.values()].map((routes) => routes[2])).toEqual(Array(4).fill('backup'));
});

test('a message that was prepared for the former next hop is prepared again', async () => {
  let revision = 0;
  const sent: string[] = [];
  const queue = createQueue({
    concurrency: 1,
    nextHop: () => revision,
    prepare: (_route, { id, from, to }) => ({
      id,
      envelope: { from, to, smtputf8: false },
      data: Buffer.from(`${revision}`),
    }),
    async respond({ message }) {
      sent.push(String(message.data));
      await queue.wait(1_000);
      return DELIVERED;
    },
  });
  queue.accept(3);
  queue.addNode('node-a');
  await queue.clock.advance(500);
  revision = 1;
  await queue.clock.advance(5_000);
  expect(sent).toEqual(['0', '1', '1']);
});

test('a changed file of a failed route is asked at once', async () => {
  let revision = 0;
  const queue = createQueue({
    nextHop: () => revision,
    respond: ({ route }) => (route === 'default' && revision === 0 ? REFUSED : DELIVERED),
    probe: async () => (revision === 0 ? REFUSED : null),
  });
  queue.accept(5);
  const { routes } = queue.addNode('node-a');
  await queue.clock.advance(60_000);
  expect(routes.readStatus(queue.clock.now())[0]?.state).toBe('failed');
  revision = 1;
  await queue.clock.advance(4_000);
  expect(routes.readStatus(queue.clock.now())[0]?.state).toBe('usable');
});

test('a probe that throws counts as failed, and the next one follows', async () => {
  let probeCount = 0;
  const queue = createQueue({
    routes: ['default'],
    respond: () => REFUSED,
    async probe() {
      probeCount += 1;
      if (probeCount < 5) throw new Error('no resolver');
      return null;
    },
  });
  queue.accept(3);
  const { routes } = queue.addNode('node-a');
  await queue.clock.advance(15_000);
  expect(routes.readStatus(queue.clock.now())[0]?.lastFailure?.text).toContain('no resolver');
  await queue.clock.advance(40_000);
  expect(probeCount).toBeGreaterThan(1);
});

test('the only route is asked again at each attempt of a refused sender', async () => {
  let attemptCount = 0;
  const queue = createQueue({
    routes: ['default'],
    respond() {
      attemptCount += 1;
      return createDeferral('mail', 'not verified', 'sender-refused', 'sender');
    },
  });
  queue.accept(1);
  queue.addNode('node-a');
  await queue.clock.advance(70_000);
  expect([attemptCount, queue.countParked()]).toEqual([2, 0]);
});

const createHealth = () => createRouteHealth({ route: 'a', random: () => 0, publish: () => undefined });

test('the outcome of an attempt that began before the last change of the circuit breaker does not change it', () => {
  const health = createHealth();
  for (let n = 0; n < 3; n += 1) health.recordOutcome(REFUSED, 1_000, 500);
  health.recordOutcome(THROTTLED, 2_000, 900);
  expect(health.state).toBe('open');
  expect(health.allowsAttempt(11_000)).toBe(true);
  health.recordOutcome(REFUSED, 11_500, 900);
  expect(health.state).toBe('half-open');
  health.recordOutcome(DELIVERED, 12_000, 11_000);
  health.recordOutcome(REFUSED, 13_000, 900);
  expect(health.state).toBe('closed');
  health.recordOutcome(REFUSED, 14_000, 13_500);
  expect(health.state).toBe('open');
});

test('a route that failed by throttling does not return while its probes are throttled', () => {
  const health = createHealth();
  health.recordOutcome(THROTTLED, 0);
  health.recordOutcome(THROTTLED, 60_000);
  expect(health.state).toBe('open');
  expect(health.allowsAttempt(70_000)).toBe(true);
  health.recordOutcome(THROTTLED, 70_100);
  expect(health.state).toBe('open');
});

test('while a throttling next hop is left alone, messages that are already prepared wait too', async () => {
  let attemptCount = 0;
  const queue = createQueue({
    routes: ['default'],
    concurrency: 16,
    async respond() {
      attemptCount += 1;
      await queue.wait(100);
      return THROTTLED;
    },
  });
  queue.accept(200);
  queue.addNode('node-a');
  await queue.clock.advance(900);
  expect(attemptCount).toBe(16);
  await queue.clock.advance(1_200);
  expect(attemptCount).toBe(24);
});
