/** The next job of index maintenance, and how segments follow one another. */
import { expect, test } from 'vitest';
import { type IndexState, nextJob, type StoredSegment } from '../../../src/store/search/index-step.ts';

const MINUTE = 60_000;

const segment = (number: number, first: number, past: number, given: Partial<StoredSegment> = {}): StoredSegment => ({
  number,
  first,
  end: past,
  messageCount: 2_048,
  builtAt: 0,
  verified: true,
  replacedAt: null,
  ...given,
});

const situation = (given: Partial<IndexState> = {}): IndexState => ({
  segments: [segment(1, 0, 100)],
  replaced: [],
  unindexedCount: 0,
  minSegmentMessages: 1_000,
  start: 0,
  horizon: 200,
  now: 0,
  ...given,
});

test('the newest messages are indexed first, then older ones, and nothing in an empty store', () => {
  expect(nextJob(situation({ segments: [] }))).toBeNull();
  expect(nextJob(situation({ segments: [], unindexedCount: 1 }))).toEqual({ kind: 'index-older', end: 200 });
  const part = [segment(1, 50, 100)];
  expect(nextJob(situation({ segments: part, unindexedCount: 1_000 }))).toEqual({ kind: 'index-newer', first: 100 });
  expect(nextJob(situation({ segments: part, unindexedCount: 999 }))).toEqual({ kind: 'index-older', end: 50 });
  expect(nextJob(situation({ unindexedCount: 999 }))).toBeNull();
});

test('a segment is verified once after some minutes, even if the clock was set back', () => {
  const fresh = segment(1, 0, 100, { verified: false, builtAt: 10 * MINUTE });
  const at = (now: number) => nextJob(situation({ segments: [fresh], now }));
  expect(at(14 * MINUTE)).toBeNull();
  expect(at(15 * MINUTE)).toEqual({ kind: 'verify', segment: fresh });
  expect(at(0)).toEqual({ kind: 'verify', segment: fresh });
});

test('small consecutive segments are merged if they fill a large one and are verified', () => {
  const small = Array.from({ length: 8 }, (_, n) => segment(n, 700 - n * 100, 800 - n * 100));
  expect(nextJob(situation({ segments: small }))).toMatchObject({ kind: 'merge', segments: small });
  expect(nextJob(situation({ segments: small.slice(3) }))).toBeNull();
  const young = small.map((one, n) => (n === 4 ? { ...one, verified: false } : one));
  expect(nextJob(situation({ segments: young }))).toBeNull();
  const apart = small.map((one, n) => (n === 4 ? { ...one, end: one.end - 1 } : one));
  expect(nextJob(situation({ segments: apart }))).toBeNull();
  const large = [segment(9, 800, 900, { messageCount: 16_000 }), ...small.slice(0, 5)];
  expect(nextJob(situation({ segments: large, start: small[4]?.first ?? 0 }))).toBeNull();
});

test('a replaced segment is purged when no search can still read it', () => {
  const old = segment(7, 0, 100, { replacedAt: MINUTE });
  expect(nextJob(situation({ replaced: [old], now: MINUTE + 59_999 }))).toBeNull();
  expect(nextJob(situation({ replaced: [old], now: 2 * MINUTE }))).toEqual({ kind: 'purge', segment: old });
});
