/**
 * Defines the data source of a search, and runs the coroutines that execute a search. The embedded store answers
 * synchronously in its thread; PostgreSQL answers asynchronously. Therefore a search is a generator that yields each
 * pending promise. Lists of messages and of segments are in order from the newest to the oldest.
 */
import type { FailureCategory, FailureClass } from '../../model/failure.ts';
import type { StateFilter } from '../../model/message.ts';
import { getMinIdAt, toSeq } from '../rules/messages.ts';
import type { MessageSearch, SearchableMessage } from './query.ts';
import { decodeDirectory } from './segment.ts';

/**
 * The conditions that the database checks. A message must have one of the values of each list. An empty list matches
 * every value.
 */
export type RowFilter = Pick<MessageSearch, 'accountIds' | 'states' | 'failureClasses' | 'failureCategories'>;

/**
 * A group of indexes of the database. For each of `values`, one index contains the messages with this value in order of
 * id. Each state except `delivered` has an index. A message has at most one of `values`.
 */
export type RowIndex =
  | { readonly kind: 'state'; readonly values: readonly StateFilter[] }
  | { readonly kind: 'failure-class'; readonly values: readonly FailureClass[] }
  | { readonly kind: 'failure-category'; readonly values: readonly FailureCategory[] };

/** An index segment (segment.ts). It covers sequence numbers from `first` (inclusive) to `end` (exclusive). */
export interface IndexSegment {
  readonly number: number;
  readonly first: number;
  readonly end: number;
  readonly messageCount: number;
}

export interface SearchSource<Message extends SearchableMessage> {
  findById(id: string, filter: RowFilter): MaybePromise<Message | null>;
  readRows(range: IdRange, filter: RowFilter, limit: number): MaybePromise<readonly Message[]>;
  /**
   * Returns the id of the message at position `count` of the range, where the newest message has position 1. Returns
   * null if the range has fewer than `count` messages.
   */
  findNthId(range: IdRange, count: number): MaybePromise<string | null>;
  readIndexedRows(index: RowIndex, range: IdRange, limit: number): MaybePromise<readonly Message[]>;
  /** Counts the messages of the range in an index, up to `maxCount`. */
  countIndexed(index: RowIndex, range: IdRange, maxCount: number): MaybePromise<number>;
  readIndexedSeqs(index: RowIndex, range: IdRange): MaybePromise<readonly number[]>;
  /** Returns the segments that overlap the range. */
  findSegments(range: IdRange): MaybePromise<readonly IndexSegment[]>;
  /** Returns the directories of segments. The result omits removed segments. */
  readDirectories(segmentNumbers: readonly number[]): MaybePromise<ReadonlyMap<number, readonly string[]>>;
  /** Returns pages by their keys (`toTermsKey`, `toSeqsKey`). The result omits pages of removed segments. */
  readPages(keys: readonly number[]): MaybePromise<ReadonlyMap<number, Uint8Array>>;
  findBySeqs(seqs: readonly number[], filter: RowFilter): MaybePromise<readonly Message[]>;
  /**
   * Returns the texts of the last outcomes (`getOutcomeText`) by message id. The result omits messages without an
   * outcome.
   */
  readOutcomeTexts(ids: readonly string[]): MaybePromise<ReadonlyMap<string, string>>;
}

/**
 * Number of page keys of a segment. One half is for pages of terms, the other for pages of sequence numbers. A segment
 * has fewer pages of each kind than half of this number.
 */
const PAGE_KEYS_PER_SEGMENT = 65_536;

/** Returns the key of a page of terms. */
export function toTermsKey(segment: number, page: number): number {
  return segment * PAGE_KEYS_PER_SEGMENT + page;
}

/** Returns the key of a page of sequence numbers. */
export function toSeqsKey(segment: number, page: number): number {
  return segment * PAGE_KEYS_PER_SEGMENT + PAGE_KEYS_PER_SEGMENT / 2 + page;
}

/** Returns the range of the keys of all pages of a segment: the first key (inclusive) and the end (exclusive). */
export function getPageKeyRange(segment: number): readonly [number, number] {
  return [segment * PAGE_KEYS_PER_SEGMENT, (segment + 1) * PAGE_KEYS_PER_SEGMENT];
}

/** Ids from `first` (inclusive) to `end` (exclusive). */
export interface IdRange {
  readonly first: string;
  readonly end: string;
}

/** `MIN_ID` is less than every id, and `AFTER_LAST_ID` is greater than every id. */
export const MIN_ID = '00000000-0000-0000-0000-000000000000';
const AFTER_LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The least sequence number. */
export const MIN_SEQ = toSeq(MIN_ID);

export function toIdRange({ since, until, before }: Pick<MessageSearch, 'since' | 'until' | 'before'>): IdRange {
  const end = until === null ? AFTER_LAST_ID : getMinIdAt(until);
  return {
    first: since === null ? MIN_ID : getMinIdAt(since),
    end: before !== null && before < end ? before : end,
  };
}

/** A coroutine. `yield*` runs a coroutine and returns the result of the coroutine. */
export type Coroutine<T> = Generator<Promise<unknown>, T, unknown>;

/** A value, or a promise that resolves to a value. */
export type MaybePromise<T> = T | Promise<T>;

/** Waits for the value if it is a promise. */
export function* waitFor<T>(value: MaybePromise<T>): Coroutine<T> {
  return value instanceof Promise ? ((yield value) as T) : value;
}

/** Runs a coroutine that yields no promise. Throws if the coroutine yields a promise. */
export function runSync<T>(coroutine: Coroutine<T>): T {
  const step = coroutine.next();
  if (step.done !== true) throw new Error('a synchronous coroutine waited for a promise');
  return step.value;
}

/** Runs a coroutine and awaits each promise that it yields. */
export async function runAsync<T>(coroutine: Coroutine<T>): Promise<T> {
  let step = coroutine.next();
  while (step.done !== true) {
    let value: unknown;
    try {
      value = await step.value;
    } catch (error) {
      step = coroutine.throw(error);
      continue;
    }
    step = coroutine.next(value);
  }
  return step.value;
}

/** Maximum number of cached directories. This number of directories needs about 10 MB of memory. */
const MAX_CACHED_DIRECTORIES = 1_000;

/** A cache of the directories of segments. If the cache is full, the least recently used directory is removed. */
export class DirectoryCache {
  readonly #cache = new Map<number, readonly string[]>();

  /** Returns those of `segmentNumbers` whose directories are not cached. */
  listMissing(segmentNumbers: readonly number[]): readonly number[] {
    return segmentNumbers.filter((number) => !this.#cache.has(number));
  }

  /** Adds the directories in `storedDirectories` to the cache and returns the directories of `segmentNumbers`. */
  update(
    segmentNumbers: readonly number[],
    storedDirectories: readonly (readonly [number, Uint8Array])[],
  ): ReadonlyMap<number, readonly string[]> {
    const decodedDirectories = new Map(
      storedDirectories.map(([number, directory]) => [number, decodeDirectory(directory)]),
    );
    const directories = new Map<number, readonly string[]>();
    for (const number of segmentNumbers) {
      const directory = decodedDirectories.get(number) ?? this.#cache.get(number);
      if (directory === undefined) continue;
      directories.set(number, directory);
      // The entry is moved to the end, because the most recently used entry is the last entry.
      this.#cache.delete(number);
      this.#cache.set(number, directory);
    }
    for (const number of this.#cache.keys()) {
      if (this.#cache.size <= MAX_CACHED_DIRECTORIES) break;
      this.#cache.delete(number);
    }
    return directories;
  }
}
