/** Tests the choice of the next job of index maintenance, and the ranges of consecutive segments. */
import { expect, test } from 'vitest';
import { type IndexState, nextJob, type StoredSegment } from '../../../src/store/search/index-step.ts';

const MINUTE = 60_000;

const segment = (
  number: number,
  first: number,
  past: number,
  overrides: Partial<StoredSegment> = {},
): StoredSegment => ({
  number,
  first,
  end: past,
  messageCount: 2_048,
  builtAt: 0,
  verified: true,
  replacedAt: null,
  ...overrides,
});

const indexState = (overrides: Partial<IndexState> = {}): IndexState => ({
  segments: [segment(1, 0, 100)],
  replaced: [],
  unindexedCount: 0,
  minSegmentMessages: 1_000,
  start: 0,
  horizon: 200,
  now: 0,
  ...overrides,
});

test('the newest messages are indexed first, then older messages, and an empty store has no job', () => {
  expect(nextJob(indexState({ segments: [] }))).toBeNull();
  expect(nextJob(indexState({ segments: [], unindexedCount: 1 }))).toEqual({ kind: 'index-older', end: 200 });
  const newestOnly = [segment(1, 50, 100)];
  expect(nextJob(indexState({ segments: newestOnly, unindexedCount: 1_000 }))).toEqual({
    kind: 'index-newer',
    first: 100,
  });
  expect(nextJob(indexState({ segments: newestOnly, unindexedCount: 999 }))).toEqual({ kind: 'index-older', end: 50 });
  expect(nextJob(indexState({ unindexedCount: 999 }))).toBeNull();
});

test('a segment is verified once after some minutes, even if the clock was set back', () => {
  const newSegment = segment(1, 0, 100, { verified: false, builtAt: 10 * MINUTE });
  const at = (now: number) => nextJob(indexState({ segments: [newSegment], now }));
  expect(at(14 * MINUTE)).toBeNull();
  expect(at(15 * MINUTE)).toEqual({ kind: 'verify', segment: newSegment });
  expect(at(0)).toEqual({ kind: 'verify', segment: newSegment });
});

test('small consecutive segments are merged if they are verified and fill a large segment', () => {
  const small = Array.from({ length: 8 }, (_, n) => segment(n, 700 - n * 100, 800 - n * 100));
  expect(nextJob(indexState({ segments: small }))).toMatchObject({ kind: 'merge', segments: small });
  expect(nextJob(indexState({ segments: small.slice(3) }))).toBeNull();
  const unverified = small.map((one, n) => (n === 4 ? { ...one, verified: false } : one));
  expect(nextJob(indexState({ segments: unverified }))).toBeNull();
  const notConsecutive = small.map((one, n) => (n === 4 ? { ...one, end: one.end - 1 } : one));
  expect(nextJob(indexState({ segments: notConsecutive }))).toBeNull();
  const withLargeSegment = [segment(9, 800, 900, { messageCount: 16_000 }), ...small.slice(0, 5)];
  expect(nextJob(indexState({ segments: withLargeSegment, start: small[4]?.first ?? 0 }))).toBeNull();
});

test('a replaced segment is purged when no search can still read it', () => {
  const replacedSegment = segment(7, 0, 100, { replacedAt: MINUTE });
  expect(nextJob(indexState({ replaced: [replacedSegment], now: MINUTE + 59_999 }))).toBeNull();
  expect(nextJob(indexState({ replaced: [replacedSegment], now: 2 * MINUTE }))).toEqual({
    kind: 'purge',
    segment: replacedSegment,
  });
});
