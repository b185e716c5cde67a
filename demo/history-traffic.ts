/**
 * Counts the traffic of the history per minute and per hour, like statistics/traffic.ts, but with the time of each
 * event in place of the current time.
 */

import type { Failure } from '../src/model/failure.ts';
import type { State } from '../src/model/message.ts';
import {
  getFailureKey,
  getLatencyBucket,
  HOUR_MS,
  MINUTE_MS,
  TRAFFIC_COUNTS,
  type TrafficCount,
  type TrafficRow,
} from '../src/model/traffic.ts';

type TrafficSums = Record<TrafficCount, number> &
  Pick<TrafficRow, 'spanMs' | 'at'> & {
    readonly latencies: Map<number, number>;
    readonly confirmations: Map<number, number>;
    readonly bounces: Map<string, number>;
  };

const SPANS_MS = [MINUTE_MS, HOUR_MS] as const;

export class HistoryTraffic {
  readonly #sums = new Map<string, TrafficSums>();
  readonly #changed = new Set<TrafficSums>();

  count(name: TrafficCount, at: number): void {
    for (const sums of this.#getSums(at)) sums[name] += 1;
  }

  /**
   * Counts a message that reaches a terminal state. `tookMs` is the time from acceptance to delivery of a delivered
   * message.
   */
  countTerminalState(
    state: Extract<State, 'delivered' | 'bounced' | 'suppressed' | 'expired'>,
    at: number,
    tookMs?: number,
  ): void {
    this.count(state, at);
    this.count('ended', at);
    if (tookMs === undefined) return;
    const bucket = getLatencyBucket(tookMs);
    for (const { latencies } of this.#getSums(at)) latencies.set(bucket, (latencies.get(bucket) ?? 0) + 1);
  }

  /**
   * Counts a delivery that the provider confirmed. `bucket` is the histogram bucket for the time from acceptance to the
   * event.
   */
  countConfirmedDelivery(at: number, bucket: number): void {
    this.count('confirmed', at);
    for (const { confirmations } of this.#getSums(at)) confirmations.set(bucket, (confirmations.get(bucket) ?? 0) + 1);
  }

  /** Counts a bounced message under the key of its failure. */
  countBounce(failure: Failure, at: number): void {
    const key = getFailureKey(failure);
    for (const { bounces } of this.#getSums(at)) bounces.set(key, (bounces.get(key) ?? 0) + 1);
  }

  /** Returns the rows that have changed since the previous call. */
  collectChangedRows(): readonly TrafficRow[] {
    const rows = [...this.#changed];
    this.#changed.clear();
    return rows;
  }

  #getSums(at: number): readonly TrafficSums[] {
    return SPANS_MS.map((spanMs) => {
      const startAt = at - (at % spanMs);
      const key = `${spanMs} ${startAt}`;
      const sums = this.#sums.get(key) ?? createEmptySums(spanMs, startAt);
      this.#sums.set(key, sums);
      this.#changed.add(sums);
      return sums;
    });
  }
}

function createEmptySums(spanMs: TrafficRow['spanMs'], at: number): TrafficSums {
  const counts = Object.fromEntries(TRAFFIC_COUNTS.map((name) => [name, 0])) as Record<TrafficCount, number>;
  return { ...counts, spanMs, at, latencies: new Map(), confirmations: new Map(), bounces: new Map() };
}
