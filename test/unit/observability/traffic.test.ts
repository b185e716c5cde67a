import fc from 'fast-check';
import { expect, test } from 'vitest';
import { getLatencyBucket, type TrafficRow } from '../../../src/model/traffic.ts';
import { startTrafficCounter } from '../../../src/observability/traffic.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const HOUR_MS = Date.UTC(2030, 0, 1, 10);

/** Creates a counter whose writes are recorded. */
function createCounterRig(startAt = HOUR_MS) {
  const clock = createVirtualClock(startAt);
  const writes: TrafficRow[][] = [];
  const faults: unknown[] = [];
  const storeState = { fault: null as Error | null };
  const counter = startTrafficCounter({
    node: 'node-a',
    clock,
    writeRows: async (node, rows) => {
      expect(node).toBe('node-a');
      if (storeState.fault !== null) throw storeState.fault;
      writes.push(structuredClone([...rows]));
    },
    onWriteError: (error) => faults.push(error),
  });
  return { clock, counter, writes, faults, storeState };
}

test('counts are written after one second as complete rows, and nothing is written if nothing was counted', async () => {
  const { clock, counter, writes } = createCounterRig();
  await clock.advance(10_000);
  expect(writes).toEqual([]);
  counter.countAccepted();
  counter.countAccepted();
  counter.countStateEntry('delivered', 20);
  await clock.advance(1_000);
  counter.countStateEntry('bounced');
  counter.countReport('complained');
  counter.countDeferred();
  await clock.advance(60_000);
  expect(writes).toHaveLength(2);
  const minute = { spanMs: 60_000, at: HOUR_MS };
  expect(writes[0]).toMatchObject([
    { ...minute, accepted: 2, delivered: 1, ended: 1, bounced: 0 },
    { spanMs: 3_600_000, at: HOUR_MS, accepted: 2, delivered: 1 },
  ]);
  expect(writes[0]?.[0]?.latencies.size).toBe(1);
  expect(writes[1]).toMatchObject([
    { ...minute, accepted: 2, delivered: 1, bounced: 1, complained: 1, deferred: 1, ended: 2 },
    { spanMs: 3_600_000, at: HOUR_MS, accepted: 2, ended: 2 },
  ]);
});

test('a cancelled or uncertain message is counted only as an ended message', async () => {
  const { clock, counter, writes } = createCounterRig();
  counter.countStateEntry('cancelled');
  counter.countStateEntry('uncertain');
  await clock.advance(1_000);
  expect(writes).toMatchObject([[{ ended: 1 }, { ended: 1 }]]);
  const [row] = writes.flat();
  if (row === undefined) throw new Error('nothing was written');
  const { ended, spanMs, at, latencies, confirmations, bounces, ...otherCounts } = row;
  expect(new Set(Object.values(otherCounts))).toEqual(new Set([0]));
});

test('bounces are counted by failure class and category, and confirmations by latency', async () => {
  const { clock, counter, writes } = createCounterRig();
  counter.countBounce({ class: 'hard', category: 'domain' });
  counter.countBounce({ class: 'hard', category: 'domain' });
  counter.countBounce({ class: 'soft', category: 'unknown' });
  counter.countConfirmed(2_000);
  await clock.advance(1_000);
  const [row] = writes.flat();
  expect(row).toMatchObject({ confirmed: 1, delivered: 0, ended: 0 });
  expect([...(row?.confirmations ?? [])]).toEqual([[getLatencyBucket(2_000), 1]]);
  expect([...(row?.bounces ?? [])]).toEqual([
    ['hard/domain', 2],
    ['soft/unknown', 1],
  ]);
});

test('stop writes the remaining rows, and counts after the stop are not written', async () => {
  const { clock, counter, writes } = createCounterRig();
  counter.countAccepted();
  await counter.stop();
  expect(writes).toMatchObject([[{ accepted: 1 }, { accepted: 1 }]]);
  counter.countAccepted();
  await clock.advance(10_000);
  expect(writes).toHaveLength(1);
});

/** Returns the stored rows after all writes. A row replaces the earlier row of the same interval. */
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
        if (count === 'accepted') counter.countAccepted();
        else counter.countStateEntry(count, 20);
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
