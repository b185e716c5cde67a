/** Tests the choice of the next step of index maintenance, and the ranges of consecutive segments. */
import { expect, test } from 'vitest';
import { type IndexState, type StoredSegment, selectNextTask } from '../../../src/store/search/index-step.ts';

const createSegment = (
  number: number,
  first: number,
  endNumber: number,
  overrides: Partial<StoredSegment> = {},
): StoredSegment => ({
  number,
  first,
  end: endNumber,
  messageCount: 2_048,
  builtAt: 0,
  isVerified: true,
  replacedAt: null,
  ...overrides,
});

const createIndexState = (overrides: Partial<IndexState> = {}): IndexState => ({
  segments: [createSegment(1, 0, 100)],
  replacedSegments: [],
  unindexedCount: 0,
  minSegmentMessages: 1_000,
  start: 0,
  horizon: 200,
  now: 0,
  ...overrides,
});

test('the newest messages are indexed first, then older messages, and an empty store needs no step', () => {
  expect(selectNextTask(createIndexState({ segments: [] }))).toBeNull();
  expect(selectNextTask(createIndexState({ segments: [], unindexedCount: 1 }))).toEqual({
    kind: 'index-older',
    end: 200,
  });
  const newestSegments = [createSegment(1, 50, 100)];
  expect(selectNextTask(createIndexState({ segments: newestSegments, unindexedCount: 1_000 }))).toEqual({
    kind: 'index-newer',
    first: 100,
  });
  expect(selectNextTask(createIndexState({ segments: newestSegments, unindexedCount: 999 }))).toEqual({
    kind: 'index-older',
    end: 50,
  });
  expect(selectNextTask(createIndexState({ unindexedCount: 999 }))).toBeNull();
});

test('small consecutive segments are merged if they are verified and together fill a large segment', () => {
  const smallSegments = Array.from({ length: 8 }, (_, index) =>
    createSegment(index, 700 - index * 100, 800 - index * 100),
  );
  expect(selectNextTask(createIndexState({ segments: smallSegments }))).toMatchObject({
    kind: 'merge',
    segments: smallSegments,
  });
  expect(selectNextTask(createIndexState({ segments: smallSegments.slice(3) }))).toBeNull();
  const unverifiedSegments = smallSegments.map((segment, index) =>
    index === 4 ? { ...segment, isVerified: false } : segment,
  );
  expect(selectNextTask(createIndexState({ segments: unverifiedSegments }))).toBeNull();
  const separateSegments = smallSegments.map((segment, index) =>
    index === 4 ? { ...segment, end: segment.end - 1 } : segment,
  );
  expect(selectNextTask(createIndexState({ segments: separateSegments }))).toBeNull();
  const withLargeSegment = [createSegment(9, 800, 900, { messageCount: 16_000 }), ...smallSegments.slice(0, 5)];
  expect(
    selectNextTask(createIndexState({ segments: withLargeSegment, start: smallSegments[4]?.first ?? 0 })),
  ).toBeNull();
});
