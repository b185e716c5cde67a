/**
 * One step of the work on the index: `nextJob` says what is next, `indexSteps` reads the rows for it and tells what is to be written.
 * It runs on a thread of its own; the rows it reads are never locked.
 *
 * Messages are indexed behind their acceptance, the newest first: what is newer than the index, as soon as it is enough for a
 * segment; then what is older, down to the first message. Segments are looked at once more some minutes later, since a message may
 * be committed after its neighbours; small ones are joined.
 */
import { seqOf } from '../rules/messages.ts';
import type { SearchableMessage } from './query.ts';
import { type EncodedSegment, encodeSegment, MAX_SEGMENT_MESSAGES } from './segment.ts';
import { type Coroutine, FIRST_ID, FIRST_SEQ, type MaybePromise, resolved, type SegmentInfo } from './source.ts';

/** One step of the work on the index. */
export interface IndexStep {
  /** Mail requests with lesser ids have all been committed, but for a few that come late. */
  readonly horizon: string;
  /** So many that are newer than the index are worth a segment of it. */
  readonly least: number;
  readonly now: number;
}

export interface IndexProgress {
  /** True where something was done: the next step may find more to do. */
  readonly worked: boolean;
  /** Mail requests up to the horizon that are newer than the index, as far as they were counted. */
  readonly waiting: number;
  /** Of those that were, so many have been indexed. */
  readonly newer: number;
}

export interface NewSegment extends EncodedSegment {
  readonly first: number;
  readonly past: number;
}

/** What is to be written, in one transaction. */
export interface IndexChange {
  readonly add: readonly NewSegment[];
  /** Numbers of segments that those added stand for from now on. */
  readonly replace: readonly number[];
  /** Has been looked at again, and was right. */
  readonly looked: number | null;
  /** Nothing is older than this segment. */
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
  /** Mail requests in places from `first` to before `past`, counted no further than `most`. */
  count(first: number, past: number, most: number): MaybePromise<number>;
  /** Them, in the order of their ids; the oldest ones, or the newest. */
  rows(
    first: number,
    past: number,
    limit: number,
    end: 'oldest' | 'newest',
  ): MaybePromise<readonly SearchableMessage[]>;
}

/** Room in a segment for mail that comes late. */
const TAKEN = MAX_SEGMENT_MESSAGES - 384;
const MOST_COUNTED = 200_000;
/**
 * Characters of one segment: of usual mail twice as many as a full one has. With the longest subjects, all words different, a
 * full one would take hundreds of megabytes while it is made.
 */
const MOST_CHARACTERS = 3_000_000;

export function* indexSteps(source: IndexSource, { horizon: id, least, now }: IndexStep): Coroutine<BuiltStep> {
  const horizon = seqOf(id);
  const all = yield* resolved(source.segments());
  const segments = all.filter(({ replacedAt }) => replacedAt === null);
  const replaced = all.filter(({ replacedAt }) => replacedAt !== null);
  const [newest] = segments;
  const waiting = yield* resolved(
    source.count(newest?.past ?? FIRST_SEQ, horizon, newest === undefined ? 1 : MOST_COUNTED),
  );
  const job = nextJob({ segments, replaced, waiting, least, start: FIRST_SEQ, horizon, now });
  const change = job === null ? null : yield* changeOf(job);
  const newer = job?.kind === 'newer' ? (change?.add[0]?.mails ?? 0) : 0;
  return { change, progress: { worked: change !== null, waiting: waiting - newer, newer } };

  function* changeOf(job: Job): Coroutine<IndexChange> {
    const none: IndexChange = { add: [], replace: [], looked: null, oldest: null, purge: null, at: now };
    switch (job.kind) {
      case 'newer': {
        const { mails, whole } = fitting(yield* resolved(source.rows(job.first, horizon, TAKEN, 'oldest')), TAKEN);
        return { ...none, add: [segmentOf(mails, job.first, whole ? horizon : null)] };
      }
      case 'older': {
        const rows = yield* resolved(source.rows(FIRST_SEQ, job.past, TAKEN, 'newest'));
        const { mails, whole } = fitting(rows.toReversed(), TAKEN);
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

  /** As many segments as it takes. */
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

/** The first of the mails, as many as one segment takes; `whole` where that is all there were below the limit. */
function fitting(
  mails: readonly SearchableMessage[],
  limit: number,
): { mails: readonly SearchableMessage[]; whole: boolean } {
  let characters = 0;
  const end = mails.findIndex(({ to, recipient, from, subject }) => {
    characters += to.length + (recipient?.length ?? 0) + from.length + subject.length;
    return characters > MOST_CHARACTERS;
  });
  return end === -1 ? { mails, whole: mails.length < limit } : { mails: mails.slice(0, end), whole: false };
}

/**
 * Where an end is not given the segment ends with its mails; then those in the last place are left to the next one, since not
 * all of that place may be among them.
 */
function segmentOf(mails: readonly SearchableMessage[], first: number | null, past: number | null): NewSegment {
  const [oldest, newest] = [seqOf(mails.at(0)?.id ?? FIRST_ID), seqOf(mails.at(-1)?.id ?? FIRST_ID)];
  const from = first ?? oldest + 1;
  const to = past ?? newest;
  const kept = mails.filter(({ id }) => seqOf(id) >= from && seqOf(id) < to);
  return { first: from, past: to, ...encodeSegment(kept) };
}

/** A segment as it stands in the store. */
export interface StoredSegment extends SegmentInfo {
  readonly builtAt: number;
  readonly looked: boolean;
  readonly replacedAt: number | null;
}

export type Job =
  | { readonly kind: 'newer'; readonly first: number }
  | { readonly kind: 'older'; readonly past: number }
  /** Counts again the mail requests that it speaks for. */
  | { readonly kind: 'look'; readonly segment: StoredSegment }
  /** Makes one of several neighbours, the newest first. */
  | { readonly kind: 'join'; readonly segments: readonly StoredSegment[] }
  | { readonly kind: 'purge'; readonly segment: StoredSegment };

/** No commit comes so late. */
const LOOK_MS = 5 * 60_000;
/** A search that began before a segment was replaced still reads it. */
const KEEP_MS = 60_000;
/** Joined segments have so many at least, so that none is joined again and again. */
const JOINED = MAX_SEGMENT_MESSAGES * 0.75;

export interface IndexState {
  /** Those in use, the newest first. */
  readonly segments: readonly StoredSegment[];
  readonly replaced: readonly StoredSegment[];
  /** Mail requests that are newer than the index. */
  readonly waiting: number;
  /** So many are enough for a segment. */
  readonly least: number;
  /** The place before which no mail request can be, and that before which all are old enough to be indexed. */
  readonly start: number;
  readonly horizon: number;
  readonly now: number;
}

export function nextJob({ segments, replaced, waiting, least, start, horizon, now }: IndexState): Job | null {
  const [newest] = segments;
  const oldest = segments.at(-1);
  if (newest === undefined || oldest === undefined) return waiting > 0 ? { kind: 'older', past: horizon } : null;
  if (waiting >= least) return { kind: 'newer', first: newest.past };
  if (oldest.first > start) return { kind: 'older', past: oldest.first };
  const due = segments.find(({ looked, builtAt }) => !looked && Math.abs(now - builtAt) >= LOOK_MS);
  if (due !== undefined) return { kind: 'look', segment: due };
  const small = runOfSmall(segments);
  if (small !== null) return { kind: 'join', segments: small };
  const spent = replaced.find(({ replacedAt }) => Math.abs(now - (replacedAt ?? now)) >= KEEP_MS);
  return spent === undefined ? null : { kind: 'purge', segment: spent };
}

function runOfSmall(segments: readonly StoredSegment[]): readonly StoredSegment[] | null {
  for (let begin = 0; begin < segments.length; begin += 1) {
    const run: StoredSegment[] = [];
    let mails = 0;
    for (const segment of segments.slice(begin)) {
      if (!segment.looked || mails + segment.mails > MAX_SEGMENT_MESSAGES) break;
      if (run.length > 0 && run.at(-1)?.first !== segment.past) break;
      run.push(segment);
      mails += segment.mails;
    }
    if (run.length > 1 && mails >= JOINED) return run;
  }
  return null;
}
