import { expect, onTestFinished, test } from 'vitest';
import { advanceRunningTime, type RunningTime, startRunningTime } from '../../../src/model/running-time.ts';
import { HEARTBEAT_MS, joinCluster, LIVENESS_TIMEOUT_MS, startAgeClock } from '../../../src/queue/membership.ts';
import { virtualClock } from '../../rig/clock.ts';

const START = Date.UTC(2026, 0, 5);
const NODE = { name: 'node-a', roles: ['deliver'], version: '1.0.0' };

/** A node whose store answers, fails, or takes its time, as told. */
async function member() {
  const clock = virtualClock(START);
  const store = { away: false, beats: 0, left: [] as string[], slowMs: 0 };
  const failed: string[] = [];
  const membership = await joinCluster({
    node: NODE,
    store: {
      async recordHeartbeat() {
        store.beats += 1;
        if (store.away) throw new Error('the database is away');
        if (store.slowMs > 0) await new Promise<void>((resolve) => clock.after(store.slowMs, resolve));
        return clock.now();
      },
      async removeNode(name) {
        store.left.push(name);
      },
    },
    clock,
    monotonic: clock.now,
    onStoreTime: () => undefined,
    onError: (what) => failed.push(what),
  });
  onTestFinished(() => membership.leave());
  return { clock, store, failed, membership };
}

test('a lease counts while the beats go on, and no longer once they have failed for nearly as long as they are believed', async () => {
  const { clock, store, failed, membership } = await member();
  await clock.advance(10 * HEARTBEAT_MS);
  expect(membership.isLeaseValid(clock.now())).toBe(true);
  store.away = true;
  await clock.advance(LIVENESS_TIMEOUT_MS - 1);
  expect(membership.isLeaseValid(START)).toBe(false);
  expect(failed.length).toBeGreaterThan(2);
});

test('after a gap, what was leased before it counts no more, and what is leased after it does', async () => {
  const { clock, store, membership } = await member();
  const before = clock.now();
  store.away = true;
  await clock.advance(LIVENESS_TIMEOUT_MS);
  store.away = false;
  await clock.advance(2 * HEARTBEAT_MS);
  expect(membership.isLeaseValid(before)).toBe(false);
  expect(membership.isLeaseValid(clock.now())).toBe(true);
});

test('a beat that is answered late is a gap too: whoever was stopped meanwhile may have been taken for dead', async () => {
  const { clock, store, membership } = await member();
  const before = clock.now();
  store.slowMs = LIVENESS_TIMEOUT_MS;
  await clock.advance(HEARTBEAT_MS + LIVENESS_TIMEOUT_MS);
  store.slowMs = 0;
  await clock.advance(2 * HEARTBEAT_MS);
  expect(membership.isLeaseValid(before)).toBe(false);
  expect(membership.isLeaseValid(clock.now())).toBe(true);
});

test('others are called dead only after this node has heard the store without a gap for as long as one may be silent', async () => {
  const { clock, store, membership } = await member();
  expect(membership.canDetectDeadNodes()).toBe(false);
  await clock.advance(LIVENESS_TIMEOUT_MS);
  expect(membership.canDetectDeadNodes()).toBe(true);
  store.away = true;
  await clock.advance(LIVENESS_TIMEOUT_MS);
  expect(membership.canDetectDeadNodes()).toBe(false);
  store.away = false;
  await clock.advance(2 * HEARTBEAT_MS);
  expect(membership.canDetectDeadNodes()).toBe(false);
  await clock.advance(LIVENESS_TIMEOUT_MS);
  expect(membership.canDetectDeadNodes()).toBe(true);
});

test('a node that leaves says so and beats no more', async () => {
  const { clock, store, membership } = await member();
  await membership.leave();
  const { beats } = store;
  await clock.advance(10 * HEARTBEAT_MS);
  expect([store.beats, store.left]).toEqual([beats, ['node-a']]);
});

// Ages on a node: by the clock and the monotonic clock at every moment, kept in the store now and then.

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** What a store keeps over several starts. */
function storeRig() {
  const rig = {
    kept: null as RunningTime | null,
    away: false,
    writes: 0,
    async updateRunningTime(passedMs: number, now: number) {
      if (rig.away) throw new Error('the store is away');
      rig.kept = advanceRunningTime(rig.kept ?? startRunningTime(now), now, passedMs);
      rig.writes += 1;
      return rig.kept;
    },
  };
  return rig;
}

async function started(store = storeRig(), clock = virtualClock(START)) {
  const failures: string[] = [];
  const { ages, stop } = await startAgeClock({ clock, store, onError: (what) => failures.push(what) });
  onTestFinished(stop);
  return { clock, store, ages, stop, failures, ageOf: (at: number) => clock.now() - ages.toCurrentClock(at) };
}

test('a step of the clock counts at no moment, before it is kept and after', async () => {
  const { clock, ages, ageOf } = await started();
  await clock.advance(5 * MINUTE);
  clock.step(3 * DAY);
  expect(ageOf(START)).toBeLessThanOrEqual(5 * MINUTE);
  expect(ages.cutoffFor(DAY)).toBeLessThan(START);
  await clock.advance(MINUTE);
  expect(ageOf(START)).toBeLessThanOrEqual(6 * MINUTE);
  expect(ages.cutoffFor(DAY)).toBeLessThan(START);
});

test('what waits through steps ends all the same, once it has run for its age', async () => {
  const { clock, ages } = await started();
  clock.step(3 * DAY);
  await clock.advance(DAY + MINUTE);
  expect(ages.cutoffFor(DAY)).toBeGreaterThanOrEqual(START);
});

test('nodes are left alone for as long as a node may be silent after a step', async () => {
  const { clock, ages } = await started();
  await clock.advance(MINUTE);
  expect(ages.isSettled()).toBe(true);
  clock.step(DAY);
  expect(ages.isSettled()).toBe(false);
  await clock.advance(2 * LIVENESS_TIMEOUT_MS);
  expect(ages.isSettled()).toBe(true);
});

test('a start after days in which nothing ran goes on where the last run ended', async () => {
  const first = await started();
  await first.clock.advance(5 * MINUTE);
  await first.stop();
  const clock = virtualClock(START + 3 * DAY);
  const second = await started(first.store, clock);
  expect(second.ageOf(START)).toBe(5 * MINUTE);
  await clock.advance(MINUTE);
  expect(second.ageOf(START)).toBe(6 * MINUTE);
});

test('a restart of seconds counts as running', async () => {
  const first = await started();
  await first.clock.advance(5 * MINUTE);
  await first.stop();
  const second = await started(first.store, virtualClock(START + 5 * MINUTE + 20_000));
  expect(second.ageOf(START)).toBe(5 * MINUTE + 20_000);
});

test('while the store is away time goes on, and what was missed is kept when it is back', async () => {
  const { clock, store, ageOf, failures } = await started();
  store.away = true;
  await clock.advance(60 * MINUTE);
  expect(failures.length).toBeGreaterThan(0);
  expect(ageOf(START)).toBe(60 * MINUTE);
  store.away = false;
  await clock.advance(MINUTE);
  expect(ageOf(START)).toBe(61 * MINUTE);
  expect(store.kept?.stretches).toHaveLength(1);
});
