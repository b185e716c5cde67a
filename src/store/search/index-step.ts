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
import { type Coroutine, FIRST_ID, FIRST_SEQ, type MaybePromise, resolved, type SegmentInfo } from './source.ts';

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
  readonly worked: boolean;
  /** Messages up to the horizon that are newer than the index and not indexed yet, up to the counting limit. */
  readonly waiting: number;
  /** The number of them that this step has indexed. */
  readonly newer: number;
}

export interface NewSegment extends EncodedSegment {
  readonly first: number;
  readonly past: number;
}

/** What is to be written in one transaction. */
export interface IndexChange {
  readonly add: readonly NewSegment[];
  /** Numbers of the segments that the added ones replace. */
  readonly replace: readonly number[];
  /** The number of a segment that was verified and found complete. */
  readonly looked: number | null;
  /** The number of the segment before which there is no message. */
  readonly oldest: number | null;
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
  count(first: number, past: number, most: number): MaybePromise<number>;
  /** Reads them in order of id: the oldest ones, or the newest. */
  rows(
    first: number,
    past: number,
    limit: number,
    end: 'oldest' | 'newest',
  ): MaybePromise<readonly SearchableMessage[]>;
}

/** Leaves space in a segment for late messages. */
const MAX_NEW_SEGMENT_MESSAGES = MAX_SEGMENT_MESSAGES - 384;
const MAX_COUNTED = 200_000;
/**
 * Maximum number of characters in one segment: twice the size of a full segment of usual messages. A full segment of
 * the longest subjects with only different words would need hundreds of megabytes while it is built.
 */
const MAX_CHARACTERS = 3_000_000;

export function* indexSteps(
  source: IndexSource,
  { horizon: id, minSegmentMessages, now }: IndexStep,
): Coroutine<BuiltStep> {
  const horizon = seqOf(id);
  const all = yield* resolved(source.segments());
  const segments = all.filter(({ replacedAt }) => replacedAt === null);
  const replaced = all.filter(({ replacedAt }) => replacedAt !== null);
  const [newest] = segments;
  const waiting = yield* resolved(
    source.count(newest?.past ?? FIRST_SEQ, horizon, newest === undefined ? 1 : MAX_COUNTED),
  );
  const job = nextJob({ segments, replaced, waiting, minSegmentMessages, start: FIRST_SEQ, horizon, now });
  const change = job === null ? null : yield* changeOf(job);
  const newer = job?.kind === 'newer' ? (change?.add[0]?.mails ?? 0) : 0;
  return { change, progress: { worked: change !== null, waiting: waiting - newer, newer } };

  function* changeOf(job: Job): Coroutine<IndexChange> {
    const none: IndexChange = { add: [], replace: [], looked: null, oldest: null, purge: null, at: now };
    switch (job.kind) {
      case 'newer': {
        const { mails, whole } = fitting(
          yield* resolved(source.rows(job.first, horizon, MAX_NEW_SEGMENT_MESSAGES, 'oldest')),
          MAX_NEW_SEGMENT_MESSAGES,
        );
        return { ...none, add: [segmentOf(mails, job.first, whole ? horizon : null)] };
      }
      case 'older': {
        const rows = yield* resolved(source.rows(FIRST_SEQ, job.past, MAX_NEW_SEGMENT_MESSAGES, 'newest'));
        const { mails, whole } = fitting(rows.toReversed(), MAX_NEW_SEGMENT_MESSAGES);
        if (mails.length === 0) return { ...none, oldest: segments.at(-1)?.number ?? null };
        return { ...none, add: [segmentOf(mails.toReversed(), whole ? FIRST_SEQ : null, job.past)] };
      }
      case 'look': {
        const { number, first, past, mails } = job.segment;
        if ((yield* resolved(source.count(first, past, mails + 1))) === mails) return { ...none, looked: number };
        return { ...none, add: yield* rebuilt(first, past), replace: [number] };
      }
      case 'join': {
        const [from, to] = [job.segments.at(-1)?.first ?? 0, job.segments[0]?.past ?? 0];
        return { ...none, add: yield* rebuilt(from, to), replace: job.segments.map(({ number }) => number) };
      }
      case 'purge':
        return { ...none, purge: job.segment.number };
    }
  }

  /** As many segments as the range needs. */
  function* rebuilt(from: number, past: number): Coroutine<readonly NewSegment[]> {
    const made: NewSegment[] = [];
    for (let first = from; first < past; first = made.at(-1)?.past ?? past) {
      const { mails, whole } = fitting(
        yield* resolved(source.rows(first, past, MAX_SEGMENT_MESSAGES, 'oldest')),
        MAX_SEGMENT_MESSAGES,
      );
      made.push(segmentOf(mails, first, whole ? past : null));
    }
    return made;
  }
}

/** The first messages, as many as fit into one segment. `whole` is true if these are all messages of the range. */
function fitting(
  mails: readonly SearchableMessage[],
  limit: number,
): { mails: readonly SearchableMessage[]; whole: boolean } {
  let characters = 0;
  const end = mails.findIndex(({ to, recipient, from, subject }) => {
    characters += to.length + (recipient?.length ?? 0) + from.length + subject.length;
    return characters > MAX_CHARACTERS;
  });
  return end === -1 ? { mails, whole: mails.length < limit } : { mails: mails.slice(0, end), whole: false };
}

/**
 * Without a given end the segment ends with its messages. The messages with the last sequence number are then left to
 * the next segment, because not all of that number may have been read.
 */
function segmentOf(mails: readonly SearchableMessage[], first: number | null, past: number | null): NewSegment {
  const [oldest, newest] = [seqOf(mails.at(0)?.id ?? FIRST_ID), seqOf(mails.at(-1)?.id ?? FIRST_ID)];
  const from = first ?? oldest + 1;
  const to = past ?? newest;
  const kept = mails.filter(({ id }) => seqOf(id) >= from && seqOf(id) < to);
  return { first: from, past: to, ...encodeSegment(kept) };
}

/** A segment as stored. */
export interface StoredSegment extends SegmentInfo {
  readonly builtAt: number;
  readonly looked: boolean;
  readonly replacedAt: number | null;
}

export type Job =
  | { readonly kind: 'newer'; readonly first: number }
  | { readonly kind: 'older'; readonly past: number }
  /** Counts the messages of the segment again. */
  | { readonly kind: 'look'; readonly segment: StoredSegment }
  /** Merges consecutive segments, newest first. */
  | { readonly kind: 'join'; readonly segments: readonly StoredSegment[] }
  | { readonly kind: 'purge'; readonly segment: StoredSegment };

/** A segment is verified once, this long after it was built. The index misses a message whose commit takes longer. */
const VERIFY_AFTER_MS = 5 * 60_000;
/** A search that began before a segment was replaced can read it for this long. */
const KEEP_REPLACED_MS = 60_000;
/** Minimum size of a merged segment, so that no segment is merged repeatedly. */
const MIN_MERGED_MESSAGES = MAX_SEGMENT_MESSAGES * 0.75;

export interface IndexState {
  /** The segments in use, newest first. */
  readonly segments: readonly StoredSegment[];
  readonly replaced: readonly StoredSegment[];
  /** The number of messages newer than the index. */
  readonly waiting: number;
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
  waiting,
  minSegmentMessages,
  start,
  horizon,
  now,
}: IndexState): Job | null {
  const [newest] = segments;
  const oldest = segments.at(-1);
  if (newest === undefined || oldest === undefined) return waiting > 0 ? { kind: 'older', past: horizon } : null;
  if (waiting >= minSegmentMessages) return { kind: 'newer', first: newest.past };
  if (oldest.first > start) return { kind: 'older', past: oldest.first };
  const due = segments.find(({ looked, builtAt }) => !looked && Math.abs(now - builtAt) >= VERIFY_AFTER_MS);
  if (due !== undefined) return { kind: 'look', segment: due };
  const small = smallSegments(segments);
  if (small !== null) return { kind: 'join', segments: small };
  const spent = replaced.find(({ replacedAt }) => Math.abs(now - (replacedAt ?? now)) >= KEEP_REPLACED_MS);
  return spent === undefined ? null : { kind: 'purge', segment: spent };
}

function smallSegments(segments: readonly StoredSegment[]): readonly StoredSegment[] | null {
  for (let begin = 0; begin < segments.length; begin += 1) {
    const run: StoredSegment[] = [];
    let mails = 0;
    for (const segment of segments.slice(begin)) {
      if (!segment.looked || mails + segment.mails > MAX_SEGMENT_MESSAGES) break;
      if (run.length > 0 && run.at(-1)?.first !== segment.past) break;
      run.push(segment);
      mails += segment.mails;
    }
    if (run.length > 1 && mails >= MIN_MERGED_MESSAGES) return run;
  }
  return null;
}
