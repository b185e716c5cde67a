import { formatIsoTime } from '../config/units.ts';
import type { QueueStatistics } from '../model/attention.ts';
import {
  addCounts,
  computePercentile,
  getRowSpanMs,
  HOUR_MS,
  type Latencies,
  listFailureCounts,
  MINUTE_MS,
  TRAFFIC_COUNTS,
  type Traffic,
  type TrafficCount,
  type TrafficStep,
} from '../model/traffic.ts';

export const RANGES = {
  '1h': { stepMs: MINUTE_MS, steps: 60 },
  '24h': { stepMs: 10 * MINUTE_MS, steps: 144 },
  '7d': { stepMs: HOUR_MS, steps: 168 },
  '30d': { stepMs: 6 * HOUR_MS, steps: 120 },
} as const;
export type Range = keyof typeof RANGES;

/** Returns the start of the first step of the range. The last step contains `now`. */
export function getRangeStart(range: Range, now: number): number {
  const { stepMs, steps } = RANGES[range];
  return now - (now % stepMs) - (steps - 1) * stepMs;
}

/** The last step has not ended, so the previous period ends one range before `now`, rounded up to a whole row. */
export function getPreviousPeriod(range: Range, now: number): { readonly from: number; readonly until: number } {
  const { stepMs, steps } = RANGES[range];
  const rowSpanMs = getRowSpanMs(stepMs);
  const until = Math.ceil((now - steps * stepMs) / rowSpanMs) * rowSpanMs;
  return { from: getRangeStart(range, now) - steps * stepMs, until };
}

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

export function sumTraffic(steps: readonly Traffic[]): Traffic {
  const [latencies, confirmations, bounces] = [new Map<number, number>(), new Map<number, number>(), new Map()];
  for (const step of steps) {
    addCounts(latencies, step.latencies);
    addCounts(confirmations, step.confirmations);
    addCounts(bounces, step.bounces);
  }
  const counts = TRAFFIC_COUNTS.map((name) => [name, steps.reduce((sum, step) => sum + step[name], 0)] as const);
  const sums = Object.fromEntries(counts) as Record<TrafficCount, number>;
  return { ...sums, latencies, confirmations, bounces };
}

export function toFigures(traffic: Traffic) {
  const { accepted, delivered, deferred, bounced, complained, suppressed, expired, confirmed } = traffic;
  const { latencies, confirmations } = traffic;
  const counts = { accepted, delivered, deferred, bounced, complained, suppressed, expired, confirmed };
  return { ...counts, latencyMs: computePercentiles(latencies), confirmationMs: computePercentiles(confirmations) };
}

export function computePercentiles(times: Latencies): { readonly p50: number; readonly p99: number } | null {
  const [p50, p99] = [computePercentile(times, 0.5), computePercentile(times, 0.99)];
  return p50 === null || p99 === null ? null : { p50, p99 };
}

/** The time window over which the rates are averaged. The window begins later if its first minutes have no traffic. */
export const RATE_WINDOW_MS = 5 * MINUTE_MS;
/** The minimum length of the window, so that one message in the first 10 s is not a rate of six messages per minute. */
const MIN_WINDOW_MS = MINUTE_MS;
const RATE_MARGIN_FACTOR = 1.1;
const MIN_RATE_MARGIN_PER_MINUTE = 1;
/** A queue that will be empty within this time is draining, regardless of the arrivals. */
const SHORT_QUEUE_MS = 5_000;

export const TRENDS = ['empty', 'draining', 'steady', 'growing', 'waiting'] as const;
type Trend = (typeof TRENDS)[number];

export interface QueueInput {
  readonly figures: QueueStatistics;
  /** The minutes with traffic, including at least those of the last `RATE_WINDOW_MS`. */
  readonly recentSteps: readonly TrafficStep[];
  /** The earliest due time of a message whose account is not locked; null if there is no such message. */
  readonly nextDueAt: number | null;
  /** True while the circuit breaker of every node that delivers is open. */
  readonly isBreakerOpen: boolean;
}

export interface QueueStatus extends QueueStatistics {
  readonly departuresPerMinute: number;
  readonly arrivalsPerMinute: number;
  readonly trend: Trend;
  readonly emptyAt: number | null;
  readonly nextDueAt: number | null;
}

export function computeQueueStatus(
  { figures, recentSteps, nextDueAt, isBreakerOpen }: QueueInput,
  now: number,
): QueueStatus {
  const since = now - (now % MINUTE_MS) - RATE_WINDOW_MS + MINUTE_MS;
  const steps = recentSteps.filter(({ at }) => at >= since);
  const { accepted, ended } = sumTraffic(steps);
  const windowMinutes = Math.max(MIN_WINDOW_MS, now - (steps[0]?.at ?? now)) / MINUTE_MS;
  const [arrivals, departures] = [accepted / windowMinutes, ended / windowMinutes];
  const { queued, sending } = figures;
  const depth = queued + sending;
  const toStatus = (trend: Trend, minutesUntilEmpty: number | null = null): QueueStatus => ({
    ...figures,
    departuresPerMinute: roundRate(departures),
    arrivalsPerMinute: roundRate(arrivals),
    trend,
    emptyAt: minutesUntilEmpty === null ? null : Math.round(now + minutesUntilEmpty * MINUTE_MS),
    nextDueAt: trend === 'waiting' && queued > 0 ? nextDueAt : null,
  });
  if (depth === 0) return toStatus('empty');
  const isNothingDue = sending === 0 && (nextDueAt === null || nextDueAt > now);
  if (isBreakerOpen || isNothingDue) return toStatus('waiting');
  if (depth <= (departures * SHORT_QUEUE_MS) / MINUTE_MS) return toStatus('draining', depth / departures);
  if (arrivals > departures * RATE_MARGIN_FACTOR && arrivals - departures > MIN_RATE_MARGIN_PER_MINUTE)
    return toStatus('growing');
  if (ended === 0) return toStatus('waiting');
  return departures > arrivals * RATE_MARGIN_FACTOR
    ? toStatus('draining', depth / (departures - arrivals))
    : toStatus('steady');
}

function roundRate(perMinute: number): number {
  return perMinute >= 10 ? Math.round(perMinute) : Math.round(perMinute * 10) / 10;
}
