/** What a store must be able to do for the course of a search. Everything is told the newest first. */
import type { State } from '../../model/state-machine.ts';
import type { Window } from './bounds.ts';
import type { SearchedMail } from './query.ts';
import type { Soon } from './step.ts';

/** What the store itself can tell without looking at words. Null is any. */
export interface Narrow {
  readonly accountId: number | null;
  readonly state: State | null;
}

/** One segment of the index (segment.ts), and the places that it speaks for: from `first` to before `past`. */
export interface SegmentHead {
  readonly number: number;
  readonly first: number;
  readonly past: number;
  readonly mails: number;
}

export interface SearchSource<Mail extends SearchedMail> {
  byId(id: string, narrow: Narrow): Soon<Mail | null>;
  rows(window: Window, narrow: Narrow, limit: number): Soon<readonly Mail[]>;
  /** The id of the `count`th mail request of the window, counted from the newest; null where it has fewer. */
  nth(window: Window, count: number): Soon<string | null>;
  /** Those in one state, by the state's own index; never asked for a state that has none. */
  inState(state: State, window: Window, limit: number): Soon<readonly Mail[]>;
  /** Their number, counted no further than `most`. */
  countInState(state: State, window: Window, most: number): Soon<number>;
  placesInState(state: State, window: Window): Soon<readonly number[]>;
  /** Those that overlap the window. */
  segments(window: Window): Soon<readonly SegmentHead[]>;
  /** The directories of segments; those that are gone are missing. */
  directories(numbers: readonly number[]): Soon<ReadonlyMap<number, readonly string[]>>;
  /** Pages by their keys (`termsKey`, `placesKey`); those that are gone are missing. */
  pages(keys: readonly number[]): Soon<ReadonlyMap<number, Uint8Array>>;
  at(places: readonly number[], narrow: Narrow): Soon<readonly Mail[]>;
}

/** A segment has fewer pages of terms, and fewer pages of places, than half of it. */
const PAGES = 65_536;

/** The key of a segment's page of terms. */
export function termsKey(segment: number, page: number): number {
  return segment * PAGES + page;
}

/** The key of a segment's page of places. */
export function placesKey(segment: number, page: number): number {
  return segment * PAGES + PAGES / 2 + page;
}

/** Keys of all pages of a segment are from the first to before the second. */
export function keysOf(segment: number): readonly [number, number] {
  return [segment * PAGES, (segment + 1) * PAGES];
}
