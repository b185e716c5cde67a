/**
 * What a store provides for a search, and the coroutines that a search consists of. The embedded store answers
 * synchronously inside its thread; PostgreSQL answers asynchronously. A search is therefore a generator that pauses
 * where an answer is pending. All lists are newest first.
 */
import type { State } from '../../model/message.ts';
import { minIdAt, seqOf } from '../rules/messages.ts';
import type { MessageSearch, SearchableMessage } from './query.ts';
import { decodeDirectory } from './segment.ts';

/** Conditions that the database itself checks. Null means any. */
export interface RowFilter {
  readonly accountId: number | null;
  readonly state: State | null;
}

/** An index segment (segment.ts). It covers sequence numbers from `first` to before `past`. */
export interface SegmentInfo {
  readonly number: number;
  readonly first: number;
  readonly end: number;
  readonly messageCount: number;
}

export interface SearchSource<Message extends SearchableMessage> {
  byId(id: string, filter: RowFilter): MaybePromise<Message | null>;
  rows(range: IdRange, filter: RowFilter, limit: number): MaybePromise<readonly Message[]>;
  /** The id of the `count`th message of the range, counted from the newest; null if it has fewer. */
  nth(range: IdRange, count: number): MaybePromise<string | null>;
  /** Messages in one state, by the state's own index. Never called for a state without an index. */
  fromState(state: State, range: IdRange, limit: number): MaybePromise<readonly Message[]>;
  /** Their number, counted up to `most`. */
  countInState(state: State, range: IdRange, maxCount: number): MaybePromise<number>;
  seqsInState(state: State, range: IdRange): MaybePromise<readonly number[]>;
  /** Segments that overlap the range. */
  segments(range: IdRange): MaybePromise<readonly SegmentInfo[]>;
  /** Directories of segments. Removed segments are missing from the result. */
  directories(numbers: readonly number[]): MaybePromise<ReadonlyMap<number, readonly string[]>>;
  /** Pages by their keys (`termsKey`, `seqsKey`). Pages of removed segments are missing from the result. */
  pages(keys: readonly number[]): MaybePromise<ReadonlyMap<number, Uint8Array>>;
  bySeqs(seqs: readonly number[], filter: RowFilter): MaybePromise<readonly Message[]>;
}

/** Half of these keys are for pages of terms, half for pages of sequence numbers. A segment needs fewer of either. */
const PAGES_PER_SEGMENT = 65_536;

/** The key of a page of terms. */
export function termsKey(segment: number, page: number): number {
  return segment * PAGES_PER_SEGMENT + page;
}

/** The key of a page of sequence numbers. */
export function seqsKey(segment: number, page: number): number {
  return segment * PAGES_PER_SEGMENT + PAGES_PER_SEGMENT / 2 + page;
}

/** The keys of all pages of a segment: from the first number to before the second. */
export function pageKeyRange(segment: number): readonly [number, number] {
  return [segment * PAGES_PER_SEGMENT, (segment + 1) * PAGES_PER_SEGMENT];
}

/** Ids from `first` to before `past`. */
export interface IdRange {
  readonly first: string;
  readonly end: string;
}

/** Less than every id, and greater than every id. */
export const MIN_ID = '00000000-0000-0000-0000-000000000000';
const AFTER_LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The least sequence number. */
export const MIN_SEQ = seqOf(MIN_ID);

export function idRangeOf({ since, until, before }: Pick<MessageSearch, 'since' | 'until' | 'before'>): IdRange {
  const end = until === null ? AFTER_LAST_ID : minIdAt(until);
  return {
    first: since === null ? MIN_ID : minIdAt(since),
    end: before !== null && before < end ? before : end,
  };
}

/** A part of a coroutine; `yield*` returns its value. */
export type Coroutine<T> = Generator<Promise<unknown>, T, unknown>;

/** A value that is available at once or later. */
export type MaybePromise<T> = T | Promise<T>;

/** Waits for a value if it is pending. */
export function* waitFor<T>(value: MaybePromise<T>): Coroutine<T> {
  return value instanceof Promise ? ((yield value) as T) : value;
}

/** Runs a coroutine that never waits. */
export function runSync<T>(steps: Coroutine<T>): T {
  const step = steps.next();
  if (step.done !== true) throw new Error('a synchronous coroutine waited for a promise');
  return step.value;
}

/** Runs a coroutine and waits where it waits. */
export async function runAsync<T>(steps: Coroutine<T>): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    let value: unknown;
    try {
      value = await step.value;
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next(value);
  }
  return step.value;
}

/** About 10 MB. */
const MAX_CACHED_DIRECTORIES = 1_000;

export class DirectoryCache {
  readonly #cache = new Map<number, readonly string[]>();

  /** The numbers that are not cached. */
  missing(numbers: readonly number[]): readonly number[] {
    return numbers.filter((number) => !this.#cache.has(number));
  }

  /** The cached directories of `numbers`, and those just read, which enter the cache. */
  update(
    numbers: readonly number[],
    read: readonly (readonly [number, Uint8Array])[],
  ): ReadonlyMap<number, readonly string[]> {
    const decoded = new Map(read.map(([number, directory]) => [number, decodeDirectory(directory)]));
    const all = new Map<number, readonly string[]>();
    for (const number of numbers) {
      const directory = decoded.get(number) ?? this.#cache.get(number);
      if (directory === undefined) continue;
      all.set(number, directory);
      // The most recently used entry is last.
      this.#cache.delete(number);
      this.#cache.set(number, directory);
    }
    for (const number of this.#cache.keys()) {
      if (this.#cache.size <= MAX_CACHED_DIRECTORIES) break;
      this.#cache.delete(number);
    }
    return all;
  }
}
