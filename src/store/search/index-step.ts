/**
 * One step of index maintenance. `selectNextTask` selects the task. `planIndexStep` reads the rows that the task needs
 * and returns the change to write. `planIndexStep` runs on a separate thread and does not lock the rows that it reads.
 *
 * Messages that are newer than the index are indexed first, as soon as their number is sufficient for a segment.
 * Messages that are older than the index are indexed afterwards, down to the oldest message. Each segment is verified
 * once, 5 minutes after its build, because a message may be committed after messages with greater ids. Small segments
 * are merged.
 */
import { toSeq } from '../rules/messages.ts';
import type { SearchableMessage } from './query.ts';
import { type EncodedSegment, encodeSegment, MAX_SEGMENT_MESSAGES } from './segment.ts';
import { type Coroutine, type IndexSegment, type MaybePromise, MIN_ID, MIN_SEQ, waitFor } from './source.ts';

/** One step of index maintenance. */
export interface IndexStep {
  /** An id: all messages with ids less than this id are committed, except a few messages whose commit is late. */
  readonly horizon: string;
  /** A new segment is built if at least this number of messages is newer than the index. */
  readonly minSegmentMessages: number;
  readonly now: number;
}

export interface IndexProgress {
  /** True if the step changed the index. In this case, another step may be necessary. */
  readonly hasChanged: boolean;
  /** The number of messages up to the horizon that are newer than the index, counted up to `MAX_UNINDEXED_COUNT`. */
  readonly unindexedCount: number;
  /** The number of messages that were newer than the index and that this step has indexed. */
  readonly indexedCount: number;
}

export interface NewSegment extends EncodedSegment {
  readonly first: number;
  readonly end: number;
}

/** The change that one transaction writes. */
export interface IndexChange {
  readonly addedSegments: readonly NewSegment[];
  /** The numbers of the segments that the added segments replace. */
  readonly replacedSegments: readonly number[];
  /** The number of a segment that was verified as complete, or null. */
  readonly verifiedSegment: number | null;
  /** The number of the oldest segment if no message is older than this segment; otherwise null. */
  readonly firstSegment: number | null;
  /** The number of a replaced segment that is deleted, or null. */
  readonly purgedSegment: number | null;
  readonly at: number;
}

export interface BuiltStep {
  readonly change: IndexChange | null;
  readonly progress: IndexProgress;
}

/** The read operations of a step. */
export interface IndexSource {
  listSegments(): MaybePromise<readonly StoredSegment[]>;
  /** Counts the messages with sequence numbers from `first` (inclusive) to `end` (exclusive), up to `maxCount`. */
  countMessages(first: number, end: number, maxCount: number): MaybePromise<number>;
  /**
   * Reads messages with sequence numbers from `first` (inclusive) to `end` (exclusive) in order of id: the `limit`
   * oldest or the `limit` newest messages.
   */
  readMessages(
    first: number,
    end: number,
    limit: number,
    side: 'oldest' | 'newest',
  ): MaybePromise<readonly SearchableMessage[]>;
}

/** Maximum number of messages in a new segment. The remaining capacity is for messages that are committed late. */
const MAX_NEW_SEGMENT_MESSAGES = MAX_SEGMENT_MESSAGES - 384;
/** Maximum of `IndexProgress.unindexedCount`. */
const MAX_UNINDEXED_COUNT = 200_000;
/**
 * Maximum number of characters in one segment: twice the size of a full segment of typical messages. Without this
 * limit, a full segment of very long subjects with distinct words would need hundreds of megabytes of memory.
 */
const MAX_SEGMENT_CHARACTERS = 3_000_000;

/**
 * Plans one step: selects the task and reads the rows that the task needs. Writes nothing. Fails with the errors of the
 * source.
 */
export function* planIndexStep(
  source: IndexSource,
  { horizon: horizonId, minSegmentMessages, now }: IndexStep,
): Coroutine<BuiltStep> {
  const horizon = toSeq(horizonId);
  const allSegments = yield* waitFor(source.listSegments());
  const segments = allSegments.filter(({ replacedAt }) => replacedAt === null);
  const replacedSegments = allSegments.filter(({ replacedAt }) => replacedAt !== null);
  const [newest] = segments;
  const unindexedCount = yield* waitFor(
    source.countMessages(newest?.end ?? MIN_SEQ, horizon, newest === undefined ? 1 : MAX_UNINDEXED_COUNT),
  );
  const task = selectNextTask({
    segments,
    replacedSegments,
    unindexedCount,
    minSegmentMessages,
    start: MIN_SEQ,
    horizon,
    now,
  });
  const change = task === null ? null : yield* executeTask(task);
  const indexedCount = task?.kind === 'index-newer' ? (change?.addedSegments[0]?.messageCount ?? 0) : 0;
  return {
    change,
    progress: { hasChanged: change !== null, unindexedCount: unindexedCount - indexedCount, indexedCount },
  };

  function* executeTask(task: IndexTask): Coroutine<IndexChange> {
    const emptyChange: IndexChange = {
      ...{
        addedSegments: [],
        replacedSegments: [],
        verifiedSegment: null,
        firstSegment: null,
        purgedSegment: null,
        at: now,
      },
    };
    switch (task.kind) {
      case 'index-newer': {
        const { messages, isComplete } = fitIntoSegment(
          yield* waitFor(source.readMessages(task.first, horizon, MAX_NEW_SEGMENT_MESSAGES, 'oldest')),
          MAX_NEW_SEGMENT_MESSAGES,
        );
        return { ...emptyChange, addedSegments: [buildSegment(messages, task.first, isComplete ? horizon : null)] };
      }
      case 'index-older': {
        const rows = yield* waitFor(source.readMessages(MIN_SEQ, task.end, MAX_NEW_SEGMENT_MESSAGES, 'newest'));
        const { messages, isComplete } = fitIntoSegment(rows.toReversed(), MAX_NEW_SEGMENT_MESSAGES);
        if (messages.length === 0) return { ...emptyChange, firstSegment: segments.at(-1)?.number ?? null };
        return {
          ...emptyChange,
          addedSegments: [buildSegment(messages.toReversed(), isComplete ? MIN_SEQ : null, task.end)],
        };
      }
      case 'verify': {
        const { number, first, end, messageCount } = task.segment;
        if ((yield* waitFor(source.countMessages(first, end, messageCount + 1))) === messageCount)
          return { ...emptyChange, verifiedSegment: number };
        return { ...emptyChange, addedSegments: yield* buildSegments(first, end), replacedSegments: [number] };
      }
      case 'merge': {
        const [from, to] = [task.segments.at(-1)?.first ?? 0, task.segments[0]?.end ?? 0];
        return {
          ...emptyChange,
          addedSegments: yield* buildSegments(from, to),
          replacedSegments: task.segments.map(({ number }) => number),
        };
      }
      case 'purge':
        return { ...emptyChange, purgedSegment: task.segment.number };
    }
  }

  /** Builds the segments that cover the range. */
  function* buildSegments(from: number, end: number): Coroutine<readonly NewSegment[]> {
    const builtSegments: NewSegment[] = [];
    for (let first = from; first < end; first = builtSegments.at(-1)?.end ?? end) {
      const { messages, isComplete } = fitIntoSegment(
        yield* waitFor(source.readMessages(first, end, MAX_SEGMENT_MESSAGES, 'oldest')),
        MAX_SEGMENT_MESSAGES,
      );
      builtSegments.push(buildSegment(messages, first, isComplete ? end : null));
    }
    return builtSegments;
  }
}

/**
 * Returns as many of the first messages as fit into one segment. `isComplete` is true if these are all messages of the
 * range.
 */
function fitIntoSegment(
  messages: readonly SearchableMessage[],
  limit: number,
): { messages: readonly SearchableMessage[]; isComplete: boolean } {
  let characterCount = 0;
  const endIndex = messages.findIndex(({ to, recipient, from, subject }) => {
    characterCount += to.length + (recipient?.length ?? 0) + from.length + subject.length;
    return characterCount > MAX_SEGMENT_CHARACTERS;
  });
  return endIndex === -1
    ? { messages, isComplete: messages.length < limit }
    : { messages: messages.slice(0, endIndex), isComplete: false };
}

/**
 * Builds a segment from messages. If `first` or `end` is null, the messages define this bound. The messages whose
 * sequence number equals this bound are excluded, because other messages with this number may not have been read. The
 * adjacent segment contains all messages with this number.
 */
function buildSegment(messages: readonly SearchableMessage[], first: number | null, end: number | null): NewSegment {
  const [oldest, newest] = [toSeq(messages.at(0)?.id ?? MIN_ID), toSeq(messages.at(-1)?.id ?? MIN_ID)];
  const firstSeq = first ?? oldest + 1;
  const endSeq = end ?? newest;
  const includedMessages = messages.filter(({ id }) => toSeq(id) >= firstSeq && toSeq(id) < endSeq);
  return { first: firstSeq, end: endSeq, ...encodeSegment(includedMessages) };
}

/** A stored segment. */
export interface StoredSegment extends IndexSegment {
  readonly builtAt: number;
  readonly isVerified: boolean;
  readonly replacedAt: number | null;
}

export type IndexTask =
  | { readonly kind: 'index-newer'; readonly first: number }
  | { readonly kind: 'index-older'; readonly end: number }
  /** Counts the messages of the segment again and rebuilds the segment if the count differs. */
  | { readonly kind: 'verify'; readonly segment: StoredSegment }
  /** Merges consecutive segments, newest first. */
  | { readonly kind: 'merge'; readonly segments: readonly StoredSegment[] }
  | { readonly kind: 'purge'; readonly segment: StoredSegment };

/**
 * Time between the build of a segment and its verification. A message that is committed after the verification is
 * missing from the index.
 */
const VERIFY_AFTER_MS = 5 * 60_000;
/**
 * Time for which a replaced segment remains stored. A search that began before the replacement can still read the
 * segment.
 */
const REPLACED_SEGMENT_TTL_MS = 60_000;
/** Minimum size of a merged segment, so that no segment is merged repeatedly. */
const MIN_MERGED_MESSAGES = MAX_SEGMENT_MESSAGES * 0.75;

export interface IndexState {
  /** The segments in use, newest first. */
  readonly segments: readonly StoredSegment[];
  readonly replacedSegments: readonly StoredSegment[];
  /** The number of messages newer than the index. */
  readonly unindexedCount: number;
  /** A new segment is built if at least this number of messages is newer than the index. */
  readonly minSegmentMessages: number;
  /**
   * `start` is the least sequence number that a message can have. Messages before `horizon` are old enough to be
   * indexed.
   */
  readonly start: number;
  readonly horizon: number;
  readonly now: number;
}

/** Returns the next task, or null if the index needs no change. */
export function selectNextTask({
  segments,
  replacedSegments,
  unindexedCount,
  minSegmentMessages,
  start,
  horizon,
  now,
}: IndexState): IndexTask | null {
  const [newest] = segments;
  const oldest = segments.at(-1);
  if (newest === undefined || oldest === undefined)
    return unindexedCount > 0 ? { kind: 'index-older', end: horizon } : null;
  if (unindexedCount >= minSegmentMessages) return { kind: 'index-newer', first: newest.end };
  if (oldest.first > start) return { kind: 'index-older', end: oldest.first };
  const unverifiedSegment = segments.find(
    ({ isVerified, builtAt }) => !isVerified && Math.abs(now - builtAt) >= VERIFY_AFTER_MS,
  );
  if (unverifiedSegment !== undefined) return { kind: 'verify', segment: unverifiedSegment };
  const smallSegments = findMergeableSegments(segments);
  if (smallSegments !== null) return { kind: 'merge', segments: smallSegments };
  const expiredSegment = replacedSegments.find(
    ({ replacedAt }) => Math.abs(now - (replacedAt ?? now)) >= REPLACED_SEGMENT_TTL_MS,
  );
  return expiredSegment === undefined ? null : { kind: 'purge', segment: expiredSegment };
}

function findMergeableSegments(segments: readonly StoredSegment[]): readonly StoredSegment[] | null {
  for (let startIndex = 0; startIndex < segments.length; startIndex += 1) {
    const group: StoredSegment[] = [];
    let messageCount = 0;
    for (const segment of segments.slice(startIndex)) {
      if (!segment.isVerified || messageCount + segment.messageCount > MAX_SEGMENT_MESSAGES) break;
      if (group.length > 0 && group.at(-1)?.first !== segment.end) break;
      group.push(segment);
      messageCount += segment.messageCount;
    }
    if (group.length > 1 && messageCount >= MIN_MERGED_MESSAGES) return group;
  }
  return null;
}
