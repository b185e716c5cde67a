/**
 * The overview operation of the dashboard, on a store with 1,000,000 messages and 30 days of traffic figures of three nodes: the
 * first result of each range, and the median and maximum of the later ones.
 */

import { randomBytes } from 'node:crypto';
import { systemClock } from '../src/clock.ts';
import { loadSettings } from '../src/config/load.ts';
import { HOUR_MS, MINUTE_MS, parseLatencies, type TrafficRow } from '../src/model/traffic.ts';
import { perform } from '../src/operations/operation.ts';
import { showOverview } from '../src/operations/overview.ts';
import type { Store } from '../src/store/contract.ts';

type Record = (measure: string, value: number, unit: string, reach?: string | null) => void;

const RANGES = ['1h', '24h', '7d', '30d'];
const NODES = ['one', 'two', 'three'];
const ROUNDS = 9;
const DAY_MS = 24 * HOUR_MS;
const BATCH = 500;

/** Writes the figures and measures the operation. */
export async function measureOverview(name: string, store: Store, now: number, record: Record): Promise<void> {
  for (const node of NODES) {
    const rows = [...rowsOf(MINUTE_MS, 2 * DAY_MS, now), ...rowsOf(HOUR_MS, 30 * DAY_MS, now)];
    for (let at = 0; at < rows.length; at += BATCH) await store.writeTraffic(node, rows.slice(at, at + BATCH));
  }
  const settings = loadSettings({}, null);
  const status = () => ({ node: 'bench', version: '0', storeFault: null, delivery: null });
  const publish = () => undefined;
  const context = { actor: 'bench', clock: systemClock, store, settings, random: randomBytes, status, publish };
  let worst = 0;
  for (const range of RANGES) {
    const times: number[] = [];
    for (let round = 0; round <= ROUNDS; round += 1) {
      const began = performance.now();
      const performed = await perform(showOverview, { range }, context);
      if (!performed.ok) throw new Error(performed.error.message);
      times.push(performance.now() - began);
    }
    const [first = 0, ...later] = times;
    later.sort((a, b) => a - b);
    worst = Math.max(worst, later.at(-1) ?? 0);
    record(`${name}: overview of ${range}: the first answer`, first, 'ms');
    record(`${name}: overview of ${range}: median of later ones`, later[ROUNDS >> 1] ?? 0, 'ms');
  }
  record(`${name}: the worst later overview`, worst, 'ms', 'under 50');
}

function rowsOf(spanMs: TrafficRow['spanMs'], back: number, now: number): TrafficRow[] {
  const last = Math.floor(now / spanMs) * spanMs;
  const latencies = parseLatencies('60:200 70:120 80:60 90:20 100:8 110:4 120:2 130:1');
  const counts = { accepted: 420, delivered: 400, deferred: 12, bounced: 5, complained: 1, suppressed: 3, expired: 1 };
  return Array.from({ length: back / spanMs }, (_, n) => ({
    spanMs,
    at: last - n * spanMs,
    ...counts,
    ended: 411,
    alarmed: 0,
    latencies,
  }));
}
