/** How long the queue is, whether it grows, and when it will be empty, as far as the last minutes tell. Pure. */
import type { QueueStatistics } from '../../model/overview.ts';
import { MINUTE_MS, type TrafficStep } from '../../model/traffic.ts';
import { sumTraffic } from './figures.ts';
import type { Trend } from './schemas.ts';

/** Rates are taken over so long, or since the traffic within it began. */
export const RATE_WINDOW_MS = 5 * MINUTE_MS;
/** One mail of the first seconds is not six a minute. */
const LEAST_MS = MINUTE_MS;
/** Within a tenth of one another, and within one a minute, rates are as good as the same: they are of a few minutes. */
const MARGIN = 1.1;
const MARGIN_PER_MINUTE = 1;
/** What leaves within this is on its way rather than queued. */
const ON_ITS_WAY_MS = 5_000;

export interface QueueInput {
  readonly figures: QueueStatistics;
  /** Minutes with traffic, those of the last `RATE_WINDOW_MS` at least. */
  readonly recent: readonly TrafficStep[];
  /** When the next is due of an account that is not locked, or null. */
  readonly nextDueAt: number | null;
  /** True where this process knows that its next hop takes nothing. */
  readonly breakerOpen: boolean;
}

export interface QueueStatus extends QueueStatistics {
  readonly departuresPerMinute: number;
  readonly arrivalsPerMinute: number;
  readonly trend: Trend;
  /** Where it is draining: so many more are said to leave than come. */
  readonly emptyAt: number | null;
  /** Where it is waiting for a time: when the next one is due. */
  readonly nextDueAt: number | null;
}

export function queueStatus({ figures, recent, nextDueAt, breakerOpen: held }: QueueInput, now: number): QueueStatus {
  const since = now - (now % MINUTE_MS) - RATE_WINDOW_MS + MINUTE_MS;
  const steps = recent.filter(({ at }) => at >= since);
  const { accepted, ended } = sumTraffic(steps);
  const minutes = Math.max(LEAST_MS, now - (steps[0]?.at ?? now)) / MINUTE_MS;
  const [coming, leaving] = [accepted / minutes, ended / minutes];
  const { queued, sending } = figures;
  const waiting = queued + sending;
  const rates = { departuresPerMinute: rounded(leaving), arrivalsPerMinute: rounded(coming) };
  const standing = (trend: Trend, inMinutes: number | null = null): QueueStatus => ({
    ...figures,
    ...rates,
    trend,
    emptyAt: inMinutes === null ? null : Math.round(now + inMinutes * MINUTE_MS),
    nextDueAt: trend === 'waiting' && queued > 0 ? nextDueAt : null,
  });
  if (waiting === 0) return standing('empty');
  const nothingDue = sending === 0 && (nextDueAt === null || nextDueAt > now);
  if (held || nothingDue) return standing('waiting');
  // However fast mail comes, what is there is gone in a moment.
  if (waiting <= (leaving * ON_ITS_WAY_MS) / MINUTE_MS) return standing('draining', waiting / leaving);
  if (coming > leaving * MARGIN && coming - leaving > MARGIN_PER_MINUTE) return standing('growing');
  if (ended === 0) return standing('waiting');
  return leaving > coming * MARGIN ? standing('draining', waiting / (leaving - coming)) : standing('steady');
}

function rounded(perMinute: number): number {
  return perMinute >= 10 ? Math.round(perMinute) : Math.round(perMinute * 10) / 10;
}
