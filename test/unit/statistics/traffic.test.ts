import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TrafficRow } from '../../../src/model/traffic.ts';
import { startTrafficCounter } from '../../../src/statistics/traffic.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const HOUR_MS = Date.UTC(2030, 0, 1, 10);

test('stop writes the remaining rows, and counts after the stop are not written', async () => {
  const clock = createVirtualClock(HOUR_MS);
  const writes: (readonly TrafficRow[])[] = [];
  const writeRows = async (_node: string, rows: readonly TrafficRow[]) => void writes.push([...rows]);
  const counter = startTrafficCounter({ node: 'n', clock, writeRows, onWriteError: () => undefined });
  counter.add({ names: ['accepted'], message: null });
  await counter.stop();
  expect(writes).toMatchObject([[{ accepted: 1 }, { accepted: 1 }]]);
  counter.add({ names: ['accepted'], message: null });
  await clock.advance(10_000);
  expect(writes).toHaveLength(1);
});

function mergeRows(writes: readonly (readonly TrafficRow[])[]): Map<string, TrafficRow> {
  return new Map(writes.flat().map((row) => [`${row.spanMs} ${row.at}`, row]));
}

test('the stored rows equal the counts for any clock steps, write times and failures', async () => {
  const step = fc.record({
    /** Offset from the start of an hour. */
    at: fc.integer({ min: -150_000, max: 150_000 }),
    count: fc.constantFrom('accepted', 'delivered', 'bounced', 'cancelled'),
    isWritten: fc.boolean(),
    mustFail: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const writes: TrafficRow[][] = [];
      let now = HOUR_MS;
      let runTimer: (() => void) | null = null;
      let isFailing = false;
      const clock = {
        now: () => now,
        after: (_ms: number, timer: () => void) => {
          runTimer = timer;
          return () => {
            runTimer = null;
          };
        },
      };
      const writeRows = async (_node: string, rows: readonly TrafficRow[]) => {
        if (isFailing) throw new Error('unavailable');
        writes.push(structuredClone([...rows]));
      };
      const counter = startTrafficCounter({ node: 'n', clock, writeRows, onWriteError: () => undefined });
      const expected = new Map<string, { accepted: number; ended: number; delivered: number }>();
      for (const { at, count, isWritten, mustFail } of steps) {
        now = HOUR_MS + at;
        const names =
          count === 'accepted' ? [count] : count === 'cancelled' ? ['ended' as const] : [count, 'ended' as const];
        counter.add({ names, message: null, latencyMs: count === 'delivered' ? 20 : null });
        for (const spanMs of [60_000, 3_600_000]) {
          const key = `${spanMs} ${now - (now % spanMs)}`;
          const sums = expected.get(key) ?? { accepted: 0, ended: 0, delivered: 0 };
          expected.set(key, sums);
          sums[count === 'accepted' ? 'accepted' : 'ended'] += 1;
          if (count === 'delivered') sums.delivered += 1;
        }
        isFailing = mustFail;
        if (isWritten) {
          const due = runTimer as (() => void) | null;
          runTimer = null;
          due?.();
          await new Promise((resolve) => setImmediate(resolve));
        }
      }
      isFailing = false;
      await counter.stop();
      const actualCounts = [...mergeRows(writes)].map(([key, { accepted, ended, delivered, latencies }]) => {
        expect([...latencies.values()].reduce((sum, n) => sum + n, 0)).toBe(delivered);
        return [key, { accepted, ended, delivered }];
      });
      expect(new Map(actualCounts as never)).toEqual(expected);
    }),
    { seed: 29, numRuns: selectCaseCount(100, 150) },
  );
});
