import { expect, onTestFinished, test } from 'vitest';
import { LIVENESS_TIMEOUT_MS } from '../../../src/queue/membership.ts';
import type { HoldChecks } from '../../../src/queue/parking.ts';
import { startSweeper } from '../../../src/queue/sweeper.ts';
import type { PurgedMessages } from '../../../src/store/retention.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const START = Date.UTC(2026, 0, 5);
const HOUR_MS = 3_600_000;
const SWEEP_POLICY = {
  ...{ maxAgeMs: 24 * HOUR_MS, onUncertain: 'hold' as const },
  ...{ keepBodyMs: 7 * 24 * HOUR_MS, keepHistoryMs: 90 * 24 * HOUR_MS, keepAuditMs: 400 * 24 * HOUR_MS },
} as const;

test('messages that a hold stops are parked at their maximum age, before others expire', async () => {
  const message = { accountId: 1, from: 'shop@example.org', to: 'rita@example.com' };
  const pages = [[{ ...message, id: 'held', accountId: 2 }], [{ ...message, id: 'held, too', accountId: 2 }]];
  const { calls, stop, clock } = createSweeperRig({
    holds: { hasActiveHolds: true, mayBeHeld: ({ accountId }) => accountId === 2 },
    listExpiring: () => [{ ...message, id: 'expiring' }, ...(pages.shift() ?? [])],
    parkQueued: () => 1,
  });
  await clock.advance(1);
  await stop();
  const cutoff = START - SWEEP_POLICY.maxAgeMs;
  expect(calls.filter(([name]) => ['listExpiring', 'parkQueued', 'expire'].includes(String(name)))).toEqual([
    ...[
      ['listExpiring', cutoff, 500],
      ['parkQueued', ['held'], START],
    ],
    ...[
      ['listExpiring', cutoff, 500],
      ['parkQueued', ['held, too'], START],
    ],
    ...[
      ['listExpiring', cutoff, 500],
      ['expire', cutoff, START, 500, 'node-a'],
    ],
  ]);
});

function createSweeperRig(
  answers: {
    expire?: () => string[];
    recover?: () => number;
    canDetectDeadNodes?: () => boolean;
    isClockStable?: () => boolean;
    stoppedMs?: () => number;
    holds?: Pick<HoldChecks, 'hasActiveHolds' | 'mayBeHeld'>;
    parkQueued?: () => number;
    listExpiring?: () => { id: string; accountId: number; from: string; to: string }[];
    disableFailingWebhooks?: () => number[];
    purgeMessages?: () => PurgedMessages;
  } = {},
) {
  const clock = createVirtualClock(START);
  const calls: unknown[][] = [];
  const publishedEvents = {
    expired: [] as string[],
    recovered: [] as number[],
    failed: [] as string[],
    disabled: [] as number[],
  };
  const results: Record<string, () => unknown> = {
    expire: answers.expire ?? (() => []),
    recover: answers.recover ?? (() => 0),
    listExpiring: answers.listExpiring ?? (() => []),
    parkQueued: answers.parkQueued ?? (() => 0),
    disableFailingWebhooks: answers.disableFailingWebhooks ?? (() => []),
    purgeMessages: answers.purgeMessages ?? (() => ({ purgedCount: 0, next: null, pauseSteps: 10 })),
  };
  const store = new Proxy({} as Parameters<typeof startSweeper>[0]['store'], {
    get:
      (_, name: string) =>
      async (...args: unknown[]) => {
        calls.push([name, ...args]);
        return results[name]?.() ?? 0;
      },
  });
  const stop = startSweeper({
    node: 'node-a',
    clock,
    policy: SWEEP_POLICY,
    store,
    holds: answers.holds ?? { hasActiveHolds: false, mayBeHeld: () => false },
    canDetectDeadNodes: () => answers.canDetectDeadNodes?.() ?? false,
    ages: {
      getCutoff: (ageMs) => clock.now() - (answers.stoppedMs?.() ?? 0) - ageMs,
      toCurrentClock: (at) => at,
      isClockStable: () => answers.isClockStable?.() ?? true,
    },
    listLeasedMessageIds: () => ['in-memory', 'leased-by-this-node'],
    publish: (event) => {
      switch (event.type) {
        case 'message.expired':
          return publishedEvents.expired.push(event.id);
        case 'node.leases_recovered':
          return publishedEvents.recovered.push(event.count);
        case 'webhook.disabled':
          return publishedEvents.disabled.push(event.webhookId);
        case 'node.operation_failed':
          return publishedEvents.failed.push(`${event.operation}: ${String(event.error)}`);
      }
    },
  });
  onTestFinished(stop);
  const listCalls = (name: string) => calls.filter(([called]) => called === name);
  return { clock, calls, publishedEvents, stop, listCalls };
}

test('the leases of a dead node on messages and deliveries are recovered within 30 s of the last heartbeat of the node', async () => {
  const { clock, listCalls } = createSweeperRig({ canDetectDeadNodes: () => true });
  await clock.advance(0);
  const countBefore = listCalls('recover').length;
  await clock.advance(30_000 - LIVENESS_TIMEOUT_MS - 1);
  const [nextCall] = listCalls('recover').slice(countBefore);
  const excludedIds = ['in-memory', 'leased-by-this-node'];
  expect(nextCall).toEqual(['recover', expect.objectContaining({ includeDeadNodes: true, excludedIds })]);
  expect(listCalls('recoverDeliveries').at(-1)).toEqual([
    'recoverDeliveries',
    expect.objectContaining({ node: 'node-a', includeAllLeases: false }),
  ]);
});

test('each round expires messages, recovers leases and purges bodies, by their ages in running time', async () => {
  const { clock, listCalls } = createSweeperRig({ stoppedMs: () => 30 * 24 * HOUR_MS });
  const now = START - 30 * 24 * HOUR_MS;
  await clock.advance(0);
  expect(listCalls('expire')).toEqual([['expire', now - 24 * HOUR_MS, START, 500, 'node-a']]);
  const excludedIds = ['in-memory', 'leased-by-this-node'];
  expect(listCalls('recover')[0]).toEqual([
    'recover',
    { now: START, includeAllLeases: false, includeDeadNodes: false, onUncertain: 'hold', node: 'node-a', excludedIds },
  ]);
  expect(listCalls('resetExcessiveDueTimes')).toEqual([['resetExcessiveDueTimes', START + 138 * 60_000, START, 500]]);
  expect(listCalls('purgeBodiesAndKeys')).toEqual([
    ['purgeBodiesAndKeys', now - 7 * 24 * HOUR_MS, now - 24 * HOUR_MS, 500],
  ]);
  expect(listCalls('purgeMessages')).toEqual([
    ['purgeMessages', { endedBefore: now - 90 * 24 * HOUR_MS, after: null, limit: 500 }],
  ]);
  expect(listCalls('purgeAudit')).toEqual([['purgeAudit', now - 400 * 24 * HOUR_MS, 500]]);
  expect(listCalls('purgeFeedback')).toEqual([['purgeFeedback', now - 90 * 24 * HOUR_MS, 10_000, 500]]);
  expect(listCalls('purgeTraffic')).toEqual([['purgeTraffic', now - 48 * HOUR_MS, now - 400 * 24 * HOUR_MS, 500]]);
  expect(listCalls('purgeDeliverability')).toEqual([
    ['purgeDeliverability', 300_000, now - 6 * HOUR_MS, 500],
    ['purgeDeliverability', HOUR_MS, now - 4 * 24 * HOUR_MS, 500],
    ['purgeDeliverability', 6 * HOUR_MS, now - 16 * 24 * HOUR_MS, 500],
    ['purgeDeliverability', 24 * HOUR_MS, now - 400 * 24 * HOUR_MS, 500],
  ]);
  expect(listCalls('purgeMailboxProviders')).toEqual([
    ['purgeMailboxProviders', now - 90 * 24 * HOUR_MS, 100_000, 500],
  ]);
  expect(listCalls('purgeDeliveries')).toEqual([
    ['purgeDeliveries', now - 7 * 24 * HOUR_MS, now - 30 * 24 * HOUR_MS, 500],
  ]);
});

test('the next round starts at once after a full round, and every expired message is published', async () => {
  const roundSizes = [500, 500, 3];
  const { clock, listCalls, publishedEvents } = createSweeperRig({
    expire: () => Array.from({ length: roundSizes.shift() ?? 0 }, (_, index) => `id-${roundSizes.length}-${index}`),
    recover: () => 2,
  });
  await clock.advance(0);
  expect(listCalls('expire')).toHaveLength(3);
  expect(publishedEvents.expired).toHaveLength(1_003);
  expect(publishedEvents.recovered).toEqual([2, 2, 2]);
});

test('a failed round is published and repeated after its interval, and the other periodic work continues', async () => {
  let failures = 1;
  const { clock, listCalls, publishedEvents } = createSweeperRig({
    expire: () => {
      failures -= 1;
      if (failures === 0) throw new Error('the disk is full');
      return [];
    },
  });
  await clock.advance(5_000);
  expect(publishedEvents.failed).toEqual(['expire: Error: the disk is full']);
  expect([listCalls('expire').length, listCalls('recover').length, listCalls('purgeBodiesAndKeys').length]).toEqual([
    2, 1, 1,
  ]);
});

test('no lease is recovered just after a step of the clock', async () => {
  let isClockStable = false;
  const { clock, listCalls } = createSweeperRig({ isClockStable: () => isClockStable, canDetectDeadNodes: () => true });
  await clock.advance(30_000);
  expect(listCalls('recover')).toEqual([]);
  expect(listCalls('expire').length).toBeGreaterThan(5);
  isClockStable = true;
  await clock.advance(30_000);
  expect(listCalls('recover').length).toBeGreaterThan(5);
});

test('every minute, endpoints that have failed for five days are disabled, and the time during which no node ran does not count', async () => {
  const failingIds = [[7, 9], []];
  const { clock, listCalls, publishedEvents } = createSweeperRig({
    stoppedMs: () => HOUR_MS,
    disableFailingWebhooks: () => failingIds.shift() ?? [],
  });
  await clock.advance(60_000);
  expect(listCalls('disableFailingWebhooks')).toEqual([
    ['disableFailingWebhooks', START - HOUR_MS - 5 * 24 * HOUR_MS, START, 500],
    ['disableFailingWebhooks', START + 60_000 - HOUR_MS - 5 * 24 * HOUR_MS, START + 60_000, 500],
  ]);
  expect(publishedEvents.disabled).toEqual([7, 9]);
});

test('a pass purges messages in steps with pauses, and passes begin four times a minute', async () => {
  const answers = ['a', 'b', null];
  const { clock, listCalls } = createSweeperRig({
    purgeMessages: () => ({ purgedCount: 100, next: answers.shift() ?? null, pauseSteps: 10 }),
  });
  const listCursors = () => listCalls('purgeMessages').map(([, step]) => (step as { after: unknown }).after);
  await clock.advance(19);
  expect(listCursors()).toEqual([null]);
  await clock.advance(21);
  expect(listCursors()).toEqual([null, 'a', 'b']);
  await clock.advance(14_959);
  expect(listCursors()).toHaveLength(3);
  await clock.advance(60_000);
  expect(listCursors()).toHaveLength(7);
});
