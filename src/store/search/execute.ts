/**
 * Executes a search from the newest message to the oldest, until the page is full, all messages are searched or the
 * time limit is reached. The newest messages and those that are not indexed are read row by row; of the others,
 * candidates of the index of terms or of an index of states and failures. Only query.ts decides, so the result is the
 * same without an index.
 */
import type { FailureCategory, FailureClass } from '../../model/failure.ts';
import { STATES, type State, type StateFilter } from '../../model/message.ts';
import { getMinIdAt } from '../rules/messages.ts';
import { type MessageSearch, matchesCriteria, matchesReply, type SearchableMessage } from './query.ts';
import { listTermGroups, type TermGroups } from './terms.ts';

export interface IdRange {
  readonly first: string;
  readonly end: string;
}

/** Checked by the database. An empty list matches every value. */
export type RowFilter = Pick<
  MessageSearch,
  'accountIds' | 'states' | 'failureClasses' | 'failureCategories' | 'routes'
>;

/** An index of the messages with one of `values`, in order of id. Each state except `delivered` has one. */
export type RowIndex =
  | { readonly kind: 'state'; readonly values: readonly StateFilter[] }
  | { readonly kind: 'failure-class'; readonly values: readonly FailureClass[] }
  | { readonly kind: 'failure-category'; readonly values: readonly FailureCategory[] };

/** About 65,536 consecutive messages in the index. The blocks follow each other without a gap. */
export interface IndexBlock extends IdRange {
  readonly number: number;
}

export interface SearchSource<Message extends SearchableMessage> {
  readRows(range: IdRange, filter: RowFilter, limit: number): Promise<readonly Message[]>;
  /** `count` begins at 1. Null if the range has fewer messages. */
  findNthId(range: IdRange, count: number): Promise<string | null>;
  findByIds(ids: readonly string[], filter: RowFilter): Promise<readonly Message[]>;
  readIndexedRows(index: RowIndex, range: IdRange, limit: number): Promise<readonly Message[]>;
  readIndexedIds(index: RowIndex, range: IdRange): Promise<readonly string[]>;
  countIndexed(index: RowIndex, range: IdRange, maxCount: number): Promise<number>;
  listBlocks(): Promise<readonly IndexBlock[]>;
  /** Of messages of the block with a term of each group. */
  findCandidates(block: number, terms: TermGroups, range: IdRange, limit: number): Promise<readonly string[]>;
  /** By message id. Messages without an outcome are omitted. */
  readOutcomeTexts(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

interface SearchOutcome<Message> {
  readonly messages: readonly Message[];
  readonly searchedTo: string | null;
}

/** `MIN_ID` is less than every id, and `AFTER_LAST_ID` is greater than every id. */
export const MIN_ID = '00000000-0000-0000-0000-000000000000';
const AFTER_LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Between two checks of the time limit, in the first batch and in the largest. */
const MIN_BATCH_ROWS = 128;
const MAX_BATCH_ROWS = 2_048;
/** A search of replies reads the history of each row. */
const MAX_REPLY_BATCH_ROWS = 512;
/** If the database itself selects the matching rows, which is much faster. */
const MAX_NATIVE_BATCH_ROWS = 32_768;
/**
 * Read first for each message of the page: a frequent word fills the page from them, faster than finding its
 * candidates.
 */
const NEWEST_ROWS_PER_MESSAGE = 10;
const MAX_NEWEST_ROWS = 1_024;
const MAX_CANDIDATES = 8_192;
/** The most frequent state. It is the only state without an index. */
const STATE_WITHOUT_INDEX: State = 'delivered';
/**
 * Up to the first number, an index of states or failures is read whole; up to the second, its ids are intersected with
 * the candidates.
 */
const MAX_SCANNED_MESSAGES = 4_000;
const MAX_PRELOADED_MESSAGES = 30_000;

/** `searchedTo` is null if all messages have been searched. */
export async function executeSearch<Message extends SearchableMessage>(
  source: SearchSource<Message>,
  search: MessageSearch,
  hasTimedOut: () => boolean,
): Promise<SearchOutcome<Message>> {
  const { criteria, accountIds, limit, reply } = search;
  if (criteria.some((criterion) => criterion.kind === 'recipient-domains' && criterion.domains.size === 0))
    return { messages: [], searchedTo: null };
  const filter = toRowFilter(search);
  const idRange = toIdRange(search);
  const matchingMessages: Message[] = [];

  const id = criteria.find((criterion) => criterion.kind === 'id')?.id;
  if (id !== undefined) {
    if (id >= idRange.first && id < idRange.end) await collect(await source.findByIds([id], filter));
    return { messages: matchingMessages, searchedTo: null };
  }

  const isNative = criteria.length === 0 && reply === null;
  const terms = listTermGroups(search);
  const rowIndexes = listRowIndexes(filter);
  const { rowIndex, count: indexedCount } = await chooseRowIndex();
  const scansRowIndex = rowIndex !== null && (indexedCount === null || indexedCount <= MAX_SCANNED_MESSAGES);
  const isPreloaded = indexedCount !== null && indexedCount <= MAX_PRELOADED_MESSAGES;
  const searchedTo = scansRowIndex || terms.length === 0 ? await scanRange(idRange) : await scanBlocks();
  return { messages: matchingMessages, searchedTo };

  async function chooseRowIndex(): Promise<{ readonly rowIndex: RowIndex | null; readonly count: number | null }> {
    const [firstIndex = null] = rowIndexes;
    if (firstIndex === null || (rowIndexes.length === 1 && terms.length === 0))
      return { rowIndex: firstIndex, count: null };
    let [smallestIndex, smallestCount] = [firstIndex, Number.POSITIVE_INFINITY];
    for (const rowIndex of rowIndexes) {
      const count = await source.countIndexed(rowIndex, idRange, MAX_PRELOADED_MESSAGES + 1);
      if (count < smallestCount) [smallestIndex, smallestCount] = [rowIndex, count];
    }
    return { rowIndex: smallestIndex, count: terms.length === 0 ? null : smallestCount };
  }

  /** Returns the id at which the read stopped, or null at the end of the range. */
  async function scanRange({ first, end: rangeEnd }: IdRange): Promise<string | null> {
    let end = rangeEnd;
    for (
      let batchSize = Math.max(MIN_BATCH_ROWS, limit);
      end > first;
      batchSize = Math.min(batchSize * 4, computeMaxBatchRows())
    ) {
      const batchRange = { first, end };
      let rows: readonly Message[];
      let readEndId: string | null;
      if (scansRowIndex) {
        rows = await source.readIndexedRows(rowIndex, batchRange, batchSize);
        readEndId = rows.length < batchSize ? null : (rows.at(-1)?.id ?? null);
        if (rowIndexes.length > 1 || filter.routes.length > 0 || includesUnindexedState(filter)) {
          const ids = rows.map((message) => message.id);
          rows = await source.findByIds(ids, filter);
        }
      } else {
        readEndId = await source.findNthId(batchRange, batchSize);
        const maxRows = isNative ? limit - matchingMessages.length : batchSize;
        rows = await source.readRows({ first: readEndId ?? first, end }, filter, maxRows);
      }
      const pageEndId = await collect(rows);
      if (pageEndId !== null || readEndId === null) return pageEndId;
      end = readEndId;
      if (hasTimedOut()) return end;
    }
    return null;
  }

  function computeMaxBatchRows(): number {
    if (reply !== null) return MAX_REPLY_BATCH_ROWS;
    return isNative && !scansRowIndex ? MAX_NATIVE_BATCH_ROWS : MAX_BATCH_ROWS;
  }

  /** Returns the id of the last message if the page is full. */
  async function collect(rows: readonly Message[]): Promise<string | null> {
    const candidates = rows.filter(
      (message) =>
        (accountIds.length === 0 || accountIds.includes(message.accountId)) && matchesCriteria(criteria, message),
    );
    const replyTexts =
      reply === null || candidates.length === 0
        ? null
        : await source.readOutcomeTexts(candidates.map((message) => message.id));
    for (const message of candidates) {
      if (reply !== null && !matchesReply(reply, replyTexts?.get(message.id) ?? null)) continue;
      matchingMessages.push(message);
      if (matchingMessages.length >= limit) return message.id;
    }
    return null;
  }

  async function scanBlocks(): Promise<string | null> {
    // The blocks are read first, because a message can be indexed in the meantime.
    const blocks = await source.listBlocks();
    const newestRowCount = Math.min(limit * NEWEST_ROWS_PER_MESSAGE, MAX_NEWEST_ROWS);
    const newestRowsFirst = (await source.findNthId(idRange, newestRowCount)) ?? idRange.first;
    const indexEnd = selectLater(blocks[0]?.end ?? MIN_ID, idRange.first);
    const scannedRange = { first: selectEarlier(newestRowsFirst, indexEnd), end: idRange.end };
    const rowsStoppedAt = await scanRange(scannedRange);
    if (rowsStoppedAt !== null) return rowsStoppedAt;
    let end = scannedRange.first;
    for (const block of blocks) {
      const range = { first: selectLater(block.first, idRange.first), end: selectEarlier(block.end, end) };
      if (range.first >= range.end) continue;
      const stoppedAt = await scanBlock(block.number, range);
      if (stoppedAt !== null) return stoppedAt;
      end = range.first;
      if (end > idRange.first && hasTimedOut()) return end;
    }
    return null;
  }

  async function scanBlock(block: number, { first, end: rangeEnd }: IdRange): Promise<string | null> {
    let indexedIds: ReadonlySet<string> | null = null;
    for (let end = rangeEnd; ; ) {
      const candidates = await source.findCandidates(block, terms, { first, end }, MAX_CANDIDATES);
      if (isPreloaded && rowIndex !== null && indexedIds === null && candidates.length > MIN_BATCH_ROWS)
        indexedIds = new Set(await source.readIndexedIds(rowIndex, { first, end }));
      const ids = indexedIds === null ? candidates : candidates.filter((candidate) => indexedIds?.has(candidate));
      let batchSize = Math.max(MIN_BATCH_ROWS, limit);
      for (let offset = 0; offset < ids.length; ) {
        const batch = ids.slice(offset, offset + batchSize);
        const pageEndId = await collect(await source.findByIds(batch, filter));
        if (pageEndId !== null) return pageEndId;
        if (hasTimedOut()) return batch.at(-1) ?? null;
        offset += batch.length;
        batchSize = Math.min(batchSize * 4, computeMaxBatchRows());
      }
      if (candidates.length < MAX_CANDIDATES) return null;
      end = candidates.at(-1) ?? first;
      if (hasTimedOut()) return end;
    }
  }
}

/** The states that a search of replies reads if it names no state. Each of these states has an index. */
const STATES_WITH_REPLY: readonly StateFilter[] = [
  ...STATES.filter((state) => state !== STATE_WITHOUT_INDEX && state !== 'queued'),
  'deferred',
];

/** A search of replies that names no state reads neither delivered messages nor queued ones without an attempt. */
function toRowFilter({ accountIds, states, reply, ...search }: MessageSearch): RowFilter {
  const selectedStates = reply !== null && states.length === 0 ? STATES_WITH_REPLY : states;
  return {
    accountIds,
    // `queued` includes `deferred`. With both, an index would return these messages twice.
    states: selectedStates.includes('queued') ? selectedStates.filter((state) => state !== 'deferred') : selectedStates,
    failureClasses: search.failureClasses,
    failureCategories: search.failureCategories,
    routes: search.routes,
  };
}

function includesUnindexedState({ states }: RowFilter): boolean {
  return states.includes(STATE_WITHOUT_INDEX);
}

function listRowIndexes(filter: RowFilter): readonly RowIndex[] {
  const { states, failureClasses, failureCategories } = filter;
  const indexes: RowIndex[] = [];
  if (failureCategories.length > 0) indexes.push({ kind: 'failure-category', values: failureCategories });
  if (failureClasses.length > 0) indexes.push({ kind: 'failure-class', values: failureClasses });
  if (states.length > 0 && !includesUnindexedState(filter)) indexes.push({ kind: 'state', values: states });
  return indexes;
}

function toIdRange({ since, until, before }: Pick<MessageSearch, 'since' | 'until' | 'before'>): IdRange {
  const end = until === null ? AFTER_LAST_ID : getMinIdAt(until);
  return {
    first: since === null ? MIN_ID : getMinIdAt(since),
    end: before !== null && before < end ? before : end,
  };
}

export function selectLater(a: string, b: string): string {
  return a > b ? a : b;
}

export function selectEarlier(a: string, b: string): string {
  return a < b ? a : b;
}
