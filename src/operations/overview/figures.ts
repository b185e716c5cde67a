/**
 * Computes the traffic over time for the overview: one point for each step, sums, and percentiles from the histograms.
 */
import { formatIsoTime } from '../../config/units.ts';
import {
  addCounts,
  computePercentile,
  getRowSpanMs,
  type Latencies,
  listFailureCounts,
  TRAFFIC_COUNTS,
  type Traffic,
  type TrafficStep,
} from '../../model/traffic.ts';
import { type Figures, RANGES, type Range } from './schemas.ts';

/** Returns the start of the first step of the range. The last step contains `now`. */
export function getRangeStart(range: Range, now: number): number {
  const { stepMs, steps } = RANGES[range];
  return now - (now % stepMs) - (steps - 1) * stepMs;
}

/** Returns the start of the previous period, one range before `getRangeStart`. The period ends at `getPreviousEnd`. */
export function getPreviousStart(range: Range, now: number): number {
  const { stepMs, steps } = RANGES[range];
  return getRangeStart(range, now) - steps * stepMs;
}

/**
 * Returns the end of the stored rows that belong to the previous period. The last step of the range has not ended, so
 * the previous period ends one range before `now`. The end is rounded up to a whole row: a minute, or an hour for `7d`
 * and `30d`.
 */
export function getPreviousEnd(range: Range, now: number): number {
  const { stepMs, steps } = RANGES[range];
  const rowSpanMs = getRowSpanMs(stepMs);
  return Math.ceil((now - steps * stepMs) / rowSpanMs) * rowSpanMs;
}

/** Computes the sums and percentiles of a period. */
export function computeTotals(steps: readonly TrafficStep[]): Figures {
  return toFigures(sumTraffic(steps));
}

/** Computes points, sums and percentiles. `steps` are the steps with traffic since `getRangeStart`. */
export function computeTrafficFigures(range: Range, now: number, steps: readonly TrafficStep[]) {
  const { stepMs, steps: stepCount } = RANGES[range];
  const since = getRangeStart(range, now);
  const sum = sumTraffic(steps);
  const stepsByTime = new Map(steps.map((step) => [step.at, step]));
  return {
    points: Array.from({ length: stepCount }, (_, index) => {
      const at = since + index * stepMs;
      return { at: formatIsoTime(at), ...toFigures(stepsByTime.get(at) ?? NO_TRAFFIC) };
    }),
    totals: { ...toFigures(sum), bounces: [...listFailureCounts(sum.bounces)] },
  };
}

const NO_TRAFFIC: Traffic = sumTraffic([]);

/** Returns the sum of all steps. */
export function sumTraffic(steps: readonly Traffic[]): Traffic {
  const latencies = new Map<number, number>();
  const confirmations = new Map<number, number>();
  const bounces = new Map<string, number>();
  for (const step of steps) {
    addCounts(latencies, step.latencies);
    addCounts(confirmations, step.confirmations);
    addCounts(bounces, step.bounces);
  }
  const counts = TRAFFIC_COUNTS.map((name) => [name, steps.reduce((sum, step) => sum + step[name], 0)] as const);
  const sums = Object.fromEntries(counts) as Record<(typeof TRAFFIC_COUNTS)[number], number>;
  return { ...sums, latencies, confirmations, bounces };
}

function toFigures({
  accepted,
  delivered,
  deferred,
  bounced,
  complained,
  suppressed,
  expired,
  confirmed,
  latencies,
  confirmations,
}: Traffic): Figures {
  const counts = { accepted, delivered, deferred, bounced, complained, suppressed, expired, confirmed };
  return { ...counts, latencyMs: toLatency(latencies), confirmationMs: toLatency(confirmations) };
}

function toLatency(latencies: Latencies): Figures['latencyMs'] {
  const [p50, p99] = [computePercentile(latencies, 0.5), computePercentile(latencies, 0.99)];
  return p50 === null || p99 === null ? null : { p50, p99 };
}
