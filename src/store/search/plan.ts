/**
 * What the index is worked on next. Mail is indexed behind its acceptance, the newest first: what is newer than the index, as
 * soon as it is enough for a segment; then what is older, down to the first mail request. Segments are looked at once more some
 * minutes later, since a mail request may be committed after its neighbours; small ones are joined.
 */
import { MOST_MAILS } from './segment.ts';
import type { SegmentHead } from './source.ts';

/** A segment as it stands in the store. */
export interface KnownSegment extends SegmentHead {
  readonly builtAt: number;
  readonly looked: boolean;
  readonly replacedAt: number | null;
}

export type Job =
  | { readonly kind: 'newer'; readonly first: number }
  | { readonly kind: 'older'; readonly past: number }
  /** Counts again the mail requests that it speaks for. */
  | { readonly kind: 'look'; readonly segment: KnownSegment }
  /** Makes one of several neighbours, the newest first. */
  | { readonly kind: 'join'; readonly segments: readonly KnownSegment[] }
  | { readonly kind: 'purge'; readonly segment: KnownSegment };

/** No commit comes so late. */
const LOOK_MS = 5 * 60_000;
/** A search that began before a segment was replaced still reads it. */
const KEEP_MS = 60_000;
/** Joined segments have so many at least, so that none is joined again and again. */
const JOINED = MOST_MAILS * 0.75;

export interface Situation {
  /** Those in use, the newest first. */
  readonly segments: readonly KnownSegment[];
  readonly replaced: readonly KnownSegment[];
  /** Mail requests that are newer than the index. */
  readonly waiting: number;
  /** So many are enough for a segment. */
  readonly least: number;
  /** The place before which no mail request can be, and that before which all are old enough to be indexed. */
  readonly start: number;
  readonly horizon: number;
  readonly now: number;
}

export function nextJob({ segments, replaced, waiting, least, start, horizon, now }: Situation): Job | null {
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

function runOfSmall(segments: readonly KnownSegment[]): readonly KnownSegment[] | null {
  for (let begin = 0; begin < segments.length; begin += 1) {
    const run: KnownSegment[] = [];
    let mails = 0;
    for (const segment of segments.slice(begin)) {
      if (!segment.looked || mails + segment.mails > MOST_MAILS) break;
      if (run.length > 0 && run.at(-1)?.first !== segment.past) break;
      run.push(segment);
      mails += segment.mails;
    }
    if (run.length > 1 && mails >= JOINED) return run;
  }
  return null;
}
