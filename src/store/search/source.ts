/**
 * What a store must be able to do for a search, and the steps that a search is made of. The embedded store answers a step at once,
 * inside its thread; PostgreSQL answers later. So a search is a generator: it pauses where the answer is still to come.
 * Everything is told the newest first.
 */
import type { State } from '../../model/message.ts';
import { minIdAt, seqOf } from '../rules/messages.ts';
import type { MessageSearch, SearchableMessage } from './query.ts';
import { decodeDirectory } from './segment.ts';

/** What the store itself can tell without looking at words. Null is any. */
export interface RowFilter {
  readonly accountId: number | null;
  readonly state: State | null;
}

/** One segment of the index (segment.ts), and the places that it speaks for: from `first` to before `past`. */
export interface SegmentInfo {
  readonly number: number;
  readonly first: number;
  readonly past: number;
  readonly mails: number;
}

export interface SearchSource<Mail extends SearchableMessage> {
  byId(id: string, narrow: RowFilter): MaybePromise<Mail | null>;
  rows(window: IdRange, narrow: RowFilter, limit: number): MaybePromise<readonly Mail[]>;
  /** The id of the `count`th mail request of the window, counted from the newest; null where it has fewer. */
  nth(window: IdRange, count: number): MaybePromise<string | null>;
  /** Those in one state, by the state's own index; never asked for a state that has none. */
  inState(state: State, window: IdRange, limit: number): MaybePromise<readonly Mail[]>;
  /** Their number, counted no further than `most`. */
  countInState(state: State, window: IdRange, most: number): MaybePromise<number>;
  seqsInState(state: State, window: IdRange): MaybePromise<readonly number[]>;
  /** Those that overlap the window. */
  segments(window: IdRange): MaybePromise<readonly SegmentInfo[]>;
  /** The directories of segments; those that are gone are missing. */
  directories(numbers: readonly number[]): MaybePromise<ReadonlyMap<number, readonly string[]>>;
  /** Pages by their keys (`termsKey`, `seqsKey`); those that are gone are missing. */
  pages(keys: readonly number[]): MaybePromise<ReadonlyMap<number, Uint8Array>>;
  bySeqs(places: readonly number[], narrow: RowFilter): MaybePromise<readonly Mail[]>;
}

/** A segment has fewer pages of terms, and fewer pages of places, than half of it. */
const PAGES = 65_536;

/** The key of a segment's page of terms. */
export function termsKey(segment: number, page: number): number {
  return segment * PAGES + page;
}

/** The key of a segment's page of places. */
export function seqsKey(segment: number, page: number): number {
  return segment * PAGES + PAGES / 2 + page;
}

/** Keys of all pages of a segment are from the first to before the second. */
export function pageKeyRange(segment: number): readonly [number, number] {
  return [segment * PAGES, (segment + 1) * PAGES];
}

/** From `first` to before `past`. */
export interface IdRange {
  readonly first: string;
  readonly past: string;
}

/** Before every id, and past every id. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const PAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The place of the first. */
export const FIRST_SEQ = seqOf(FIRST_ID);

export function idRangeOf({ since, until, before }: Pick<MessageSearch, 'since' | 'until' | 'before'>): IdRange {
  const past = until === null ? PAST_ID : minIdAt(until);
  return {
    first: since === null ? FIRST_ID : minIdAt(since),
    past: before !== null && before < past ? before : past,
  };
}

/** Part of a steps; `yield*` gives its value. */
export type Coroutine<T> = Generator<Promise<unknown>, T, unknown>;

/** What is here at once, or comes later. */
export type MaybePromise<T> = T | Promise<T>;

/** The step of waiting for a value, where it is not here yet. */
export function* resolved<T>(value: MaybePromise<T>): Coroutine<T> {
  return value instanceof Promise ? ((yield value) as T) : value;
}

/** Runs a steps whose steps never wait. */
export function runSync<T>(steps: Coroutine<T>): T {
  const step = steps.next();
  if (step.done !== true) throw new Error('a step of this steps waits');
  return step.value;
}

/** Runs a steps, waiting where it waits. */
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
const MOST_KEPT = 1_000;

export class DirectoryCache {
  readonly #kept = new Map<number, readonly string[]>();

  /** Those of the numbers that are not kept. */
  missing(numbers: readonly number[]): readonly number[] {
    return numbers.filter((number) => !this.#kept.has(number));
  }

  /** The kept ones of the numbers and those just read. */
  update(
    numbers: readonly number[],
    read: readonly (readonly [number, Uint8Array])[],
  ): ReadonlyMap<number, readonly string[]> {
    const fresh = new Map(read.map(([number, directory]) => [number, decodeDirectory(directory)]));
    const all = new Map<number, readonly string[]>();
    for (const number of numbers) {
      const directory = fresh.get(number) ?? this.#kept.get(number);
      if (directory === undefined) continue;
      all.set(number, directory);
      // The last asked for stands last.
      this.#kept.delete(number);
      this.#kept.set(number, directory);
    }
    for (const number of this.#kept.keys()) {
      if (this.#kept.size <= MOST_KEPT) break;
      this.#kept.delete(number);
    }
    return all;
  }
}
