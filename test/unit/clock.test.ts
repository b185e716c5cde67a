import { expect, test } from 'vitest';
import { createSynchronizedClock } from '../../src/clock.ts';
import { createVirtualClock } from '../rig/clock.ts';

/** Creates a synchronized clock on a simulated machine whose system clock can be set. */
function createMachine() {
  const realClock = createVirtualClock(1_000_000);
  let clockOffsetMs = 0;
  const systemClock = { ...realClock, now: () => realClock.now() + clockOffsetMs };
  return {
    realClock,
    clock: createSynchronizedClock(systemClock, () => realClock.now() - 1_000_000),
    shiftSystemClock: (ms: number) => {
      clockOffsetMs = ms;
    },
  };
}

test('before the first synchronization, the clock has the time of the system clock', () => {
  const { clock } = createMachine();
  expect(clock.now()).toBe(1_000_000);
});

test('after a synchronization, a change of the system clock has no effect', async () => {
  const { clock, realClock, shiftSystemClock } = createMachine();
  clock.synchronize(5_000_000, 0, 0);
  shiftSystemClock(-86_400_000);
  await realClock.advance(250);
  expect(clock.now()).toBe(5_000_250);
});

test('a synchronization adjusts the clock only if the difference exceeds the uncertainty of the reading', () => {
  const { clock } = createMachine();
  clock.synchronize(5_000_000, 0, 0);
  clock.synchronize(5_000_060, 0, 100);
  expect(clock.now()).toBe(5_000_000);
  clock.synchronize(5_000_500, 0, 100);
  expect(clock.now()).toBe(5_000_450);
});
