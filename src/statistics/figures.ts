import type { QueueStatistics } from '../model/attention.ts';
import {
  addKeyCounts,
  createKeyCounts,
  type KeyCounts,
  type MutableKeyCounts,
  parseKeyCounts,
  REMAINDER_KEY,
  type SpanMs,
  type StoredDeliverabilityRow,
  subtractKeyCounts,
} from '../model/deliverability.ts';
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
import { formatCount, formatDuration, formatIsoTime } from '../printing/text.ts';

export const RANGES = {
  '1h': { stepMs: MINUTE_MS, steps: 60 },
  '24h': { stepMs: 10 * MINUTE_MS, steps: 144 },
  '7d': { stepMs: HOUR_MS, steps: 168 },
  '30d': { stepMs: 6 * HOUR_MS, steps: 120 },
} as const;
export type Range = keyof typeof RANGES;

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
  readonly recentSteps: readonly TrafficStep[];
  /** The earliest due time of a message whose account is not locked; null if there is no such message. */
  readonly nextDueAt: number | null;
  /** True while every route has failed or is paused, on every node that delivers. */
  readonly isNoRouteUsable: boolean;
}

export interface QueueStatus extends QueueStatistics {
  readonly departuresPerMinute: number;
  readonly arrivalsPerMinute: number;
  readonly trend: Trend;
  readonly emptyAt: number | null;
  readonly nextDueAt: number | null;
}

export function computeQueueStatus(
  { figures, recentSteps, nextDueAt, isNoRouteUsable }: QueueInput,
  now: number,
): QueueStatus {
  const since = now - (now % MINUTE_MS) - RATE_WINDOW_MS + MINUTE_MS;
  const steps = recentSteps.filter(({ at }) => at >= since);
  const { accepted, ended } = sumTraffic(steps);
  const windowMinutes = Math.max(MIN_WINDOW_MS, now - (steps[0]?.at ?? now)) / MINUTE_MS;
  const [arrivals, departures] = [accepted / windowMinutes, ended / windowMinutes];
  const { queued, sending, held } = figures;
  const depth = queued - held + sending;
  const toStatus = (trend: Trend, minutesUntilEmpty: number | null = null): QueueStatus => ({
    ...figures,
    departuresPerMinute: roundRate(departures),
    arrivalsPerMinute: roundRate(arrivals),
    trend,
    emptyAt: minutesUntilEmpty === null ? null : Math.round(now + minutesUntilEmpty * MINUTE_MS),
    nextDueAt: trend === 'waiting' && queued > 0 ? nextDueAt : null,
  });
  if (depth === 0) return toStatus(held > 0 ? 'waiting' : 'empty');
  const isNothingDue = sending === 0 && (nextDueAt === null || nextDueAt > now);
  if (isNoRouteUsable || isNothingDue) return toStatus('waiting');
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

export const DELIVERABILITY_RANGES = {
  '1h': { stepMs: 300_000, steps: 12 },
  '24h': { stepMs: 3_600_000, steps: 24 },
  '7d': { stepMs: 21_600_000, steps: 28 },
  '30d': { stepMs: 86_400_000, steps: 30 },
} as const satisfies Readonly<Record<string, { readonly stepMs: SpanMs; readonly steps: number }>>;
export type DeliverabilityRange = keyof typeof DELIVERABILITY_RANGES;

export interface ComparedCounts {
  readonly current: MutableKeyCounts;
  readonly previous: MutableKeyCounts;
}

type PeriodBounds = ReturnType<typeof getPeriodBounds>;

/** The previous period ends at `from`. The last step contains `now` and ends at `until`. */
export function getPeriodBounds(range: DeliverabilityRange, now: number) {
  const { stepMs, steps } = DELIVERABILITY_RANGES[range];
  const until = now - (now % stepMs) + stepMs;
  const from = until - steps * stepMs;
  return { previousFrom: from - steps * stepMs, from, until };
}

function createComparedCounts(): ComparedCounts {
  return { current: createKeyCounts(), previous: createKeyCounts() };
}

/** `toKey` returns null for a stored key to leave out. `total` includes `REMAINDER_KEY`, which `byKey` does not. */
export function sumRows(
  rows: readonly StoredDeliverabilityRow[],
  { from }: PeriodBounds,
  toKey: (storedKey: string) => string | null,
): { readonly byKey: ReadonlyMap<string, ComparedCounts>; readonly total: ComparedCounts } {
  const byKey = new Map<string, ComparedCounts>();
  const total = createComparedCounts();
  for (const { at, counts: text } of rows) {
    const period = at >= from ? 'current' : 'previous';
    for (const [storedKey, counts] of parseKeyCounts(text)) {
      const key = toKey(storedKey);
      if (key === null) continue;
      addKeyCounts(total[period], counts);
      if (key === REMAINDER_KEY) continue;
      const sums = byKey.get(key) ?? createComparedCounts();
      byKey.set(key, sums);
      addKeyCounts(sums[period], counts);
    }
  }
  return { byKey, total };
}

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
  return countsByStep.map((counts, index) => ({ at: formatIsoTime(from + index * stepMs), ...toKeyFigures(counts) }));
}

export function subtractParts(total: ComparedCounts, parts: readonly ComparedCounts[]): ComparedCounts {
  const remainder = createComparedCounts();
  for (const period of ['current', 'previous'] as const) {
    addKeyCounts(remainder[period], total[period]);
    for (const part of parts) subtractKeyCounts(remainder[period], part[period]);
  }
  return remainder;
}

export function toComparedFigures({ current, previous }: ComparedCounts) {
  return { ...toKeyFigures(current), previous: toKeyFigures(previous) };
}

function toKeyFigures(counts: KeyCounts) {
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

export const CHANGE_CODES = [
  'complaint-rate-rose',
  'complaint-rate-fell',
  'bounce-rate-rose',
  'bounce-rate-fell',
  'deferral-rate-rose',
  'deferral-rate-fell',
  'delivery-slower',
  'delivery-faster',
  'confirmation-slower',
  'confirmation-faster',
  'traffic-rose',
  'traffic-fell',
  'traffic-began',
  'traffic-ended',
] as const;

interface Change {
  readonly code: (typeof CHANGE_CODES)[number];
  /** The key of the row; null for the total. */
  readonly key: string | null;
  readonly judgement: 'worse' | 'better' | 'neutral';
  readonly before: number;
  readonly after: number;
  readonly text: string;
}

export const MAX_CHANGES = 20;
/** The two-proportion z-test: the difference must exceed this number of standard errors of the two samples. */
const MIN_Z_SCORE = 3;
const MIN_SAMPLE_SIZE = 50;
/** Large, because the error of a percentile is up to 10 %. */
const MIN_TIME_FACTOR = 2;
const MIN_TIME_DIFFERENCE_MS = 1_000;
const MIN_TRAFFIC_FACTOR = 1.5;
const MIN_TRAFFIC_MESSAGES = 100;

interface ComparedRow {
  readonly key: string | null;
  readonly name: string;
  readonly counts: ComparedCounts;
}

interface PeriodLengths {
  readonly currentMs: number;
  readonly previousMs: number;
}

type RankedChange = Change & { readonly weight: number };

/** Returns the significant changes of the rows, at most `MAX_CHANGES`: the worse first, then the better. */
export function listChanges(rows: readonly ComparedRow[], lengths: PeriodLengths): Change[] {
  const judgements = ['worse', 'better', 'neutral'];
  return rows
    .flatMap((row) => [...listRateChanges(row), ...listTimeChanges(row), ...listTrafficChanges(row, lengths)])
    .sort((a, b) => judgements.indexOf(a.judgement) - judgements.indexOf(b.judgement) || b.weight - a.weight)
    .slice(0, MAX_CHANGES)
    .map(({ weight, ...change }) => change);
}

/** `weight` ranks a complaint above a bounce, and a bounce above a deferral. */
const RATE_RULES = [
  {
    rose: 'complaint-rate-rose',
    fell: 'complaint-rate-fell',
    noun: 'complaint rate',
    minDifference: 0.0002,
    weight: 100,
    count: ({ complained }: KeyCounts) => complained,
    all: ({ delivered }: KeyCounts) => delivered,
  },
  {
    rose: 'bounce-rate-rose',
    fell: 'bounce-rate-fell',
    noun: 'bounce rate',
    minDifference: 0.005,
    weight: 3,
    count: ({ bounced }: KeyCounts) => bounced,
    all: ({ ended }: KeyCounts) => ended,
  },
  {
    rose: 'deferral-rate-rose',
    fell: 'deferral-rate-fell',
    noun: 'share of deferred attempts',
    minDifference: 0.02,
    weight: 1,
    count: ({ deferred }: KeyCounts) => deferred,
    all: ({ deferred, ended }: KeyCounts) => deferred + ended,
  },
] as const;

function listRateChanges(row: ComparedRow): readonly RankedChange[] {
  const { current, previous } = row.counts;
  return RATE_RULES.flatMap(({ minDifference, weight, count, all, ...rule }) => {
    const [allBefore, allAfter] = [all(previous), all(current)];
    if (allBefore < MIN_SAMPLE_SIZE || allAfter < MIN_SAMPLE_SIZE) return [];
    const [before, after] = [count(previous) / allBefore, count(current) / allAfter];
    const difference = Math.abs(after - before);
    const pooledRate = (count(previous) + count(current)) / (allBefore + allAfter);
    const standardError = Math.sqrt(pooledRate * Math.max(0, 1 - pooledRate) * (1 / allBefore + 1 / allAfter));
    if (difference < minDifference || difference < MIN_Z_SCORE * standardError) return [];
    const change = createChange(row, rule, rule.noun, [before, after], formatRoundedPercent);
    return [{ ...change, weight: difference * weight * Math.sqrt(allAfter) }];
  });
}

/** The figure is better when it is lower. */
function createChange(
  { key, name }: ComparedRow,
  { rose, fell }: { readonly rose: Change['code']; readonly fell: Change['code'] },
  noun: string,
  [before, after]: readonly [number, number],
  format: (value: number) => string,
): Change {
  const hasRisen = after > before;
  const text = `${name}: the ${noun} ${hasRisen ? 'rose' : 'fell'} from ${format(before)} to ${format(after)}.`;
  return { code: hasRisen ? rose : fell, key, judgement: hasRisen ? 'worse' : 'better', before, after, text };
}

const TIME_RULES = [
  {
    rose: 'delivery-slower',
    fell: 'delivery-faster',
    noun: 'delivery time',
    readTimes: ({ latencies }: KeyCounts) => latencies,
  },
  {
    rose: 'confirmation-slower',
    fell: 'confirmation-faster',
    noun: 'time to the confirmation',
    readTimes: ({ confirmations }: KeyCounts) => confirmations,
  },
] as const;

function listTimeChanges(row: ComparedRow): readonly RankedChange[] {
  const { current, previous } = row.counts;
  return TIME_RULES.flatMap(({ readTimes, ...rule }) => {
    const [timesBefore, timesAfter] = [readTimes(previous), readTimes(current)];
    if (countTimes(timesBefore) < MIN_SAMPLE_SIZE || countTimes(timesAfter) < MIN_SAMPLE_SIZE) return [];
    const before = computePercentile(timesBefore, 0.5) ?? 0;
    const after = computePercentile(timesAfter, 0.5) ?? 0;
    const ratio = (Math.max(before, after) + 1) / (Math.min(before, after) + 1);
    if (ratio < MIN_TIME_FACTOR || Math.abs(after - before) < MIN_TIME_DIFFERENCE_MS) return [];
    const weight = Math.log2(ratio) * 0.05 * Math.sqrt(countTimes(timesAfter));
    return [{ ...createChange(row, rule, `p50 of the ${rule.noun}`, [before, after], formatDuration), weight }];
  });
}

function countTimes(times: Latencies): number {
  return [...times.values()].reduce((sum, count) => sum + count, 0);
}

/** Compares messages per hour, because the two periods have different lengths. */
function listTrafficChanges(
  { key, name, counts: { current, previous } }: ComparedRow,
  { currentMs, previousMs }: PeriodLengths,
): readonly RankedChange[] {
  if (Math.max(current.accepted, previous.accepted) < MIN_TRAFFIC_MESSAGES) return [];
  const before = (previous.accepted * HOUR_MS) / previousMs;
  const after = (current.accepted * HOUR_MS) / currentMs;
  const create = (code: Change['code'], text: string): readonly RankedChange[] => [
    { code, key, judgement: 'neutral', before, after, text: `${name}: ${text}`, weight: Math.abs(after - before) },
  ];
  if (previous.accepted === 0) {
    const count = formatCount(current.accepted);
    return create('traffic-began', `${count} messages were accepted; none was accepted in the previous period.`);
  }
  if (current.accepted === 0) {
    const count = formatCount(previous.accepted);
    return create('traffic-ended', `no message was accepted; ${count} were accepted in the previous period.`);
  }
  if (Math.max(before, after) < MIN_TRAFFIC_FACTOR * Math.min(before, after)) return [];
  const verb = after > before ? 'rose' : 'fell';
  const rates = `from ${formatPerHour(before)} to ${formatPerHour(after)} messages per hour`;
  return create(`traffic-${verb}`, `traffic ${verb} ${rates}.`);
}

function formatPerHour(rate: number): string {
  return rate >= 10 ? formatCount(Math.round(rate)) : String(Math.round(rate * 10) / 10);
}

export function formatRoundedPercent(fraction: number): string {
  const percent = fraction * 100;
  const decimalPlaces = percent >= 10 ? 0 : percent >= 1 ? 1 : percent >= 0.1 ? 2 : 3;
  return `${Number(percent.toFixed(decimalPlaces))} %`;
}
