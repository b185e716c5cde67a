import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  advanceRunningTime,
  computeAgeCutoff,
  computeRunningAgeMs,
  MAX_CLOCK_DEVIATION_MS,
  type RunningTime,
  startRunningTime,
} from '../../../src/model/running-time.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const START = Date.UTC(2026, 0, 5);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const HISTORY = fc.array(
  fc.record({
    passedMs: fc.integer({ min: 0, max: 3 * HOUR_MS }),
    stepMs: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 2 * MAX_CLOCK_DEVIATION_MS, max: 400 * DAY_MS }),
      fc.integer({ min: -400 * DAY_MS, max: -(4 * HOUR_MS) }),
    ),
    /** The fraction of `passedMs` after which the clock is stepped. */
    stepFraction: fc.double({ min: 0, max: 1, noNaN: true }),
    /** The fraction of `passedMs` after which the message is accepted. */
    acceptFraction: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  { minLength: 1, maxLength: 40 },
);

interface RealTimeModel {
  readonly time: RunningTime;
  readonly realMs: number;
  readonly messages: readonly { readonly at: number; readonly realMs: number }[];
}

function runHistory(history: typeof HISTORY extends fc.Arbitrary<infer T> ? T : never): RealTimeModel {
  let time = startRunningTime(START);
  let clockAheadMs = 0;
  let realMs = 0;
  const messages: { at: number; realMs: number }[] = [];
  for (const { passedMs, stepMs, stepFraction, acceptFraction } of history) {
    const stepAt = realMs + Math.floor(passedMs * stepFraction);
    const acceptedAt = realMs + Math.floor(passedMs * acceptFraction);
    messages.push({ at: START + acceptedAt + clockAheadMs + (acceptedAt >= stepAt ? stepMs : 0), realMs: acceptedAt });
    realMs += passedMs;
    clockAheadMs += stepMs;
    time = advanceRunningTime(time, START + realMs + clockAheadMs, passedMs);
  }
  return { time, realMs, messages };
}

const runOptions = { numRuns: selectCaseCount(100, 500), seed: 12 } as const;

describe('for every sequence of clock steps', () => {
  test('no message has an age above the real time since its acceptance', () => {
    fc.assert(
      fc.property(HISTORY, (history) => {
        const { time, realMs, messages } = runHistory(history);
        for (const message of messages) {
          expect(computeRunningAgeMs(time, message.at)).toBeLessThanOrEqual(
            realMs - message.realMs + MAX_CLOCK_DEVIATION_MS,
          );
        }
      }),
      runOptions,
    );
  });

  test('every message accepted before the cutoff of an age has at least that age in real time', () => {
    fc.assert(
      fc.property(HISTORY, fc.integer({ min: 1_000, max: 40 * HOUR_MS }), (history, ageMs) => {
        const { time, realMs, messages } = runHistory(history);
        const cutoff = computeAgeCutoff(time, ageMs);
        for (const message of messages.filter(({ at }) => at <= cutoff)) {
          expect(realMs - message.realMs + MAX_CLOCK_DEVIATION_MS).toBeGreaterThanOrEqual(ageMs);
        }
      }),
      runOptions,
    );
  });
});

test('a message accepted before a step of the clock reaches an age of one day when the process has run for one day', () => {
  let time = advanceRunningTime(startRunningTime(START), START + 3 * DAY_MS, 10_000);
  expect(computeRunningAgeMs(time, START)).toBe(0);
  expect(computeAgeCutoff(time, DAY_MS)).toBeLessThan(START);
  const steppedClock = START + 3 * DAY_MS;
  for (let ms = 10_000; ms <= DAY_MS; ms += 10_000) time = advanceRunningTime(time, steppedClock + ms, 10_000);
  expect(computeRunningAgeMs(time, START)).toBe(DAY_MS);
  expect(computeAgeCutoff(time, DAY_MS)).toBeGreaterThanOrEqual(START);
});

test('time in which no process ran adds at most one minute of age per start', () => {
  const time = advanceRunningTime(startRunningTime(START), START + 2 * DAY_MS, 60_000);
  expect(computeRunningAgeMs(time, START - HOUR_MS)).toBe(HOUR_MS);
});
