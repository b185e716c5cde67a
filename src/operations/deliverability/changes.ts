/**
 * Finds the significant changes between a range and the previous period. Pure.
 *
 * A change of a rate is significant if the difference is greater than three standard errors of the two samples (the
 * two-proportion z-test) and greater than a minimum. A change of a time is significant if the p50 values differ by a
 * factor of at least 2 and by more than a minimum. The factor is large because the error of a percentile is up to 10 %.
 * A change of traffic is significant if the messages per hour differ by a factor of at least 1.5.
 */
import type { KeyCounts } from '../../model/deliverability.ts';
import { computePercentile, HOUR_MS, type Latencies } from '../../model/traffic.ts';
import { formatCount, formatDuration } from '../../printing/text.ts';
import type { ComparedCounts } from './figures.ts';
import type { ChangeCode, DeliverabilityChange } from './schemas.ts';

export const MAX_CHANGES = 20;
const MIN_Z_SCORE = 3;
/** The minimum number of messages in each period for a comparison of rates or times. */
const MIN_SAMPLE_SIZE = 50;
const MIN_TIME_FACTOR = 2;
const MIN_TIME_DIFFERENCE_MS = 1_000;
const MIN_TRAFFIC_FACTOR = 1.5;
/** A change of traffic is listed only if the period with more traffic has at least this number of messages. */
const MIN_TRAFFIC_MESSAGES = 100;

/** The row to compare. `key` is null for the total. */
export interface ComparedRow {
  readonly key: string | null;
  readonly name: string;
  readonly counts: ComparedCounts;
}

/**
 * The lengths of the range and of the previous period. The lengths differ, because the last step of the range has not
 * ended.
 */
export interface PeriodLengths {
  readonly currentMs: number;
  readonly previousMs: number;
}

type Judgement = DeliverabilityChange['judgement'];
/** A change with the number by which changes are sorted. */
interface RankedChange {
  readonly change: DeliverabilityChange;
  readonly weight: number;
}

/**
 * Returns the significant changes of the rows, at most `MAX_CHANGES`: first the changes with the judgement `worse`,
 * then `better`, then `neutral`. Changes with the same judgement are in descending order of weight.
 */
export function listChanges(rows: readonly ComparedRow[], lengths: PeriodLengths): DeliverabilityChange[] {
  const ranks: Readonly<Record<Judgement, number>> = { worse: 0, better: 1, neutral: 2 };
  return rows
    .flatMap((row) => [...listRateChanges(row), ...listTimeChanges(row), ...listTrafficChanges(row, lengths)])
    .sort((a, b) => ranks[a.change.judgement] - ranks[b.change.judgement] || b.weight - a.weight)
    .slice(0, MAX_CHANGES)
    .map(({ change }) => change);
}

interface RateRule {
  readonly increaseCode: ChangeCode;
  readonly decreaseCode: ChangeCode;
  /** The subject of the sentence about a change. */
  readonly noun: string;
  readonly minRateDifference: number;
  /** The factor that ranks a complaint above a bounce, and a bounce above a deferral. */
  readonly rankingFactor: number;
  count(counts: KeyCounts): number;
  all(counts: KeyCounts): number;
}

const RATE_RULES: readonly RateRule[] = [
  {
    ...{ increaseCode: 'complaint-rate-rose', decreaseCode: 'complaint-rate-fell', noun: 'complaint rate' },
    ...{ minRateDifference: 0.0002, rankingFactor: 100 },
    count: ({ complained }) => complained,
    all: ({ delivered }) => delivered,
  },
  {
    ...{
      increaseCode: 'bounce-rate-rose',
      decreaseCode: 'bounce-rate-fell',
      noun: 'bounce rate',
      minRateDifference: 0.005,
      rankingFactor: 3,
    },
    count: ({ bounced }) => bounced,
    all: ({ ended }) => ended,
  },
  {
    ...{ increaseCode: 'deferral-rate-rose', decreaseCode: 'deferral-rate-fell', noun: 'share of deferred attempts' },
    ...{ minRateDifference: 0.02, rankingFactor: 1 },
    count: ({ deferred }) => deferred,
    all: ({ deferred, ended }) => deferred + ended,
  },
];

function listRateChanges({ key, name, counts: { current, previous } }: ComparedRow): readonly RankedChange[] {
  return RATE_RULES.flatMap(({ increaseCode, decreaseCode, noun, minRateDifference, rankingFactor, count, all }) => {
    const [allBefore, allAfter] = [all(previous), all(current)];
    if (allBefore < MIN_SAMPLE_SIZE || allAfter < MIN_SAMPLE_SIZE) return [];
    const [before, after] = [count(previous) / allBefore, count(current) / allAfter];
    const difference = after - before;
    if (Math.abs(difference) < minRateDifference) return [];
    const pooledRate = (count(previous) + count(current)) / (allBefore + allAfter);
    const standardError = Math.sqrt(pooledRate * Math.max(0, 1 - pooledRate) * (1 / allBefore + 1 / allAfter));
    if (Math.abs(difference) < MIN_Z_SCORE * standardError) return [];
    const isWorse = difference > 0;
    const text = `${name}: the ${noun} ${isWorse ? 'rose' : 'fell'} from ${formatPercent(before)} to ${formatPercent(after)}.`;
    const judgement = isWorse ? 'worse' : 'better';
    return [
      {
        change: { code: isWorse ? increaseCode : decreaseCode, key, judgement, before, after, text },
        weight: Math.abs(difference) * rankingFactor * Math.sqrt(allAfter),
      },
    ];
  });
}

interface TimeRule {
  readonly slowerCode: ChangeCode;
  readonly fasterCode: ChangeCode;
  readonly noun: string;
  readTimes(counts: KeyCounts): Latencies;
}

const TIME_RULES: readonly TimeRule[] = [
  {
    ...{ slowerCode: 'delivery-slower', fasterCode: 'delivery-faster', noun: 'p50 of the delivery time' },
    readTimes: ({ latencies }) => latencies,
  },
  {
    ...{
      slowerCode: 'confirmation-slower',
      fasterCode: 'confirmation-faster',
      noun: 'p50 of the time to the confirmation',
    },
    readTimes: ({ confirmations }) => confirmations,
  },
];

function listTimeChanges({ key, name, counts: { current, previous } }: ComparedRow): readonly RankedChange[] {
  return TIME_RULES.flatMap(({ slowerCode, fasterCode, noun, readTimes }) => {
    const [timesBefore, timesAfter] = [readTimes(previous), readTimes(current)];
    if (countMeasurements(timesBefore) < MIN_SAMPLE_SIZE || countMeasurements(timesAfter) < MIN_SAMPLE_SIZE) return [];
    const before = computePercentile(timesBefore, 0.5) ?? 0;
    const after = computePercentile(timesAfter, 0.5) ?? 0;
    const ratio = (Math.max(before, after) + 1) / (Math.min(before, after) + 1);
    if (ratio < MIN_TIME_FACTOR || Math.abs(after - before) < MIN_TIME_DIFFERENCE_MS) return [];
    const isWorse = after > before;
    const text = `${name}: the ${noun} ${isWorse ? 'rose' : 'fell'} from ${formatDuration(before)} to ${formatDuration(after)}.`;
    const judgement = isWorse ? 'worse' : 'better';
    return [
      {
        change: { code: isWorse ? slowerCode : fasterCode, key, judgement, before, after, text },
        weight: Math.log2(ratio) * 0.05 * Math.sqrt(countMeasurements(timesAfter)),
      },
    ];
  });
}

function countMeasurements(times: Latencies): number {
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
  const create = (code: ChangeCode, text: string): readonly RankedChange[] => [
    {
      change: { code, key, judgement: 'neutral', before, after, text: `${name}: ${text}` },
      weight: Math.abs(after - before),
    },
  ];
  if (previous.accepted === 0)
    return create(
      'traffic-began',
      `${formatCount(current.accepted)} messages were accepted; none was accepted in the previous period.`,
    );
  if (current.accepted === 0)
    return create(
      'traffic-ended',
      `no message was accepted; ${formatCount(previous.accepted)} were accepted in the previous period.`,
    );
  if (Math.max(before, after) < MIN_TRAFFIC_FACTOR * Math.min(before, after)) return [];
  const rateTexts = `from ${formatPerHour(before)} to ${formatPerHour(after)} messages per hour`;
  return after > before
    ? create('traffic-rose', `traffic rose ${rateTexts}.`)
    : create('traffic-fell', `traffic fell ${rateTexts}.`);
}

function formatPerHour(rate: number): string {
  return rate >= 10 ? formatCount(Math.round(rate)) : String(Math.round(rate * 10) / 10);
}

/** Formats a fraction as a percentage with at most three decimal places: `0.125 %`, `3.1 %`, `42 %`. */
export function formatPercent(fraction: number): string {
  const percent = fraction * 100;
  const decimalPlaces = percent >= 10 ? 0 : percent >= 1 ? 1 : percent >= 0.1 ? 2 : 3;
  return `${Number(percent.toFixed(decimalPlaces))} %`;
}
