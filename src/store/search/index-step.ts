/**
 * One step of index maintenance: `nextJob` chooses the job; `indexSteps` reads its rows and returns the change to be
 * written. It runs on its own thread, and the rows that it reads are not locked.
 *
 * Messages are indexed after their acceptance, newest first: those newer than the index once there are enough for a
 * segment, then older ones down to the first message. Each segment is verified once, some minutes later, because a
 * message may be committed after its neighbours. Small segments are merged.
 */
import { seqOf } from '../rules/messages.ts';
import type { SearchableMessage } from './query.ts';
import { type EncodedSegment, encodeSegment, MAX_SEGMENT_MESSAGES } from './segment.ts';
import { type Coroutine, type MaybePromise, MIN_ID, MIN_SEQ, type SegmentInfo, waitFor } from './source.ts';

/** One step of index maintenance. */
export interface IndexStep {
  /** All messages with lesser ids are committed, except for a few late ones. */
  readonly horizon: string;
  /** The number of messages newer than the index that is enough for a segment. */
  readonly minSegmentMessages: number;
  readonly now: number;
}

export interface IndexProgress {
  /** True if the step changed something: the next step may find more work. */
  readonly changed: boolean;
  /** Messages up to the horizon that are newer than the index and not indexed yet, up to the counting limit. */
  readonly unindexedCount: number;
  /** The number of them that this step has indexed. */
  readonly indexedCount: number;
}

export interface NewSegment extends EncodedSegment {
  readonly first: number;
  readonly end: number;
}

/** What is to be written in one transaction. */
export interface IndexChange {
  readonly add: readonly NewSegment[];
  /** Numbers of the segments that the added ones replace. */
  readonly replace: readonly number[];
  /** The number of a segment that was verified and found complete. */
  readonly verified: number | null;
  /** The number of the segment before which there is no message. */
  readonly firstSegment: number | null;
  readonly purge: number | null;
  readonly at: number;
}

export interface BuiltStep {
  readonly change: IndexChange | null;
  readonly progress: IndexProgress;
}

/** What a step reads. */
export interface IndexSource {
  segments(): MaybePromise<readonly StoredSegment[]>;
  /** Counts messages with sequence numbers from `first` to before `past`, up to `most`. */
  count(first: number, end: number, maxCount: number): MaybePromise<number>;
  /** Reads them in order of id: the oldest ones, or the newest. */
  rows(
    first: number,
    end: number,
    limit: number,
    side: 'oldest' | 'newest',
  ): MaybePromise<readonly SearchableMessage[]>;
}

/** Leaves space in a segment for late messages. */
const MAX_NEW_SEGMENT_MESSAGES = MAX_SEGMENT_MESSAGES - 384;
const MAX_COUNT = 200_000;
/**
 * Maximum number of characters in one segment: twice the size of a full segment of usual messages. A full segment of
 * the longest subjects with only different words would need hundreds of megabytes while it is built.
 */
const MAX_SEGMENT_CHARACTERS = 3_000_000;

export function* planIndexStep(
  source: IndexSource,
  { horizon: horizonId, minSegmentMessages, now }: IndexStep,
): Coroutine<BuiltStep> {
  const horizon = seqOf(horizonId);
  const all = yield* waitFor(source.segments());
  const segments = all.filter(({ replacedAt }) => replacedAt === null);
  const replaced = all.filter(({ replacedAt }) => replacedAt !== null);
  const [newest] = segments;
  const unindexedCount = yield* waitFor(
    source.count(newest?.end ?? MIN_SEQ, horizon, newest === undefined ? 1 : MAX_COUNT),
  );
  const job = nextJob({ segments, replaced, unindexedCount, minSegmentMessages, start: MIN_SEQ, horizon, now });
  const change = job === null ? null : yield* executeJob(job);
  const indexedCount = job?.kind === 'index-newer' ? (change?.add[0]?.messageCount ?? 0) : 0;
  return {
    change,
    progress: { changed: change !== null, unindexedCount: unindexedCount - indexedCount, indexedCount },
  };

  function* executeJob(job: Job): Coroutine<IndexChange> {
    const noChange: IndexChange = { add: [], replace: [], verified: null, firstSegment: null, purge: null, at: now };
    switch (job.kind) {
      case 'index-newer': {
        const { messages, isComplete } = fitIntoSegment(
          yield* waitFor(source.rows(job.first, horizon, MAX_NEW_SEGMENT_MESSAGES, 'oldest')),
          MAX_NEW_SEGMENT_MESSAGES,
        );
        return { ...noChange, add: [buildSegment(messages, job.first, isComplete ? horizon : null)] };
      }
      case 'index-older': {
        const rows = yield* waitFor(source.rows(MIN_SEQ, job.end, MAX_NEW_SEGMENT_MESSAGES, 'newest'));
        const { messages, isComplete } = fitIntoSegment(rows.toReversed(), MAX_NEW_SEGMENT_MESSAGES);
        if (messages.length === 0) return { ...noChange, firstSegment: segments.at(-1)?.number ?? null };
        return { ...noChange, add: [buildSegment(messages.toReversed(), isComplete ? MIN_SEQ : null, job.end)] };
      }
      case 'verify': {
        const { number, first, end, messageCount } = job.segment;
        if ((yield* waitFor(source.count(first, end, messageCount + 1))) === messageCount)
          return { ...noChange, verified: number };
        return { ...noChange, add: yield* buildSegments(first, end), replace: [number] };
      }
      case 'merge': {
        const [from, to] = [job.segments.at(-1)?.first ?? 0, job.segments[0]?.end ?? 0];
        return { ...noChange, add: yield* buildSegments(from, to), replace: job.segments.map(({ number }) => number) };
      }
      case 'purge':
        return { ...noChange, purge: job.segment.number };
    }
  }

  /** As many segments as the range needs. */
  function* buildSegments(from: number, end: number): Coroutine<readonly NewSegment[]> {
    const built: NewSegment[] = [];
    for (let first = from; first < end; first = built.at(-1)?.end ?? end) {
      const { messages, isComplete } = fitIntoSegment(
        yield* waitFor(source.rows(first, end, MAX_SEGMENT_MESSAGES, 'oldest')),
        MAX_SEGMENT_MESSAGES,
      );
      built.push(buildSegment(messages, first, isComplete ? end : null));
    }
    return built;
  }
}

/** The first messages, as many as fit into one segment. `whole` is true if these are all messages of the range. */
function fitIntoSegment(
  messages: readonly SearchableMessage[],
  limit: number,
): { messages: readonly SearchableMessage[]; isComplete: boolean } {
  let characters = 0;
  const endIndex = messages.findIndex(({ to, recipient, from, subject }) => {
    characters += to.length + (recipient?.length ?? 0) + from.length + subject.length;
    return characters > MAX_SEGMENT_CHARACTERS;
  });
  return endIndex === -1
    ? { messages, isComplete: messages.length < limit }
    : { messages: messages.slice(0, endIndex), isComplete: false };
}

/**
 * Without a given end the segment ends with its messages. The messages with the last sequence number are then left to
 * the next segment, because not all of that number may have been read.
 */
function buildSegment(messages: readonly SearchableMessage[], first: number | null, end: number | null): NewSegment {
  const [oldest, newest] = [seqOf(messages.at(0)?.id ?? MIN_ID), seqOf(messages.at(-1)?.id ?? MIN_ID)];
  const firstSeq = first ?? oldest + 1;
  const endSeq = end ?? newest;
  const included = messages.filter(({ id }) => seqOf(id) >= firstSeq && seqOf(id) < endSeq);
  return { first: firstSeq, end: endSeq, ...encodeSegment(included) };
}

/** A segment as stored. */
export interface StoredSegment extends SegmentInfo {
  readonly builtAt: number;
  readonly verified: boolean;
  readonly replacedAt: number | null;
}

export type Job =
  | { readonly kind: 'index-newer'; readonly first: number }
  | { readonly kind: 'index-older'; readonly end: number }
  /** Counts the messages of the segment again. */
  | { readonly kind: 'verify'; readonly segment: StoredSegment }
  /** Merges consecutive segments, newest first. */
  | { readonly kind: 'merge'; readonly segments: readonly StoredSegment[] }
  | { readonly kind: 'purge'; readonly segment: StoredSegment };

/** A segment is verified once, this long after it was built. The index misses a message whose commit takes longer. */
const VERIFY_AFTER_MS = 5 * 60_000;
/** A search that began before a segment was replaced can read it for this long. */
const REPLACED_SEGMENT_TTL_MS = 60_000;
/** Minimum size of a merged segment, so that no segment is merged repeatedly. */
const MIN_MERGED_MESSAGES = MAX_SEGMENT_MESSAGES * 0.75;

export interface IndexState {
  /** The segments in use, newest first. */
  readonly segments: readonly StoredSegment[];
  readonly replaced: readonly StoredSegment[];
  /** The number of messages newer than the index. */
  readonly unindexedCount: number;
  /** The number of them that is enough for a segment. */
  readonly minSegmentMessages: number;
  /** `start`: the least possible sequence number. `horizon`: messages before it are old enough to be indexed. */
  readonly start: number;
  readonly horizon: number;
  readonly now: number;
}

export function nextJob({
  segments,
  replaced,
  unindexedCount,
  minSegmentMessages,
  start,
  horizon,
  now,
}: IndexState): Job | null {
  const [newest] = segments;
  const oldest = segments.at(-1);
  if (newest === undefined || oldest === undefined)
    return unindexedCount > 0 ? { kind: 'index-older', end: horizon } : null;
  if (unindexedCount >= minSegmentMessages) return { kind: 'index-newer', first: newest.end };
  if (oldest.first > start) return { kind: 'index-older', end: oldest.first };
  const unverified = segments.find(({ verified, builtAt }) => !verified && Math.abs(now - builtAt) >= VERIFY_AFTER_MS);
  if (unverified !== undefined) return { kind: 'verify', segment: unverified };
  const small = findMergeableSegments(segments);
  if (small !== null) return { kind: 'merge', segments: small };
  const expired = replaced.find(({ replacedAt }) => Math.abs(now - (replacedAt ?? now)) >= REPLACED_SEGMENT_TTL_MS);
  return expired === undefined ? null : { kind: 'purge', segment: expired };
}

function findMergeableSegments(segments: readonly StoredSegment[]): readonly StoredSegment[] | null {
  for (let begin = 0; begin < segments.length; begin += 1) {
    const group: StoredSegment[] = [];
    let messageCount = 0;
    for (const segment of segments.slice(begin)) {
      if (!segment.verified || messageCount + segment.messageCount > MAX_SEGMENT_MESSAGES) break;
      if (group.length > 0 && group.at(-1)?.first !== segment.end) break;
      group.push(segment);
      messageCount += segment.messageCount;
    }
    if (group.length > 1 && messageCount >= MIN_MERGED_MESSAGES) return group;
  }
  return null;
}
