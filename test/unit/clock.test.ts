import { expect, test } from 'vitest';
import { synchronizedClock } from '../../src/clock.ts';
import { virtualClock } from '../rig/clock.ts';

/** A machine whose clock can be set, and its monotonic one. */
function createMachine() {
  const real = virtualClock(1_000_000);
  let setBy = 0;
  const base = { ...real, now: () => real.now() + setBy };
  return {
    real,
    clock: synchronizedClock(base, () => real.now() - 1_000_000),
    setBy: (ms: number) => {
      setBy = ms;
    },
  };
}

test('before the first answer the time is the machine’s', () => {
  const { clock } = createMachine();
  expect(clock.now()).toBe(1_000_000);
});

test('setting the machine’s clock changes nothing', async () => {
  const { clock, real, setBy } = createMachine();
  clock.synchronize(5_000_000, 0, 0);
  setBy(-86_400_000);
  await real.advance(250);
  expect(clock.now()).toBe(5_000_250);
});

test('an answer within its own doubt does not move the time, one beyond it does', () => {
  const { clock } = createMachine();
  clock.synchronize(5_000_000, 0, 0);
  clock.synchronize(5_000_060, 0, 100);
  expect(clock.now()).toBe(5_000_000);
  clock.synchronize(5_000_500, 0, 100);
  expect(clock.now()).toBe(5_000_450);
});
