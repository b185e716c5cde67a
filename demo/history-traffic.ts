/**
 * Counts the traffic of the history per minute and per hour, like observability/traffic.ts, but by the time of each
 * event.
 */

import type { State } from '../src/model/message.ts';
import {
  getLatencyBucket,
  HOUR_MS,
  MINUTE_MS,
  TRAFFIC_COUNTS,
  type TrafficCount,
  type TrafficRow,
} from '../src/model/traffic.ts';

type TrafficSums = Record<TrafficCount, number> &
  Pick<TrafficRow, 'spanMs' | 'at'> & { readonly latencies: Map<number, number> };

const SPANS = [MINUTE_MS, HOUR_MS] as const;

export class HistoryTraffic {
  readonly #sums = new Map<string, TrafficSums>();
  readonly #changed = new Set<TrafficSums>();

  count(name: TrafficCount, at: number): void {
    for (const sums of this.#sumsAt(at)) sums[name] += 1;
  }

  /** Counts the end of a message. `tookMs` is the time from acceptance to delivery. */
  countEnd(
    state: Extract<State, 'delivered' | 'bounced' | 'suppressed' | 'expired'>,
    at: number,
    tookMs?: number,
  ): void {
    this.count(state, at);
    this.count('ended', at);
    if (tookMs === undefined) return;
    const bucket = getLatencyBucket(tookMs);
    for (const { latencies } of this.#sumsAt(at)) latencies.set(bucket, (latencies.get(bucket) ?? 0) + 1);
  }

  /** Returns the rows that have changed since the last call. */
  takeChanged(): readonly TrafficRow[] {
    const rows = [...this.#changed];
    this.#changed.clear();
    return rows;
  }

  #sumsAt(at: number): readonly TrafficSums[] {
    return SPANS.map((spanMs) => {
      const startAt = at - (at % spanMs);
      const key = `${spanMs} ${startAt}`;
      const sums = this.#sums.get(key) ?? emptySums(spanMs, startAt);
      this.#sums.set(key, sums);
      this.#changed.add(sums);
      return sums;
    });
  }
}

function emptySums(spanMs: TrafficRow['spanMs'], at: number): TrafficSums {
  const counts = Object.fromEntries(TRAFFIC_COUNTS.map((name) => [name, 0])) as Record<TrafficCount, number>;
  return { ...counts, spanMs, at, latencies: new Map() };
}
