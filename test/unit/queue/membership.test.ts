import { expect, onTestFinished, test } from 'vitest';
import { advanceRunningTime, type RunningTime, startRunningTime } from '../../../src/model/running-time.ts';
import { HEARTBEAT_MS, joinCluster, LIVENESS_TIMEOUT_MS, startAgeClock } from '../../../src/queue/membership.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const START = Date.UTC(2026, 0, 5);
const NODE = { name: 'node-a', roles: ['deliver'], version: '1.0.0' };

async function createMember() {
  const clock = createVirtualClock(START);
  const store = { isFailing: false, heartbeats: 0, removedNodes: [] as string[], delayMs: 0 };
  const failures: string[] = [];
  const membership = await joinCluster({
    node: NODE,
    store: {
      async recordHeartbeat() {
        store.heartbeats += 1;
        if (store.isFailing) throw new Error('the database does not answer');
        if (store.delayMs > 0) await new Promise<void>((resolve) => clock.after(store.delayMs, resolve));
        return clock.now();
      },
      async removeNode(name) {
        store.removedNodes.push(name);
      },
    },
    clock,
    monotonic: clock.now,
    onStoreTime: () => undefined,
    onError: (operation) => failures.push(operation),
    readRefusedReports: () => [],
  });
  onTestFinished(() => membership.leave());
  return { clock, store, failed: failures, membership };
}

test('a lease is valid while heartbeats succeed, and invalid after they have failed for almost the liveness timeout', async () => {
  const { clock, store, failed: failures, membership } = await createMember();
  await clock.advance(10 * HEARTBEAT_MS);
  expect(membership.isLeaseValid(clock.now())).toBe(true);
  store.isFailing = true;
  await clock.advance(LIVENESS_TIMEOUT_MS - 1);
  expect(membership.isLeaseValid(START)).toBe(false);
  expect(failures.length).toBeGreaterThan(2);
});

test('a lease from before a gap in the heartbeats is invalid, and a lease from after the gap is valid', async () => {
  const { clock, store, membership } = await createMember();
  const leasedAt = clock.now();
  store.isFailing = true;
  await clock.advance(LIVENESS_TIMEOUT_MS);
  store.isFailing = false;
  await clock.advance(2 * HEARTBEAT_MS);
  expect(membership.isLeaseValid(leasedAt)).toBe(false);
  expect(membership.isLeaseValid(clock.now())).toBe(true);
});

test('a late answer to a heartbeat also counts as a gap in the heartbeats, because other nodes may have treated this node as dead', async () => {
  const { clock, store, membership } = await createMember();
  const leasedAt = clock.now();
  store.delayMs = LIVENESS_TIMEOUT_MS;
  await clock.advance(HEARTBEAT_MS + LIVENESS_TIMEOUT_MS);
  store.delayMs = 0;
  await clock.advance(2 * HEARTBEAT_MS);
  expect(membership.isLeaseValid(leasedAt)).toBe(false);
  expect(membership.isLeaseValid(clock.now())).toBe(true);
});

test('a node detects dead nodes only after its heartbeats had no gap for the liveness timeout', async () => {
  const { clock, store, membership } = await createMember();
  expect(membership.canDetectDeadNodes()).toBe(false);
  await clock.advance(LIVENESS_TIMEOUT_MS);
  expect(membership.canDetectDeadNodes()).toBe(true);
  store.isFailing = true;
  await clock.advance(LIVENESS_TIMEOUT_MS);
  expect(membership.canDetectDeadNodes()).toBe(false);
  store.isFailing = false;
  await clock.advance(2 * HEARTBEAT_MS);
  expect(membership.canDetectDeadNodes()).toBe(false);
  await clock.advance(LIVENESS_TIMEOUT_MS);
  expect(membership.canDetectDeadNodes()).toBe(true);
});

test('a node that leaves is removed and sends no further heartbeat', async () => {
  const { clock, store, membership } = await createMember();
  await membership.leave();
  const { heartbeats } = store;
  await clock.advance(10 * HEARTBEAT_MS);
  expect([store.heartbeats, store.removedNodes]).toEqual([heartbeats, ['node-a']]);
});

// These tests check the ages that a node computes in running time. The node derives the running time from the clock and
// the monotonic clock, and saves it in the store periodically.

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

function createStoreRig() {
  const store = {
    storedTime: null as RunningTime | null,
    isFailing: false,
    writeCount: 0,
    async updateRunningTime(passedMs: number, now: number) {
      if (store.isFailing) throw new Error('the store is failing');
      store.storedTime = advanceRunningTime(store.storedTime ?? startRunningTime(now), now, passedMs);
      store.writeCount += 1;
      return store.storedTime;
    },
  };
  return store;
}

async function startClock(store = createStoreRig(), clock = createVirtualClock(START)) {
  const failures: string[] = [];
  const { ages, stop } = await startAgeClock({ clock, store, onError: (operation) => failures.push(operation) });
  onTestFinished(stop);
  return { clock, store, ages, stop, failures, computeAge: (at: number) => clock.now() - ages.toCurrentClock(at) };
}

test('a step of the clock changes no age, either before or after the step is written to the store', async () => {
  const { clock, ages, computeAge } = await startClock();
  await clock.advance(5 * MINUTE_MS);
  clock.setForward(3 * DAY_MS);
  expect(computeAge(START)).toBeLessThanOrEqual(5 * MINUTE_MS);
  expect(ages.getCutoff(DAY_MS)).toBeLessThan(START);
  await clock.advance(MINUTE_MS);
  expect(computeAge(START)).toBeLessThanOrEqual(6 * MINUTE_MS);
  expect(ages.getCutoff(DAY_MS)).toBeLessThan(START);
});

test('after a step, the clock is reported as not stable until the liveness timeout has passed', async () => {
  const { clock, ages } = await startClock();
  await clock.advance(MINUTE_MS);
  expect(ages.isClockStable()).toBe(true);
  clock.setForward(DAY_MS);
  expect(ages.isClockStable()).toBe(false);
  await clock.advance(2 * LIVENESS_TIMEOUT_MS);
  expect(ages.isClockStable()).toBe(true);
});

test('a start after days without a running service continues with the running time of the last run', async () => {
  const firstClock = await startClock();
  await firstClock.clock.advance(5 * MINUTE_MS);
  await firstClock.stop();
  const clock = createVirtualClock(START + 3 * DAY_MS);
  const secondClock = await startClock(firstClock.store, clock);
  expect(secondClock.computeAge(START)).toBe(5 * MINUTE_MS);
  await clock.advance(MINUTE_MS);
  expect(secondClock.computeAge(START)).toBe(6 * MINUTE_MS);
});
