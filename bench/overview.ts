/**
 * Measures the overview operation of the dashboard on a store with 1,000,000 messages and the traffic figures of three
 * nodes for 30 days. Records, for each time range, the duration of the first response and the median duration of the
 * later responses. Also records the maximum duration of the later responses for all time ranges.
 */

import { randomBytes } from 'node:crypto';
import { systemClock } from '../src/clock.ts';
import { loadSettings } from '../src/config/load.ts';
import { HOUR_MS, MINUTE_MS, parseFailureCounts, parseLatencies, type TrafficRow } from '../src/model/traffic.ts';
import { perform } from '../src/operations/operation.ts';
import { showOverview } from '../src/operations/overview.ts';
import type { Store } from '../src/store/contract.ts';

type RecordFigure = (measure: string, value: number, unit: string, target?: string | null) => void;

const RANGES = ['1h', '24h', '7d', '30d'];
const NODE_NAMES = ['one', 'two', 'three'];
const ROUND_COUNT = 9;
const DAY_MS = 24 * HOUR_MS;
const BATCH_SIZE = 500;

/** Writes the traffic figures and measures the overview operation. */
export async function measureOverview(name: string, store: Store, now: number, record: RecordFigure): Promise<void> {
  for (const node of NODE_NAMES) {
    const rows = [...createTrafficRows(MINUTE_MS, 2 * DAY_MS, now), ...createTrafficRows(HOUR_MS, 30 * DAY_MS, now)];
    for (let offset = 0; offset < rows.length; offset += BATCH_SIZE)
      await store.writeTraffic(node, rows.slice(offset, offset + BATCH_SIZE));
  }
  const settings = loadSettings({}, null);
  const getStatus = () => ({ node: 'bench', version: '0', storeFault: null, refusedReports: [], delivery: null });
  const publish = () => undefined;
  const context = {
    actor: 'bench',
    scope: 'all' as const,
    clock: systemClock,
    store,
    settings,
    random: randomBytes,
    status: getStatus,
    publish,
  };
  let maxLaterMs = 0;
  for (const range of RANGES) {
    const durations: number[] = [];
    for (let round = 0; round <= ROUND_COUNT; round += 1) {
      const startedAt = performance.now();
      const result = await perform(showOverview, { range }, context);
      if (!result.ok) throw new Error(result.error.message);
      durations.push(performance.now() - startedAt);
    }
    const [firstMs = 0, ...laterMs] = durations;
    laterMs.sort((a, b) => a - b);
    maxLaterMs = Math.max(maxLaterMs, laterMs.at(-1) ?? 0);
    record(`${name}: overview of ${range}: first response`, firstMs, 'ms');
    record(`${name}: overview of ${range}: median of later responses`, laterMs[ROUND_COUNT >> 1] ?? 0, 'ms');
  }
  record(`${name}: slowest later overview`, maxLaterMs, 'ms', 'under 50');
}

function createTrafficRows(spanMs: TrafficRow['spanMs'], durationMs: number, now: number): TrafficRow[] {
  const newestAt = Math.floor(now / spanMs) * spanMs;
  const latencies = parseLatencies('60:200 70:120 80:60 90:20 100:8 110:4 120:2 130:1');
  const bounces = parseFailureCounts('hard/mailbox-unknown:3 soft/mailbox-full:1 block/policy:1');
  const counts = { accepted: 420, delivered: 400, deferred: 12, bounced: 5, complained: 1, suppressed: 3, expired: 1 };
  return Array.from({ length: durationMs / spanMs }, (_, n) => ({
    spanMs,
    at: newestAt - n * spanMs,
    ...counts,
    ended: 411,
    alarmed: 0,
    confirmed: 390,
    latencies,
    confirmations: latencies,
    bounces,
  }));
}
