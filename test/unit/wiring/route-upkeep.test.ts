import { expect, test } from 'vitest';
import { createDeferral, type Outcome } from '../../../src/model/outcome.ts';
import { getRouteDay, type RouteSender, type RouteStatus, type RouteUse } from '../../../src/model/route.ts';
import { createRoutes, type Route } from '../../../src/queue/routes.ts';
import { startRouteUpkeep } from '../../../src/wiring/route-upkeep.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createAttempt, createRouteStatus } from '../../rig/messages.ts';
import { CLOSED_BREAKER, START } from '../../rig/queue.ts';

const DAY = getRouteDay(START);
const MESSAGE = { id: 'a', accountId: 1, from: 'shop@example.org' };
const NODE = { roles: ['deliver'], version: '1', startedAt: START, seenAt: START, isAlive: true, refusedReports: [] };

async function createRig(nodes: { readonly name: string; readonly routes: readonly RouteStatus[] }[] = []) {
  const clock = createVirtualClock(START);
  const stored = { uses: new Map([['default', 5]]), senders: [] as RouteSender[], isDown: false };
  const probed: string[] = [];
  const createRoute = (name: string): Route => ({
    ...{ name, health: CLOSED_BREAKER, limits: () => ({ daily: 100, rampMs: null }) },
    transport: { concurrency: 1, attempt: async () => createAttempt(), close: async () => undefined },
    prepare: () => Promise.reject(new Error('no message')),
    nextHop: () => null,
    async probe() {
      probed.push(name);
      return null;
    },
  });
  const routes = createRoutes({ clock, routes: [createRoute('default'), createRoute('backup')] });
  const listUses = () => [...stored.uses].map(([route, count]): RouteUse => ({ route, day: DAY, count }));
  const stop = await startRouteUpkeep({
    ...{ node: 'a', clock, sharesStore: true, routes, onError: () => undefined },
    store: {
      async recordRouteUse(uses) {
        if (stored.isDown) throw new Error('the store is down');
        for (const { route, count } of uses) stored.uses.set(route, count + (stored.uses.get(route) ?? 0));
        return listUses();
      },
      recordRouteSenders: async (senders) => void stored.senders.push(...senders),
      listRouteUses: async () => listUses(),
      listNodes: async () =>
        nodes.map(({ name, routes: statuses }) => {
          return { ...NODE, name, aliveUntil: START + 60_000, delivery: { routes: statuses, alarms: [] } };
        }),
    },
  });
  const record = (route: string, outcome: Outcome) => routes.recordOutcome(route, MESSAGE, outcome, clock.now());
  const getUsedToday = () => routes.readStatus(clock.now()).map(({ usedToday }) => usedToday);
  return { clock, stored, probed, record, getUsedToday, stop };
}

const DELIVERED = createAttempt().outcome;

test('the messages of the day are those of all nodes, and a failed write loses none', async () => {
  const { clock, stored, record, getUsedToday, stop } = await createRig();
  expect(getUsedToday()).toEqual([5, 0]);
  stored.isDown = true;
  record('default', DELIVERED);
  await clock.advance(1_000);
  record('default', DELIVERED);
  record('backup', DELIVERED);
  await clock.advance(1_000);
  expect([getUsedToday(), stored.uses.get('default')]).toEqual([[7, 1], 5]);
  stored.isDown = false;
  stored.uses.set('default', 25);
  await clock.advance(1_000);
  expect([getUsedToday(), [...stored.uses]]).toEqual([
    [27, 1],
    [
      ['default', 27],
      ['backup', 1],
    ],
  ]);
  record('default', DELIVERED);
  await stop();
  expect(stored.uses.get('default')).toBe(28);
});

test('the first acceptance of a sending domain at a route and each refusal are stored', async () => {
  const { clock, stored, record } = await createRig();
  record('default', DELIVERED);
  record('default', DELIVERED);
  record('backup', createDeferral('mail', 'not verified', 'sender-refused', 'sender'));
  await clock.advance(1_000);
  expect(stored.senders).toMatchObject([
    { route: 'default', domain: 'example.org', acceptedAt: START, refusal: null },
    {
      route: 'backup',
      domain: 'example.org',
      acceptedAt: null,
      refusedAt: START,
      refusal: expect.stringContaining('not verified'),
    },
  ]);
  record('default', DELIVERED);
  record('backup', DELIVERED);
  await clock.advance(1_000);
  expect(stored.senders.slice(2)).toMatchObject([{ route: 'backup', acceptedAt: START + 1_000, refusedAt: null }]);
});

test('a route that another node has found failing is probed once for each finding, and stays usable if it answers', async () => {
  const failed = createRouteStatus({ state: 'failed', failingSince: START });
  const nodes = [
    { name: 'a', routes: [failed] },
    { name: 'b', routes: [createRouteStatus({ name: 'backup' }), failed] },
  ];
  const { clock, probed } = await createRig(nodes);
  await clock.advance(3_000);
  expect(probed).toEqual(['default']);
  nodes[1] = { name: 'b', routes: [{ ...failed, state: 'probing' }] };
  await clock.advance(2_000);
  expect(probed).toEqual(['default']);
  nodes[1] = { name: 'b', routes: [{ ...failed, failingSince: START + 4_000 }] };
  await clock.advance(1_000);
  expect(probed).toEqual(['default', 'default']);
});
