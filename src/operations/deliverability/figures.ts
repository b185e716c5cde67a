/**
 * Computes deliverability figures from stored rows: sums by key for a range and for the previous period, and the counts
 * of each step. Pure.
 */
import { formatIsoTime } from '../../config/units.ts';
import {
  addKeyCounts,
  createKeyCounts,
  type KeyCounts,
  type MutableKeyCounts,
  parseKeyCounts,
  REMAINDER_KEY,
  type StoredDeliverabilityRow,
  subtractKeyCounts,
} from '../../model/deliverability.ts';
import { computePercentile, type Latencies } from '../../model/traffic.ts';
import {
  type ComparedFigures,
  DELIVERABILITY_RANGES,
  type DeliverabilityFigures,
  type DeliverabilityRange,
} from './schemas.ts';

/** The counts of the range and of the previous period. */
export interface ComparedCounts {
  readonly current: MutableKeyCounts;
  readonly previous: MutableKeyCounts;
}

export interface SeriesSums {
  /** The counts by key, without those of `REMAINDER_KEY`. */
  readonly byKey: ReadonlyMap<string, ComparedCounts>;
  readonly total: ComparedCounts;
}

export interface PeriodBounds {
  /** The start of the previous period, which ends at `from`. */
  readonly previousFrom: number;
  /** The start of the first step of the range. The last step contains the current time. */
  readonly from: number;
  /** The end of the last step. */
  readonly until: number;
}

export function getPeriodBounds(range: DeliverabilityRange, now: number): PeriodBounds {
  const { stepMs, steps } = DELIVERABILITY_RANGES[range];
  const until = now - (now % stepMs) + stepMs;
  const from = until - steps * stepMs;
  return { previousFrom: from - steps * stepMs, from, until };
}

export function createComparedCounts(): ComparedCounts {
  return { current: createKeyCounts(), previous: createKeyCounts() };
}

/**
 * Adds up the rows. `toKey` converts a stored key to a key of the result, or to null if the result does not include the
 * stored key. The total includes the counts whose key is `REMAINDER_KEY`.
 */
export function sumRows(
  rows: readonly StoredDeliverabilityRow[],
  { from }: PeriodBounds,
  toKey: (storedKey: string) => string | null,
): SeriesSums {
  const byKey = new Map<string, ComparedCounts>();
  const total = createComparedCounts();
  for (const { at, counts: text } of rows) {
    const period = at >= from ? 'current' : 'previous';
    for (const [storedKey, counts] of parseKeyCounts(text)) {
      const key = toKey(storedKey);
      if (key === null) continue;
      addKeyCounts(total[period], counts);
      if (key === REMAINDER_KEY) continue;
      let sums = byKey.get(key);
      if (sums === undefined) {
        sums = createComparedCounts();
        byKey.set(key, sums);
      }
      addKeyCounts(sums[period], counts);
    }
  }
  return { byKey, total };
}

/**
 * Returns the counts of each step of the range. `isSelected` returns true for the stored keys that the counts include.
 */
export function computePoints(
  rows: readonly StoredDeliverabilityRow[],
  range: DeliverabilityRange,
  { from }: PeriodBounds,
  isSelected: (storedKey: string) => boolean,
) {
  const { stepMs, steps } = DELIVERABILITY_RANGES[range];
  const countsByStep = Array.from({ length: steps }, createKeyCounts);
  for (const { at, counts: text } of rows) {
    const step = countsByStep[Math.floor((at - from) / stepMs)];
    if (at < from || step === undefined) continue;
    for (const [key, counts] of parseKeyCounts(text)) if (isSelected(key)) addKeyCounts(step, counts);
  }
  return countsByStep.map((counts, index) => ({ at: formatIsoTime(from + index * stepMs), ...toFigures(counts) }));
}

/** Returns the counts of `total` without those of `parts`. */
export function subtractParts(total: ComparedCounts, parts: readonly ComparedCounts[]): ComparedCounts {
  const remainder = createComparedCounts();
  addKeyCounts(remainder.current, total.current);
  addKeyCounts(remainder.previous, total.previous);
  for (const { current, previous } of parts) {
    subtractKeyCounts(remainder.current, current);
    subtractKeyCounts(remainder.previous, previous);
  }
  return remainder;
}

export function toComparedFigures({ current, previous }: ComparedCounts): ComparedFigures {
  return { ...toFigures(current), previous: toFigures(previous) };
}

/** Computes the rates and percentiles of counts. */
export function toFigures(counts: KeyCounts): DeliverabilityFigures {
  const { accepted, delivered, confirmed, deferred, ended, bounced, hard, soft, block, complained } = counts;
  return {
    ...{ accepted, delivered, confirmed, deferred, ended, bounced, bounces: { hard, soft, block }, complained },
    deliveredRate: computeRate(delivered, ended),
    deferralRate: computeRate(deferred, deferred + ended),
    bounceRate: computeRate(bounced, ended),
    complaintRate: computeRate(complained, delivered),
    latencyMs: computePercentiles(counts.latencies),
    confirmationMs: computePercentiles(counts.confirmations),
  };
}

function computeRate(count: number, all: number): number | null {
  return all === 0 ? null : count / all;
}

function computePercentiles(latencies: Latencies): DeliverabilityFigures['latencyMs'] {
  const [p50, p99] = [computePercentile(latencies, 0.5), computePercentile(latencies, 0.99)];
  return p50 === null || p99 === null ? null : { p50, p99 };
}
