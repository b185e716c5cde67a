import { expect, onTestFinished, test } from 'vitest';
import { LEASE_MS } from '../../../src/queue/attempt.ts';
import { LIVENESS_TIMEOUT_MS } from '../../../src/queue/membership.ts';
import { startSweeper } from '../../../src/queue/sweeper.ts';
import { virtualClock } from '../../rig/clock.ts';

const START = Date.UTC(2026, 0, 5);
const HOUR = 3_600_000;
const POLICY = { maxAgeMs: 24 * HOUR, onUncertain: 'hold', keepBodyMs: 7 * 24 * HOUR } as const;

/** A sweeper over a store that answers as told; everything it did is in `calls`. */
function sweeperRig(
  answers: {
    expire?: () => string[];
    recover?: () => number;
    erase?: () => number;
    hasten?: () => number;
    judges?: () => boolean;
    settled?: () => boolean;
    stoppedMs?: () => number;
  } = {},
) {
  const clock = virtualClock(START);
  const calls: unknown[][] = [];
  const told = { expired: [] as string[], recovered: [] as number[], failed: [] as string[] };
  const store = {
    async expire(...args: [number, number, number, string]) {
      calls.push(['expire', ...args]);
      return answers.expire?.() ?? [];
    },
    async recover(options: object) {
      calls.push(['recover', options]);
      return answers.recover?.() ?? 0;
    },
    async resetDistantDueTimes(...args: [number, number, number]) {
      calls.push(['resetDistantDueTimes', ...args]);
      return answers.hasten?.() ?? 0;
    },
    async purgeBodiesAndKeys(...args: [number, number, number]) {
      calls.push(['erase', ...args]);
      return answers.erase?.() ?? 0;
    },
    async purgeTraffic(...args: [number, number, number]) {
      calls.push(['purgeTraffic', ...args]);
      return 0;
    },
    async purgeFeedback(...args: [number, number, number]) {
      calls.push(['purgeFeedback', ...args]);
      return 0;
    },
  };
  const stop = startSweeper({
    node: 'node-a',
    clock,
    policy: POLICY,
    store,
    canDetectDeadNodes: () => answers.judges?.() ?? false,
    ages: {
      cutoffFor: (ageMs) => clock.now() - (answers.stoppedMs?.() ?? 0) - ageMs,
      toCurrentClock: (at) => at,
      isSettled: () => answers.settled?.() ?? true,
    },
    leasedMessageIds: () => ['in-memory', 'held-by-this-node'],
    publish: (event) => {
      switch (event.type) {
        case 'message.expired':
          return told.expired.push(event.id);
        case 'node.leases_recovered':
          return told.recovered.push(event.count);
        case 'node.operation_failed':
          return told.failed.push(`${event.operation}: ${String(event.error)}`);
      }
    },
  });
  onTestFinished(stop);
  const named = (name: string) => calls.filter(([called]) => called === name);
  return { clock, calls, told, stop, named };
}

test('a dead node’s work is looked for within 30 s of its last sign of life', async () => {
  const { clock, named } = sweeperRig({ judges: () => true });
  await clock.advance(0);
  const before = named('recover').length;
  await clock.advance(30_000 - LIVENESS_TIMEOUT_MS - 1);
  const [next] = named('recover').slice(before);
  expect(next).toEqual(['recover', expect.objectContaining({ deadNodes: true })]);
});

test('each round asks for what is past its maximum age, for leases over, and for bodies kept long enough', async () => {
  const { clock, named } = sweeperRig();
  await clock.advance(0);
  expect(named('expire')).toEqual([['expire', START - 24 * HOUR, START, 500, 'node-a']]);
  const except = ['in-memory', 'held-by-this-node'];
  expect(named('recover')[0]).toEqual([
    'recover',
    { now: START, everyLease: false, deadNodes: false, onUncertain: 'hold', by: 'node-a', except },
  ]);
  expect(named('resetDistantDueTimes')).toEqual([['resetDistantDueTimes', START + 138 * 60_000, START, 500]]);
  expect(named('erase')).toEqual([['erase', START - 7 * 24 * HOUR, START - 24 * HOUR, 500]]);
  expect(named('purgeFeedback')).toEqual([['purgeFeedback', START - 90 * 24 * HOUR, 10_000, 500]]);
  expect(named('purgeTraffic')).toEqual([['purgeTraffic', START - 48 * HOUR, START - 400 * 24 * HOUR, 500]]);
});

test('rounds come again: every 5 s for expiry and leases, every minute for bodies', async () => {
  const { clock, named } = sweeperRig();
  await clock.advance(60_000);
  expect([named('expire').length, named('recover').length, named('erase').length]).toEqual([13, 13, 2]);
});

test('a full round is followed by the next at once, until all is done, and each one is published', async () => {
  const rounds = [500, 500, 3];
  const { clock, named, told } = sweeperRig({
    expire: () => Array.from({ length: rounds.shift() ?? 0 }, (_, n) => `id-${rounds.length}-${n}`),
    recover: () => 2,
  });
  await clock.advance(0);
  expect(named('expire')).toHaveLength(3);
  expect(told.expired).toHaveLength(1_003);
  expect(told.recovered).toEqual([2, 2, 2]);
});

test('a failed round is reported and the next one comes in time; the other sweep goes on', async () => {
  let failures = 1;
  const { clock, named, told } = sweeperRig({
    expire: () => {
      failures -= 1;
      if (failures === 0) throw new Error('the disk is full');
      return [];
    },
  });
  await clock.advance(5_000);
  expect(told.failed).toEqual(['expire: Error: the disk is full']);
  expect([named('expire').length, named('recover').length, named('erase').length]).toEqual([2, 1, 1]);
});

test('stopping waits for the round under way and begins no other', async () => {
  const { clock, named, stop } = sweeperRig({ expire: () => Array.from({ length: 500 }, () => 'id') });
  const stopped = stop();
  await clock.advance(0);
  await stopped;
  const before = named('expire').length;
  await clock.advance(60_000);
  expect(named('expire').length).toBe(before);
});

test('only a node that can tell who is dead takes over what others hold', async () => {
  const { clock, named } = sweeperRig({ judges: () => true });
  await clock.advance(0);
  expect(named('recover')[0]?.[1]).toMatchObject({ everyLease: false, deadNodes: true });
});

test('a lease a minute old that this node does not know of is given back, whatever time it has left', async () => {
  const { clock, named } = sweeperRig();
  await clock.advance(30_000);
  const audits = named('recover').filter(([, options]) => 'ownUntil' in (options as object));
  expect(audits[0]?.[1]).toMatchObject({
    ownUntil: START + 25_000 + LEASE_MS - 60_000,
    except: ['in-memory', 'held-by-this-node'],
  });
});

test('sweeps go by running time: what the clock alone made old is neither ended nor erased', async () => {
  const { clock, named } = sweeperRig({ stoppedMs: () => 30 * 24 * HOUR });
  await clock.advance(0);
  const now = START - 30 * 24 * HOUR;
  expect(named('expire')).toEqual([['expire', now - 24 * HOUR, START, 500, 'node-a']]);
  expect(named('erase')).toEqual([['erase', now - 7 * 24 * HOUR, now - 24 * HOUR, 500]]);
  expect(named('purgeFeedback')).toEqual([['purgeFeedback', now - 90 * 24 * HOUR, 10_000, 500]]);
  expect(named('purgeTraffic')).toEqual([['purgeTraffic', now - 48 * HOUR, now - 400 * 24 * HOUR, 500]]);
});

test('just after a step of the clock no lease is taken back, and none of this node’s own ever is', async () => {
  let settled = false;
  const { clock, named } = sweeperRig({ settled: () => settled, judges: () => true });
  await clock.advance(30_000);
  expect(named('recover')).toEqual([]);
  expect(named('expire').length).toBeGreaterThan(5);
  settled = true;
  await clock.advance(30_000);
  expect(named('recover').length).toBeGreaterThan(5);
  for (const [, options] of named('recover')) {
    expect(options).toMatchObject({ except: ['in-memory', 'held-by-this-node'] });
  }
});
