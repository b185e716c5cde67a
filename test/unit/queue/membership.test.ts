import { expect, onTestFinished, test } from 'vitest';
import { ALIVE_MS, BEAT_MS, joinNodes } from '../../../src/queue/membership.ts';
import { virtualClock } from '../../rig/clock.ts';

const START = Date.UTC(2026, 0, 5);
const NODE = { name: 'node-a', roles: ['deliver'], version: '1.0.0' };

/** A node whose store answers, fails, or takes its time, as told. */
async function member() {
  const clock = virtualClock(START);
  const store = { away: false, beats: 0, left: [] as string[], slowMs: 0 };
  const failed: string[] = [];
  const membership = await joinNodes({
    node: NODE,
    store: {
      async beat() {
        store.beats += 1;
        if (store.away) throw new Error('the database is away');
        if (store.slowMs > 0) await new Promise<void>((resolve) => clock.after(store.slowMs, resolve));
        return clock.now();
      },
      async leave(name) {
        store.left.push(name);
      },
    },
    clock,
    monotonic: clock.now,
    told: () => undefined,
    failed: (what) => failed.push(what),
  });
  onTestFinished(() => membership.leave());
  return { clock, store, failed, membership };
}

test('a lease counts while the beats go on, and no longer once they have failed for nearly as long as they are believed', async () => {
  const { clock, store, failed, membership } = await member();
  await clock.advance(10 * BEAT_MS);
  expect(membership.holds(clock.now())).toBe(true);
  store.away = true;
  await clock.advance(ALIVE_MS - 1);
  expect(membership.holds(START)).toBe(false);
  expect(failed.length).toBeGreaterThan(2);
});

test('after a gap, what was leased before it counts no more, and what is leased after it does', async () => {
  const { clock, store, membership } = await member();
  const before = clock.now();
  store.away = true;
  await clock.advance(ALIVE_MS);
  store.away = false;
  await clock.advance(2 * BEAT_MS);
  expect(membership.holds(before)).toBe(false);
  expect(membership.holds(clock.now())).toBe(true);
});

test('a beat that is answered late is a gap too: whoever was stopped meanwhile may have been taken for dead', async () => {
  const { clock, store, membership } = await member();
  const before = clock.now();
  store.slowMs = ALIVE_MS;
  await clock.advance(BEAT_MS + ALIVE_MS);
  store.slowMs = 0;
  await clock.advance(2 * BEAT_MS);
  expect(membership.holds(before)).toBe(false);
  expect(membership.holds(clock.now())).toBe(true);
});

test('others are called dead only after this node has heard the store without a gap for as long as one may be silent', async () => {
  const { clock, store, membership } = await member();
  expect(membership.judges()).toBe(false);
  await clock.advance(ALIVE_MS);
  expect(membership.judges()).toBe(true);
  store.away = true;
  await clock.advance(ALIVE_MS);
  expect(membership.judges()).toBe(false);
  store.away = false;
  await clock.advance(2 * BEAT_MS);
  expect(membership.judges()).toBe(false);
  await clock.advance(ALIVE_MS);
  expect(membership.judges()).toBe(true);
});

test('a node that leaves says so and beats no more', async () => {
  const { clock, store, membership } = await member();
  await membership.leave();
  const { beats } = store;
  await clock.advance(10 * BEAT_MS);
  expect([store.beats, store.left]).toEqual([beats, ['node-a']]);
});
