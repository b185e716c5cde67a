/**
 * Executes a search, newest first, until the page is full, everything is searched or the time is over. Where index
 * segments cover a range, only their candidate rows are read; elsewhere every row is read. The result is therefore the
 * same with and without an index. query.ts alone decides whether a message matches.
 */
import type { State } from '../../model/message.ts';
import { minIdOfSeq, seqOf } from '../rules/messages.ts';
import { type MessageSearch, matches, type SearchableMessage } from './query.ts';
import {
  accountRange,
  decodeSeqs,
  markMatches,
  pageRange,
  SEQS_PER_PAGE,
  type TermRange,
  termRangesOf,
} from './segment.ts';
import {
  type Coroutine,
  FIRST_ID,
  FIRST_SEQ,
  type IdRange,
  idRangeOf,
  resolved,
  type SearchSource,
  type SegmentInfo,
  seqsKey,
  termsKey,
} from './source.ts';

interface SearchOutcome<Mail> {
  readonly mails: readonly Mail[];
  readonly searchedTo: string | null;
}

/** Rows read between two checks of the time: the first batch, and the largest one. */
const MIN_ROWS = 128;
const MAX_ROWS = 2_048;
/** The same where the database itself decides what matches, which is much faster. */
const MAX_ROWS_NATIVE = 32_768;
/** Segments read together: the first group, and the largest one. */
const MIN_SEGMENTS = 2;
const MAX_SEGMENTS = 32;
/** The most frequent state. It alone has no index. */
const STATE_WITHOUT_INDEX: State = 'delivered';
/**
 * A state with at most the first number of messages is scanned by its own index. Of a state with at most the second
 * number, all sequence numbers are read first.
 */
const MAX_SCANNED_IN_STATE = 500;
const MAX_PRELOADED_IN_STATE = 20_000;

export function* searchSteps<Mail extends SearchableMessage>(
  source: SearchSource<Mail>,
  search: MessageSearch,
  isOver: () => boolean,
): Coroutine<SearchOutcome<Mail>> {
  const { wants, accountId, state, limit } = search;
  const narrow = { accountId, state };
  const window = idRangeOf(search);
  const found: Mail[] = [];

  const id = wants.find((want) => want.kind === 'id')?.id;
  if (id !== undefined) {
    const mail = id >= window.first && id < window.past ? yield* resolved(source.byId(id, narrow)) : null;
    return { mails: mail !== null && matches(wants, mail) ? [mail] : [], searchedTo: null };
  }

  const ranges = rangesOfSearch(search);
  const indexed = state !== null && state !== STATE_WITHOUT_INDEX ? state : null;
  const inState =
    indexed === null || ranges.length === 0
      ? null
      : yield* resolved(source.countInState(indexed, window, MAX_PRELOADED_IN_STATE + 1));
  const byState = indexed !== null && (inState === null || inState <= MAX_SCANNED_IN_STATE);
  const isPreloaded = inState !== null && inState <= MAX_PRELOADED_IN_STATE;
  const searchedTo = byState || ranges.length === 0 ? yield* scan(window) : yield* bySegments();
  return { mails: found, searchedTo };

  /** Reads every row of a range. Null at its end, otherwise the id that it has reached. */
  function* scan({ first, past: end }: IdRange): Coroutine<string | null> {
    let past = end;
    for (let count = Math.max(MIN_ROWS, limit); past > first; count = Math.min(count * 4, maxRows())) {
      const within = { first, past };
      let rows: readonly Mail[];
      let reached: string | null;
      if (byState && indexed !== null) {
        rows = yield* resolved(source.inState(indexed, within, count));
        reached = rows.length < count ? null : (rows.at(-1)?.id ?? null);
      } else {
        reached = yield* resolved(source.nth(within, count));
        const part = { first: reached ?? first, past };
        rows = yield* resolved(source.rows(part, narrow, wants.length === 0 ? limit - found.length : count));
      }
      const full = collect(rows);
      if (full !== null || reached === null) return full;
      past = reached;
      if (isOver()) return past;
    }
    return null;
  }

  function maxRows(): number {
    return wants.length === 0 && !byState ? MAX_ROWS_NATIVE : MAX_ROWS;
  }

  /** Keeps the rows that match. Returns the last one's id if the page is full. */
  function collect(rows: readonly Mail[]): string | null {
    for (const mail of rows) {
      if (accountId !== null && mail.accountId !== accountId) continue;
      if (!matches(wants, mail)) continue;
      found.push(mail);
      if (found.length >= limit) return mail.id;
    }
    return null;
  }

  function* bySegments(): Coroutine<string | null> {
    const all = yield* resolved(source.segments(window));
    const segments = all.filter((segment) => beginOf(segment) < window.past);
    let { past } = window;
    let size = MIN_SEGMENTS;
    for (let at = 0; past > window.first; ) {
      const group = consecutiveSegments(segments, at, size);
      const [newest] = group;
      const from = newest === undefined ? window.first : later(minIdOfSeq(newest.past), window.first);
      // Rows newer than the index, or between its segments.
      if (from < past) {
        const stopped = yield* scan({ first: from, past });
        if (stopped !== null) return stopped;
        past = from;
        continue;
      }
      const stopped = yield* scanGroup(group, past);
      if (stopped !== null) return stopped;
      past = later(beginOf(group.at(-1) ?? EMPTY_SEGMENT), window.first);
      if (past > window.first && isOver()) return past;
      at += group.length;
      size = Math.min(size * 2, MAX_SEGMENTS);
    }
    return null;
  }

  function* scanGroup(group: readonly SegmentInfo[], until: string): Coroutine<string | null> {
    const perSegment = yield* findCandidates(source, group, ranges);
    let past = until;
    let waiting: Candidate[] = [];
    for (const [index, segment] of group.entries()) {
      const candidates = perSegment[index] ?? null;
      if (candidates !== null) {
        for (const number of candidates) waiting.push({ segment: segment.number, number });
        continue;
      }
      // The segment gives no candidates: first the waiting candidates, then each of its rows.
      const part = clip(segment, past);
      const stopped = (yield* readCandidates(waiting, { first: part.past, past })) ?? (yield* scan(part));
      if (stopped !== null) return stopped;
      waiting = [];
      past = part.first;
    }
    return yield* readCandidates(waiting, { first: clip(group.at(-1) ?? EMPTY_SEGMENT, past).first, past });
  }

  function clip(segment: SegmentInfo, past: string): IdRange {
    const end = minIdOfSeq(segment.past);
    return { first: later(beginOf(segment), window.first), past: end < past ? end : past };
  }

  /** Reads the rows of candidates. No other row in the range can match. */
  function* readCandidates(candidates: readonly Candidate[], { first, past }: IdRange): Coroutine<string | null> {
    // The greatest sequence number that has an id before `past`.
    const greatest = minIdOfSeq(seqOf(past)) < past ? seqOf(past) : seqOf(past) - 1;
    const inIt =
      isPreloaded && indexed !== null && candidates.length > MIN_ROWS
        ? new Set(yield* resolved(source.seqsInState(indexed, { first, past })))
        : null;
    let last = Number.POSITIVE_INFINITY;
    let count = Math.max(MIN_ROWS, limit);
    for (let begin = 0; begin < candidates.length; ) {
      const some = candidates.slice(begin, begin + (inIt === null ? count : MAX_ROWS_NATIVE));
      begin += some.length;
      const places = yield* seqsOf(source, some);
      // A segment was replaced during the search: its rows are read instead.
      if (places === null)
        return yield* scan({ first, past: last === Number.POSITIVE_INFINITY ? past : minIdOfSeq(last) });
      const asked = places.filter(
        (place, index) =>
          place >= seqOf(first) &&
          place <= greatest &&
          place < last &&
          place !== places[index - 1] &&
          (inIt === null || inIt.has(place)),
      );
      last = places.at(-1) ?? last;
      for (let part = 0; part < asked.length; part += MAX_ROWS) {
        const these = asked.slice(part, part + MAX_ROWS);
        const rows = yield* resolved(source.bySeqs(these, narrow));
        const full = collect(rows.filter((mail) => mail.id < past && mail.id >= first));
        if (full !== null) return full;
        const to = minIdOfSeq(these.at(-1) ?? 0);
        if (isOver() && to > first) return to;
      }
      count = Math.min(count * 4, MAX_ROWS);
    }
    return null;
  }
}

interface Candidate {
  readonly segment: number;
  readonly number: number;
}

const EMPTY_SEGMENT: SegmentInfo = { number: 0, first: 0, past: 0, mails: 0 };

/** Consecutive segments from `at` on: each begins where the next newer one ends. */
function consecutiveSegments(segments: readonly SegmentInfo[], at: number, most: number): readonly SegmentInfo[] {
  const group: SegmentInfo[] = [];
  for (const segment of segments.slice(at, at + most)) {
    if (group.length > 0 && segment.past !== group.at(-1)?.first) break;
    group.push(segment);
  }
  return group;
}

/** The oldest segment covers everything before it. */
function beginOf({ first }: SegmentInfo): string {
  return first <= FIRST_SEQ ? FIRST_ID : minIdOfSeq(first);
}

function later(one: string, other: string): string {
  return one > other ? one : other;
}

function rangesOfSearch({ wants, accountId }: MessageSearch): readonly TermRange[] {
  const words = wants.flatMap((want) => (want.kind === 'id' ? [] : termRangesOf(want)));
  return accountId === null ? words : [...words, accountRange(accountId)];
}

/**
 * A prefix that spans more pages of a segment is not used there: so many terms have it that almost every group of rows
 * matches.
 */
const MAX_PAGES_PER_RANGE = 12;

type Source = Pick<SearchSource<SearchableMessage>, 'directories' | 'pages'>;

/** Candidates of a segment: row numbers in it, newest first. Null if the segment cannot narrow the search. */
type Candidates = readonly number[] | null;

/** The candidates of each segment. */
export function* findCandidates(
  source: Source,
  segments: readonly SegmentInfo[],
  ranges: readonly TermRange[],
): Coroutine<readonly Candidates[]> {
  const directories = yield* resolved(source.directories(segments.map(({ number }) => number)));
  const spans = segments.map(({ number }) => {
    const directory = directories.get(number);
    if (directory === undefined) return [];
    return ranges
      .map((range) => ({ range, pages: keysBetween(number, pageRange(directory, range)) }))
      .filter(({ pages }) => pages.length <= MAX_PAGES_PER_RANGE);
  });
  const wanted = new Set(spans.flatMap((some) => some.flatMap(({ pages }) => pages)));
  const pages = yield* resolved(source.pages([...wanted]));
  return segments.map(({ mails }, index) => {
    const some = spans[index] ?? [];
    if (some.length === 0) return null;
    const left = new Uint8Array(Math.ceil(mails / 8)).fill(0xff);
    for (const { range, pages: keys } of some) {
      const bits = new Uint8Array(left.length);
      for (const key of keys) {
        const page = pages.get(key);
        // The segment was replaced meanwhile.
        if (page === undefined) return null;
        markMatches(page, range, bits);
      }
      for (const [at, byte] of bits.entries()) left[at] = (left[at] ?? 0) & byte;
    }
    return numbersIn(left);
  });
}

function keysBetween(segment: number, [from, to]: readonly [number, number]): readonly number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, page) => termsKey(segment, from + page));
}

/** Greatest first. */
function numbersIn(bits: Uint8Array): readonly number[] {
  const numbers: number[] = [];
  for (let at = bits.length - 1; at >= 0; at -= 1) {
    const byte = bits[at] ?? 0;
    for (let bit = 7; byte !== 0 && bit >= 0; bit -= 1) if ((byte >> bit) & 1) numbers.push(at * 8 + bit);
  }
  return numbers;
}

/** The sequence numbers of candidates, in the given order. Null if a segment was removed. */
function* seqsOf(
  source: Source,
  asked: readonly { readonly segment: number; readonly number: number }[],
): Coroutine<readonly number[] | null> {
  const keyOf = ({ segment, number }: { segment: number; number: number }) =>
    seqsKey(segment, Math.floor(number / SEQS_PER_PAGE));
  const pages = yield* resolved(source.pages([...new Set(asked.map(keyOf))]));
  const decoded = new Map<number, readonly number[]>();
  for (const [key, page] of pages) decoded.set(key, decodeSeqs(page));
  const places: number[] = [];
  for (const one of asked) {
    const place = decoded.get(keyOf(one))?.[one.number % SEQS_PER_PAGE];
    if (place === undefined) return null;
    places.push(place);
  }
  return places;
}
