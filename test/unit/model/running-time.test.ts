/** Ages by running time, against a model that knows the real time of everything. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  advanceRunningTime,
  cutoffForAge,
  MAX_CLOCK_DEVIATION_MS,
  type RunningTime,
  runningAge,
  startRunningTime,
} from '../../../src/model/running-time.ts';

const START = Date.UTC(2026, 0, 5);
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Real time passes; then the clock may be stepped, and what is accepted around a reading is dated by it. */
const HISTORY = fc.array(
  fc.record({
    passedMs: fc.integer({ min: 0, max: 3 * HOUR }),
    stepMs: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 2 * MAX_CLOCK_DEVIATION_MS, max: 400 * DAY }),
      fc.integer({ min: -400 * DAY, max: -(4 * HOUR) }),
    ),
    /** Which part of the time before the next reading passes before the step. */
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    /** When a message is accepted in that time. */
    accepted: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  { minLength: 1, maxLength: 40 },
);

interface Model {
  readonly time: RunningTime;
  readonly realMs: number;
  readonly messages: readonly { readonly at: number; readonly realMs: number }[];
}

function lived(history: typeof HISTORY extends fc.Arbitrary<infer T> ? T : never): Model {
  let time = startRunningTime(START);
  let aheadMs = 0;
  let realMs = 0;
  const messages: { at: number; realMs: number }[] = [];
  for (const { passedMs, stepMs, share, accepted } of history) {
    const stepAt = realMs + Math.floor(passedMs * share);
    const acceptedAt = realMs + Math.floor(passedMs * accepted);
    messages.push({ at: START + acceptedAt + aheadMs + (acceptedAt >= stepAt ? stepMs : 0), realMs: acceptedAt });
    realMs += passedMs;
    aheadMs += stepMs;
    time = advanceRunningTime(time, START + realMs + aheadMs, passedMs);
  }
  return { time, realMs, messages };
}

const runs = { numRuns: 500, seed: 12 } as const;

describe('whatever the steps of the clock', () => {
  test('no message is older than the real time since its acceptance', () => {
    fc.assert(
      fc.property(HISTORY, (history) => {
        const { time, realMs, messages } = lived(history);
        for (const message of messages) {
          expect(runningAge(time, message.at)).toBeLessThanOrEqual(realMs - message.realMs + MAX_CLOCK_DEVIATION_MS);
        }
      }),
      runs,
    );
  });

  test('what counts as dated before an age has at least that age in real time', () => {
    fc.assert(
      fc.property(HISTORY, fc.integer({ min: 1_000, max: 40 * HOUR }), (history, ageMs) => {
        const { time, realMs, messages } = lived(history);
        const before = cutoffForAge(time, ageMs);
        for (const message of messages.filter(({ at }) => at <= before)) {
          expect(realMs - message.realMs + MAX_CLOCK_DEVIATION_MS).toBeGreaterThanOrEqual(ageMs);
        }
      }),
      runs,
    );
  });

  test('both ways of asking agree: what is dated before an age is at least as old', () => {
    fc.assert(
      fc.property(HISTORY, fc.integer({ min: 1_000, max: 40 * HOUR }), (history, ageMs) => {
        const { time, messages } = lived(history);
        const before = cutoffForAge(time, ageMs);
        for (const { at } of messages.filter((message) => message.at <= before)) {
          expect(runningAge(time, at)).toBeGreaterThanOrEqual(ageMs);
        }
      }),
      runs,
    );
  });
});

test('times are whole milliseconds, as a database takes them, whatever the monotonic clock counts in', () => {
  const stepped = advanceRunningTime(startRunningTime(START), START - 40 * DAY, 1_000.25);
  expect(Number.isInteger(cutoffForAge(stepped, DAY))).toBe(true);
});

test('while the clock runs evenly, ages are by the clock', () => {
  let time = startRunningTime(START);
  for (let now = START; now <= START + 2 * DAY; now += 10_000) time = advanceRunningTime(time, now, 10_000);
  expect(time.segments).toHaveLength(1);
  expect(runningAge(time, START)).toBe(2 * DAY);
  expect(cutoffForAge(time, DAY)).toBe(START + DAY);
});

test('every message ends: once it has run for the age after a step, what was accepted before the step is past it', () => {
  let time = advanceRunningTime(startRunningTime(START), START + 3 * DAY, 10_000);
  expect(runningAge(time, START)).toBe(0);
  expect(cutoffForAge(time, DAY)).toBeLessThan(START);
  const stepped = START + 3 * DAY;
  for (let ms = 10_000; ms <= DAY; ms += 10_000) time = advanceRunningTime(time, stepped + ms, 10_000);
  expect(runningAge(time, START)).toBe(DAY);
  expect(cutoffForAge(time, DAY)).toBeGreaterThanOrEqual(START);
});

test('time in which nothing ran makes no message older, but for the minute that a start may confirm', () => {
  const time = advanceRunningTime(startRunningTime(START), START + 2 * DAY, 60_000);
  expect(runningAge(time, START - HOUR)).toBe(HOUR);
});

test('a clock stepped without end keeps a bounded record', () => {
  let time = startRunningTime(START);
  for (let n = 0; n < 5_000; n += 1) time = advanceRunningTime(time, time.seenAt + (n % 2 === 0 ? DAY : -DAY / 2), 10);
  expect(time.segments.length).toBeLessThanOrEqual(200);
});
