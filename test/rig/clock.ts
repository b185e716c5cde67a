/** A clock that a test controls, so that a wait of days takes milliseconds. */
import { setImmediate as turn } from 'node:timers/promises';
import type { MonotonicClock } from '../../src/clock.ts';

export interface VirtualClock extends MonotonicClock {
  advance(ms: number): Promise<void>;
  /** Sets the wall clock forward by `ms`, as an administrator may. The monotonic clock does not change. */
  setForward(ms: number): void;
  /** Advances the clock from timer to timer until `done` returns true. @throws Error after `withinMs` */
  advanceUntil(done: () => boolean, withinMs: number): Promise<void>;
}

const TURNS_PER_TIMER = 3;

export function createVirtualClock(startAt: number): VirtualClock {
  let now = startAt;
  let wallClockOffsetMs = 0;
  let timers: { readonly at: number; readonly run: () => void }[] = [];

  const waitForTurns = async () => {
    for (let turnCount = 0; turnCount < TURNS_PER_TIMER; turnCount += 1) await turn();
  };

  async function runNextTimer(limit: number): Promise<boolean> {
    const nextTimer = timers.reduce<(typeof timers)[number] | null>(
      (first, timer) => (first === null || timer.at < first.at ? timer : first),
      null,
    );
    if (nextTimer === null || nextTimer.at > limit) return false;
    timers = timers.filter((timer) => timer !== nextTimer);
    now = Math.max(now, nextTimer.at);
    nextTimer.run();
    await waitForTurns();
    return true;
  }

  return {
    now: () => now + wallClockOffsetMs,
    monotonic: () => now,
    after(delayMs, run) {
      const timer = { at: now + delayMs, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    setForward(ms) {
      wallClockOffsetMs += ms;
    },
    async advance(ms) {
      const end = now + ms;
      await waitForTurns();
      while (await runNextTimer(end));
      now = end;
    },
    async advanceUntil(done, withinMs) {
      const end = now + withinMs;
      await waitForTurns();
      while (!done()) {
        if (!(await runNextTimer(end)))
          throw new Error(`the condition was not reached within ${withinMs} ms of the virtual clock`);
      }
    },
  };
}
