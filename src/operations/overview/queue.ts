/**
 * Computes the queue depth, the trend, and the estimated time at which the queue is empty, from the traffic of the last
 * minutes. Pure.
 */
import type { QueueStatistics } from '../../model/overview.ts';
import { MINUTE_MS, type TrafficStep } from '../../model/traffic.ts';
import { sumTraffic } from './figures.ts';
import type { Trend } from './schemas.ts';

/** The time window over which the rates are averaged. The window begins later if its first minutes have no traffic. */
export const RATE_WINDOW_MS = 5 * MINUTE_MS;
/** The minimum length of the window, so that one message in the first 10 s is not a rate of six messages per minute. */
const MIN_WINDOW_MS = MINUTE_MS;
/**
 * The queue grows or drains only if the greater rate is more than this factor times the smaller rate. It grows only if
 * the rates also differ by more than `MIN_RATE_MARGIN_PER_MINUTE`.
 */
const RATE_MARGIN_FACTOR = 1.1;
const MIN_RATE_MARGIN_PER_MINUTE = 1;
/** A queue that will be empty within this time is draining, regardless of the arrivals. */
const SHORT_QUEUE_MS = 5_000;

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
  /** While the queue drains: the estimated time at which it is empty. */
  readonly emptyAt: number | null;
  /** While the queue waits: the due time of the next message. */
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
  const [arrivalsPerMinute, departuresPerMinute] = [accepted / windowMinutes, ended / windowMinutes];
  const { queued, sending } = figures;
  const queueDepth = queued + sending;
  const rates = {
    departuresPerMinute: roundRate(departuresPerMinute),
    arrivalsPerMinute: roundRate(arrivalsPerMinute),
  };
  const toStatus = (trend: Trend, minutesUntilEmpty: number | null = null): QueueStatus => ({
    ...figures,
    ...rates,
    trend,
    emptyAt: minutesUntilEmpty === null ? null : Math.round(now + minutesUntilEmpty * MINUTE_MS),
    nextDueAt: trend === 'waiting' && queued > 0 ? nextDueAt : null,
  });
  if (queueDepth === 0) return toStatus('empty');
  const isNothingDue = sending === 0 && (nextDueAt === null || nextDueAt > now);
  if (isBreakerOpen || isNothingDue) return toStatus('waiting');
  if (queueDepth <= (departuresPerMinute * SHORT_QUEUE_MS) / MINUTE_MS)
    return toStatus('draining', queueDepth / departuresPerMinute);
  if (
    arrivalsPerMinute > departuresPerMinute * RATE_MARGIN_FACTOR &&
    arrivalsPerMinute - departuresPerMinute > MIN_RATE_MARGIN_PER_MINUTE
  )
    return toStatus('growing');
  if (ended === 0) return toStatus('waiting');
  return departuresPerMinute > arrivalsPerMinute * RATE_MARGIN_FACTOR
    ? toStatus('draining', queueDepth / (departuresPerMinute - arrivalsPerMinute))
    : toStatus('steady');
}

function roundRate(perMinute: number): number {
  return perMinute >= 10 ? Math.round(perMinute) : Math.round(perMinute * 10) / 10;
}
