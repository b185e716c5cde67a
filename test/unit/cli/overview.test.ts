import { describe, expect, test } from 'vitest';
import { TRAFFIC_COUNTS, type TrafficStep } from '../../../src/model/traffic.ts';
import { computeQueueStatus, type QueueInput } from '../../../src/statistics/figures.ts';
import { createCommandRig } from './command-rig.ts';

const NOW = Date.UTC(2030, 0, 1);
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 3_600_000;

function createStep(at: number, counts: Partial<TrafficStep> = {}): TrafficStep {
  const zeroCounts = Object.fromEntries(TRAFFIC_COUNTS.map((name) => [name, 0])) as Record<
    (typeof TRAFFIC_COUNTS)[number],
    number
  >;
  return { at, ...zeroCounts, latencies: new Map(), confirmations: new Map(), bounces: new Map(), ...counts };
}

describe('the trend of the queue', () => {
  const createMinutes = (accepted: number, ended: number, count = 5) =>
    Array.from({ length: count }, (_, index) => createStep(NOW - (count - index) * MINUTE_MS, { accepted, ended }));
  const createQueueInput = (changes: Partial<QueueInput> & { queued?: number; sending?: number }): QueueInput => ({
    figures: {
      queued: changes.queued ?? 0,
      sending: changes.sending ?? 0,
      uncertain: 0,
      held: 0,
      oldest: null,
    },
    recentSteps: [],
    nextDueAt: NOW,
    isNoRouteUsable: false,
    ...changes,
  });
  const getQueueStatus = (changes: Parameters<typeof createQueueInput>[0]) =>
    computeQueueStatus(createQueueInput(changes), NOW);

  test.each<[string, Parameters<typeof createQueueInput>[0], object]>([
    ['is empty without messages', { recentSteps: createMinutes(100, 100) }, { trend: 'empty', emptyAt: null }],
    [
      'is draining, with the time at which the queue will be empty at the current rates',
      { queued: 4_000, recentSteps: createMinutes(200, 1_200, 4) },
      { trend: 'draining', arrivalsPerMinute: 200, departuresPerMinute: 1_200, emptyAt: NOW + 4 * MINUTE_MS },
    ],
    [
      'is computed from the start of the traffic, so that a burst in the current minute is not averaged',
      { queued: 600, recentSteps: [createStep(NOW - MINUTE_MS, { ended: 600 })] },
      { trend: 'draining', departuresPerMinute: 600, emptyAt: NOW + MINUTE_MS },
    ],
    [
      'is growing, without a time at which the queue will be empty, when arrivals exceed departures',
      { queued: 500, recentSteps: createMinutes(300, 200) },
      { trend: 'growing', emptyAt: null },
    ],
    [
      'is draining with messages in progress',
      { sending: 3, recentSteps: createMinutes(1_200, 1_200) },
      { trend: 'draining' },
    ],
    [
      'is waiting when every message is due later',
      { queued: 5, recentSteps: createMinutes(0, 10), nextDueAt: NOW + 3 * MINUTE_MS },
      { trend: 'waiting', nextDueAt: NOW + 3 * MINUTE_MS },
    ],
    [
      'is waiting for an unlock',
      { queued: 5, recentSteps: createMinutes(0, 10), nextDueAt: null },
      { trend: 'waiting', nextDueAt: null },
    ],
    [
      'is waiting for the breaker',
      { queued: 5, recentSteps: createMinutes(0, 10), isNoRouteUsable: true },
      { trend: 'waiting' },
    ],
    ['is waiting when there was no traffic', { queued: 5 }, { trend: 'waiting', emptyAt: null }],
    [
      'is draining when a message is in progress and the others are due later',
      { queued: 5, sending: 1, recentSteps: createMinutes(0, 10), nextDueAt: NOW + 3 * MINUTE_MS },
      { trend: 'draining' },
    ],
  ])('%s', (_name, changes, status) => {
    expect(getQueueStatus(changes)).toMatchObject(status);
  });

  test('is steady when arrivals and departures differ only within the statistical error of a few minutes', () => {
    for (const [arrivals, departures] of [
      [300, 300],
      [26, 25],
      [25, 26],
      [2, 1],
    ] as const) {
      const status = getQueueStatus({ queued: 500, recentSteps: createMinutes(arrivals, departures) });
      expect([arrivals, departures, status.trend, status.emptyAt]).toEqual([arrivals, departures, 'steady', null]);
    }
    for (const [arrivals, departures, trend] of [
      [28, 25, 'growing'],
      [25, 28, 'draining'],
    ] as const)
      expect(getQueueStatus({ queued: 500, recentSteps: createMinutes(arrivals, departures) }).trend).toBe(trend);
  });

  test('is not growing a few seconds after the first message, and the rates are not extrapolated to a full minute', () => {
    const fourSecondsLater = NOW + 4_000;
    const firstInput = createQueueInput({ queued: 1, recentSteps: [createStep(NOW, { accepted: 1 })] });
    expect(computeQueueStatus(firstInput, fourSecondsLater)).toMatchObject({
      trend: 'waiting',
      arrivalsPerMinute: 1,
      departuresPerMinute: 0,
    });
    const secondInput = createQueueInput({ sending: 1, recentSteps: [createStep(NOW, { accepted: 2, ended: 1 })] });
    expect(computeQueueStatus(secondInput, fourSecondsLater)).toMatchObject({
      trend: 'steady',
      arrivalsPerMinute: 2,
      departuresPerMinute: 1,
    });
  });
});

interface OverviewResult {
  readonly points: readonly { readonly at: string; readonly accepted: number }[];
  readonly totals: { readonly accepted: number; readonly latencyMs: { readonly p50: number } | null };
  readonly previous: { readonly accepted: number };
  readonly attention: readonly { readonly level: string; readonly text: string; readonly page: string | null }[];
  readonly health: readonly { readonly part: string; readonly level: string; readonly text: string }[];
}

describe('the command', () => {
  test('prints every step of a range, totals that equal the sums of the steps, and the totals of the previous period', async () => {
    const rig = await createCommandRig();
    const row = { ...createStep(0), accepted: 7, delivered: 5, latencies: new Map([[80, 5]]) };
    await rig.store.writeTraffic('one', [
      { ...row, spanMs: 60_000, at: NOW - MINUTE_MS },
      { ...row, spanMs: 60_000, at: NOW - 61 * MINUTE_MS },
      { ...row, spanMs: 3_600_000, at: NOW - 3_600_000 },
      { ...row, spanMs: 3_600_000, at: NOW - 10 * DAY_MS },
    ]);
    for (const [range, points, accepted, previous] of [
      ['1h', 60, 7, 7],
      ['24h', 144, 14, 0],
      ['7d', 168, 7, 7],
      ['30d', 120, 14, 0],
    ] as const) {
      const result = await rig.runJson<OverviewResult>('overview', '--range', range);
      expect([range, result.points.length, result.totals.accepted]).toEqual([range, points, accepted]);
      expect(result.points.reduce((sum, point) => sum + point.accepted, 0)).toBe(accepted);
      expect(result.previous.accepted).toBe(previous);
      const gapsMs = result.points.map(({ at }, n) => Date.parse(at) - Date.parse(result.points[n - 1]?.at ?? at));
      expect(new Set(gapsMs.slice(1)).size).toBe(1);
      expect(result.totals.latencyMs?.p50).toBeGreaterThan(900);
    }
  });
});
