/**
 * Executes a search from the newest message to the oldest. The search ends when the page is full, when all messages
 * have been searched, or at the time limit. In a range that index segments cover, the search reads only the candidate
 * rows. In every other range the search reads every row, or every row of an index of states or failures. Only query.ts
 * decides whether a message matches the words, so the result is the same with and without segments.
 */
import { STATES, type State, type StateFilter } from '../../model/message.ts';
import { getMinIdOfSeq, toSeq } from '../rules/messages.ts';
import { type MessageSearch, matchesCriteria, matchesReply, type SearchableMessage } from './query.ts';
import {
  decodeSeqs,
  findPageRange,
  getAccountRange,
  listTermRanges,
  markMatches,
  SEQS_PER_PAGE,
  type TermRange,
} from './segment.ts';
import {
  type Coroutine,
  type IdRange,
  type IndexSegment,
  MIN_ID,
  MIN_SEQ,
  type RowFilter,
  type RowIndex,
  type SearchSource,
  toIdRange,
  toSeqsKey,
  toTermsKey,
  waitFor,
} from './source.ts';

interface SearchOutcome<Message> {
  readonly messages: readonly Message[];
  readonly searchedTo: string | null;
}

/** Number of rows that are read between two checks of the time limit: in the first batch and in the largest batch. */
const MIN_BATCH_ROWS = 128;
const MAX_BATCH_ROWS = 2_048;
/** Number of rows in the largest batch of a search of replies. Such a search reads the history of each row. */
const MAX_REPLY_BATCH_ROWS = 512;
/** Number of rows in the largest batch if the database itself selects the matching rows, which is much faster. */
const MAX_NATIVE_BATCH_ROWS = 32_768;
/** Number of segments that are read together: in the first group and in the largest group. */
const MIN_GROUP_SEGMENTS = 2;
const MAX_GROUP_SEGMENTS = 32;
/** The most frequent state. It is the only state without an index. */
const STATE_WITHOUT_INDEX: State = 'delivered';
/**
 * If an index of a state or a failure contains at most `MAX_SCANNED_MESSAGES` messages, the search reads all of these
 * messages. If the index contains at most `MAX_PRELOADED_MESSAGES` messages, the search reads the sequence numbers of
 * all of these messages, and then reads only the candidates with one of these sequence numbers.
 */
const MAX_SCANNED_MESSAGES = 500;
const MAX_PRELOADED_MESSAGES = 20_000;

/**
 * Executes a search. Returns the messages of the page and, as `searchedTo`, the id at which the search stopped.
 * `searchedTo` is null if all messages have been searched. `hasTimedOut` returns true after the time limit. Fails with
 * the errors of the source.
 */
export function* executeSearch<Message extends SearchableMessage>(
  source: SearchSource<Message>,
  search: MessageSearch,
  hasTimedOut: () => boolean,
): Coroutine<SearchOutcome<Message>> {
  const { criteria, accountIds, limit, reply } = search;
  if (criteria.some((criterion) => criterion.kind === 'recipient-domains' && criterion.domains.size === 0))
    return { messages: [], searchedTo: null };
  const filter = toRowFilter(search);
  const idRange = toIdRange(search);
  const matchingMessages: Message[] = [];

  const id = criteria.find((criterion) => criterion.kind === 'id')?.id;
  if (id !== undefined) {
    const message = id >= idRange.first && id < idRange.end ? yield* waitFor(source.findById(id, filter)) : null;
    if (message !== null) yield* collect([message]);
    return { messages: matchingMessages, searchedTo: null };
  }

  /** True if the database itself selects the matching rows. */
  const isNative = criteria.length === 0 && reply === null;
  const termRanges = listSearchTermRanges(search);
  const rowIndexes = listRowIndexes(filter);
  const { rowIndex, count: indexedCount } = yield* chooseRowIndex();
  const scansRowIndex = rowIndex !== null && (indexedCount === null || indexedCount <= MAX_SCANNED_MESSAGES);
  const isPreloaded = indexedCount !== null && indexedCount <= MAX_PRELOADED_MESSAGES;
  const searchedTo = scansRowIndex || termRanges.length === 0 ? yield* scanRange(idRange) : yield* scanSegments();
  return { messages: matchingMessages, searchedTo };

  /**
   * Chooses the index with the fewest messages from the indexes of states and failures that the filter permits. `count`
   * is null if the messages were not counted.
   */
  function* chooseRowIndex(): Coroutine<{ readonly rowIndex: RowIndex | null; readonly count: number | null }> {
    const [firstIndex = null] = rowIndexes;
    if (firstIndex === null || (rowIndexes.length === 1 && termRanges.length === 0))
      return { rowIndex: firstIndex, count: null };
    let smallestIndex: { readonly rowIndex: RowIndex; readonly count: number } | null = null;
    for (const rowIndex of rowIndexes) {
      const count = yield* waitFor(source.countIndexed(rowIndex, idRange, MAX_PRELOADED_MESSAGES + 1));
      if (smallestIndex === null || count < smallestIndex.count) smallestIndex = { rowIndex, count };
    }
    if (smallestIndex === null || termRanges.length > 0) return smallestIndex ?? { rowIndex: null, count: null };
    return { rowIndex: smallestIndex.rowIndex, count: null };
  }

  /**
   * Reads every row of a range, or every row of the range in the chosen index. Returns null if the read reached the end
   * of the range; otherwise returns the id at which the read stopped.
   */
  function* scanRange({ first, end: rangeEnd }: IdRange): Coroutine<string | null> {
    let end = rangeEnd;
    for (
      let batchSize = Math.max(MIN_BATCH_ROWS, limit);
      end > first;
      batchSize = Math.min(batchSize * 4, computeMaxBatchRows())
    ) {
      const batchRange = { first, end };
      let rows: readonly Message[];
      let readEndId: string | null;
      if (scansRowIndex && rowIndex !== null) {
        rows = yield* waitFor(source.readIndexedRows(rowIndex, batchRange, batchSize));
        readEndId = rows.length < batchSize ? null : (rows.at(-1)?.id ?? null);
        if (rowIndexes.length > 1 || includesUnindexedState(filter)) rows = yield* selectMatching(rows);
      } else {
        readEndId = yield* waitFor(source.findNthId(batchRange, batchSize));
        const readRange = { first: readEndId ?? first, end };
        rows = yield* waitFor(
          source.readRows(readRange, filter, isNative ? limit - matchingMessages.length : batchSize),
        );
      }
      const pageEndId = yield* collect(rows);
      if (pageEndId !== null || readEndId === null) return pageEndId;
      end = readEndId;
      if (hasTimedOut()) return end;
    }
    return null;
  }

  /** Returns the rows that meet all conditions of the filter. */
  function* selectMatching(rows: readonly Message[]): Coroutine<readonly Message[]> {
    const ids = new Set(rows.map(({ id }) => id));
    const filteredMessages = yield* waitFor(source.findBySeqs([...new Set(rows.map(({ id }) => toSeq(id)))], filter));
    return filteredMessages.filter(({ id }) => ids.has(id));
  }

  function computeMaxBatchRows(): number {
    if (reply !== null) return MAX_REPLY_BATCH_ROWS;
    return isNative && !scansRowIndex ? MAX_NATIVE_BATCH_ROWS : MAX_BATCH_ROWS;
  }

  /**
   * Adds the matching rows to the page. Returns the id of the last message of the page if the page is full; otherwise
   * null.
   */
  function* collect(rows: readonly Message[]): Coroutine<string | null> {
    const candidates = rows.filter(
      (message) =>
        (accountIds.length === 0 || accountIds.includes(message.accountId)) && matchesCriteria(criteria, message),
    );
    const replyTexts =
      reply === null || candidates.length === 0
        ? null
        : yield* waitFor(source.readOutcomeTexts(candidates.map((message) => message.id)));
    for (const message of candidates) {
      if (reply !== null && !matchesReply(reply, replyTexts?.get(message.id) ?? null)) continue;
      matchingMessages.push(message);
      if (matchingMessages.length >= limit) return message.id;
    }
    return null;
  }

  function* scanSegments(): Coroutine<string | null> {
    const allSegments = yield* waitFor(source.findSegments(idRange));
    const segments = allSegments.filter((segment) => getFirstId(segment) < idRange.end);
    let { end } = idRange;
    let groupSize = MIN_GROUP_SEGMENTS;
    for (let index = 0; end > idRange.first; ) {
      const group = selectConsecutiveSegments(segments, index, groupSize);
      const [newest] = group;
      const unindexedRangeStart =
        newest === undefined ? idRange.first : selectLaterId(getMinIdOfSeq(newest.end), idRange.first);
      // The rows of this range are newer than the index, or are between two segments.
      if (unindexedRangeStart < end) {
        const stoppedAt = yield* scanRange({ first: unindexedRangeStart, end });
        if (stoppedAt !== null) return stoppedAt;
        end = unindexedRangeStart;
        continue;
      }
      const stoppedAt = yield* scanGroup(group, end);
      if (stoppedAt !== null) return stoppedAt;
      end = selectLaterId(getFirstId(group.at(-1) ?? EMPTY_SEGMENT), idRange.first);
      if (end > idRange.first && hasTimedOut()) return end;
      index += group.length;
      groupSize = Math.min(groupSize * 2, MAX_GROUP_SEGMENTS);
    }
    return null;
  }

  function* scanGroup(group: readonly IndexSegment[], groupEnd: string): Coroutine<string | null> {
    const candidatesBySegment = yield* findCandidates(source, group, termRanges);
    let end = groupEnd;
    let pendingCandidates: Candidate[] = [];
    for (const [index, segment] of group.entries()) {
      const candidates = candidatesBySegment[index] ?? null;
      if (candidates !== null) {
        for (const number of candidates) pendingCandidates.push({ segment: segment.number, number });
        continue;
      }
      // The index cannot exclude rows of this segment. The pending candidates are read first, then every row of the
      // segment.
      const segmentRange = getSearchedRange(segment, end);
      const stoppedAt =
        (yield* readCandidates(pendingCandidates, { first: segmentRange.end, end })) ??
        (yield* scanRange(segmentRange));
      if (stoppedAt !== null) return stoppedAt;
      pendingCandidates = [];
      end = segmentRange.first;
    }
    return yield* readCandidates(pendingCandidates, {
      first: getSearchedRange(group.at(-1) ?? EMPTY_SEGMENT, end).first,
      end,
    });
  }

  function getSearchedRange(segment: IndexSegment, end: string): IdRange {
    const segmentEnd = getMinIdOfSeq(segment.end);
    return { first: selectLaterId(getFirstId(segment), idRange.first), end: segmentEnd < end ? segmentEnd : end };
  }

  /** Reads the rows of the candidates. No other row in the range can match. */
  function* readCandidates(candidates: readonly Candidate[], { first, end }: IdRange): Coroutine<string | null> {
    // The greatest sequence number of an id before `end`.
    const maxSeq = getMinIdOfSeq(toSeq(end)) < end ? toSeq(end) : toSeq(end) - 1;
    const indexedSeqs =
      isPreloaded && rowIndex !== null && candidates.length > MIN_BATCH_ROWS
        ? new Set(yield* waitFor(source.readIndexedSeqs(rowIndex, { first, end })))
        : null;
    let lastSeq = Number.POSITIVE_INFINITY;
    let batchSize = Math.max(MIN_BATCH_ROWS, limit);
    for (let offset = 0; offset < candidates.length; ) {
      const batch = candidates.slice(offset, offset + (indexedSeqs === null ? batchSize : MAX_NATIVE_BATCH_ROWS));
      offset += batch.length;
      const seqs = yield* readSeqs(source, batch);
      // A segment was replaced during the search, so all remaining rows of the range are read.
      if (seqs === null)
        return yield* scanRange({ first, end: lastSeq === Number.POSITIVE_INFINITY ? end : getMinIdOfSeq(lastSeq) });
      const requestedSeqs = seqs.filter(
        (seq, index) =>
          seq >= toSeq(first) &&
          seq <= maxSeq &&
          seq < lastSeq &&
          seq !== seqs[index - 1] &&
          (indexedSeqs === null || indexedSeqs.has(seq)),
      );
      lastSeq = seqs.at(-1) ?? lastSeq;
      for (let batchOffset = 0; batchOffset < requestedSeqs.length; batchOffset += MAX_BATCH_ROWS) {
        const seqBatch = requestedSeqs.slice(batchOffset, batchOffset + MAX_BATCH_ROWS);
        const rows = yield* waitFor(source.findBySeqs(seqBatch, filter));
        const pageEndId = yield* collect(rows.filter((message) => message.id < end && message.id >= first));
        if (pageEndId !== null) return pageEndId;
        const readEndId = getMinIdOfSeq(seqBatch.at(-1) ?? 0);
        if (hasTimedOut() && readEndId > first) return readEndId;
      }
      batchSize = Math.min(batchSize * 4, MAX_BATCH_ROWS);
    }
    return null;
  }
}

/** The states that a search of replies reads if it names no state. Each of these states has an index. */
const STATES_WITH_REPLY: readonly StateFilter[] = [
  ...STATES.filter((state) => state !== STATE_WITHOUT_INDEX && state !== 'queued'),
  'deferred',
];

/**
 * Returns the conditions that the database checks. A search of replies that names no state reads neither delivered
 * messages nor queued messages without an attempt.
 */
function toRowFilter({ accountIds, states, failureClasses, failureCategories, reply }: MessageSearch): RowFilter {
  const selectedStates = reply !== null && states.length === 0 ? STATES_WITH_REPLY : states;
  return {
    accountIds,
    // `queued` includes the deferred messages, so `deferred` is removed. Otherwise, an index would return these
    // messages twice.
    states: selectedStates.includes('queued') ? selectedStates.filter((state) => state !== 'deferred') : selectedStates,
    failureClasses,
    failureCategories,
  };
}

function includesUnindexedState({ states }: RowFilter): boolean {
  return states.includes(STATE_WITHOUT_INDEX);
}

/** Returns the indexes that contain all messages that match the filter. */
function listRowIndexes(filter: RowFilter): readonly RowIndex[] {
  const { states, failureClasses, failureCategories } = filter;
  const indexes: RowIndex[] = [];
  if (failureCategories.length > 0) indexes.push({ kind: 'failure-category', values: failureCategories });
  if (failureClasses.length > 0) indexes.push({ kind: 'failure-class', values: failureClasses });
  if (states.length > 0 && !includesUnindexedState(filter)) indexes.push({ kind: 'state', values: states });
  return indexes;
}

/**
 * Returns true if the row meets the conditions. `isDeferred` is true for a queued message whose last attempt was
 * deferred.
 */
export function matchesRowFilter(
  { accountIds, states, failureClasses, failureCategories }: RowFilter,
  row: {
    readonly accountId: number;
    readonly state: State;
    readonly isDeferred: boolean;
    readonly failureClass: string | null;
    readonly failureCategory: string | null;
  },
): boolean {
  return (
    (accountIds.length === 0 || accountIds.includes(row.accountId)) &&
    (states.length === 0 || states.includes(row.state) || (row.isDeferred && states.includes('deferred'))) &&
    (failureClasses.length === 0 || failureClasses.some((value) => value === row.failureClass)) &&
    (failureCategories.length === 0 || failureCategories.some((value) => value === row.failureCategory))
  );
}

interface Candidate {
  readonly segment: number;
  readonly number: number;
}

const EMPTY_SEGMENT: IndexSegment = { number: 0, first: 0, end: 0, messageCount: 0 };

/** Returns consecutive segments from the index `start`. A segment begins where the next older segment ends. */
function selectConsecutiveSegments(
  segments: readonly IndexSegment[],
  start: number,
  maxCount: number,
): readonly IndexSegment[] {
  const group: IndexSegment[] = [];
  for (const segment of segments.slice(start, start + maxCount)) {
    if (group.length > 0 && segment.end !== group.at(-1)?.first) break;
    group.push(segment);
  }
  return group;
}

/** Returns the first id of a segment. A segment that begins at the least sequence number covers all older ids. */
function getFirstId({ first }: IndexSegment): string {
  return first <= MIN_SEQ ? MIN_ID : getMinIdOfSeq(first);
}

function selectLaterId(a: string, b: string): string {
  return a > b ? a : b;
}

/**
 * Returns the term ranges of the criteria and of the account. A candidate has a term in every range. A message belongs
 * to one account only, so the ranges of several accounts would exclude every message: a search of several accounts has
 * no account range.
 */
function listSearchTermRanges({ criteria, accountIds }: MessageSearch): readonly TermRange[] {
  const textRanges = criteria.flatMap((criterion) => (criterion.kind === 'id' ? [] : listTermRanges(criterion)));
  const [accountId] = accountIds;
  return accountId === undefined || accountIds.length > 1 ? textRanges : [...textRanges, getAccountRange(accountId)];
}

/**
 * Maximum number of pages for one term range. A prefix that spans more pages of a segment has so many terms that the
 * index excludes almost no rows, so the search ignores the range in this segment.
 */
const MAX_PAGES_PER_RANGE = 12;

type Source = Pick<SearchSource<SearchableMessage>, 'readDirectories' | 'readPages'>;

/**
 * The candidates of a segment as row numbers within the segment, newest first. Null if the index cannot exclude rows of
 * the segment.
 */
type Candidates = readonly number[] | null;

/** Returns the candidates of each segment. */
export function* findCandidates(
  source: Source,
  segments: readonly IndexSegment[],
  termRanges: readonly TermRange[],
): Coroutine<readonly Candidates[]> {
  const directories = yield* waitFor(source.readDirectories(segments.map(({ number }) => number)));
  const rangesBySegment = segments.map(({ number }) => {
    const directory = directories.get(number);
    if (directory === undefined) return [];
    return termRanges
      .map((range) => ({ range, pages: listTermPageKeys(number, findPageRange(directory, range)) }))
      .filter(({ pages }) => pages.length <= MAX_PAGES_PER_RANGE);
  });
  const requiredPages = new Set(
    rangesBySegment.flatMap((segmentRanges) => segmentRanges.flatMap(({ pages }) => pages)),
  );
  const pages = yield* waitFor(source.readPages([...requiredPages]));
  return segments.map(({ messageCount }, index) => {
    const segmentRanges = rangesBySegment[index] ?? [];
    if (segmentRanges.length === 0) return null;
    const candidateBits = new Uint8Array(Math.ceil(messageCount / 8)).fill(0xff);
    for (const { range, pages: keys } of segmentRanges) {
      const rangeBits = new Uint8Array(candidateBits.length);
      for (const key of keys) {
        const page = pages.get(key);
        // The segment was replaced during the search.
        if (page === undefined) return null;
        markMatches(page, range, rangeBits);
      }
      for (const [byteIndex, byte] of rangeBits.entries())
        candidateBits[byteIndex] = (candidateBits[byteIndex] ?? 0) & byte;
    }
    return listSetBits(candidateBits);
  });
}

function listTermPageKeys(segment: number, [from, to]: readonly [number, number]): readonly number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, page) => toTermsKey(segment, from + page));
}

/** Returns the positions of all set bits in descending order. */
function listSetBits(bits: Uint8Array): readonly number[] {
  const rowNumbers: number[] = [];
  for (let byteIndex = bits.length - 1; byteIndex >= 0; byteIndex -= 1) {
    const byte = bits[byteIndex] ?? 0;
    for (let bit = 7; byte !== 0 && bit >= 0; bit -= 1) if ((byte >> bit) & 1) rowNumbers.push(byteIndex * 8 + bit);
  }
  return rowNumbers;
}

/** Returns the sequence numbers of the candidates in the order of `candidates`, or null if a segment was removed. */
function* readSeqs(
  source: Source,
  candidates: readonly { readonly segment: number; readonly number: number }[],
): Coroutine<readonly number[] | null> {
  const toPageKey = ({ segment, number }: { segment: number; number: number }) =>
    toSeqsKey(segment, Math.floor(number / SEQS_PER_PAGE));
  const pages = yield* waitFor(source.readPages([...new Set(candidates.map(toPageKey))]));
  const seqsByPage = new Map<number, readonly number[]>();
  for (const [key, page] of pages) seqsByPage.set(key, decodeSeqs(page));
  const seqs: number[] = [];
  for (const candidate of candidates) {
    const seq = seqsByPage.get(toPageKey(candidate))?.[candidate.number % SEQS_PER_PAGE];
    if (seq === undefined) return null;
    seqs.push(seq);
  }
  return seqs;
}
