/**
 * Segments of the index put to a search: which mail requests of a segment have all terms asked for. What is found here are
 * candidates; the rows themselves decide.
 */

import type { SearchedMail } from './query.ts';
import { decodePlaces, markNumbers, PLACES, pagesOf } from './segment.ts';
import { placesKey, type SearchSource, type SegmentHead, termsKey } from './source.ts';
import { got, type Step } from './step.ts';
import type { TermRange } from './terms.ts';

/**
 * A beginning that stands on more pages of a segment prunes nothing there: so many different terms have it that every few rows
 * one is found.
 */
const MOST_PAGES = 12;

type Source = Pick<SearchSource<SearchedMail>, 'directories' | 'pages'>;

/** Candidates of a segment: the numbers in it, the newest first. Null where the segment cannot tell. */
export type Candidates = readonly number[] | null;

/** The candidates in each of the segments. */
export function* siftSegments(
  source: Source,
  segments: readonly SegmentHead[],
  ranges: readonly TermRange[],
): Step<readonly Candidates[]> {
  const directories = yield* got(source.directories(segments.map(({ number }) => number)));
  const spans = segments.map(({ number }) => {
    const directory = directories.get(number);
    if (directory === undefined) return [];
    return ranges
      .map((range) => ({ range, pages: keysBetween(number, pagesOf(directory, range)) }))
      .filter(({ pages }) => pages.length <= MOST_PAGES);
  });
  const wanted = new Set(spans.flatMap((some) => some.flatMap(({ pages }) => pages)));
  const pages = yield* got(source.pages([...wanted]));
  return segments.map(({ mails }, index) => {
    const some = spans[index] ?? [];
    if (some.length === 0) return null;
    const left = new Uint8Array(Math.ceil(mails / 8)).fill(0xff);
    for (const { range, pages: keys } of some) {
      const bits = new Uint8Array(left.length);
      for (const key of keys) {
        const page = pages.get(key);
        // The segment has just been replaced by another.
        if (page === undefined) return null;
        markNumbers(page, range, bits);
      }
      for (const [at, byte] of bits.entries()) left[at] = (left[at] ?? 0) & byte;
    }
    return numbersIn(left);
  });
}

function keysBetween(segment: number, [from, to]: readonly [number, number]): readonly number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, page) => termsKey(segment, from + page));
}

/** The greatest first. */
function numbersIn(bits: Uint8Array): readonly number[] {
  const numbers: number[] = [];
  for (let at = bits.length - 1; at >= 0; at -= 1) {
    const byte = bits[at] ?? 0;
    for (let bit = 7; byte !== 0 && bit >= 0; bit -= 1) if ((byte >> bit) & 1) numbers.push(at * 8 + bit);
  }
  return numbers;
}

/** The places of numbers in their segments, in the order given; null where a segment is gone. */
export function* placesOf(
  source: Source,
  asked: readonly { readonly segment: number; readonly number: number }[],
): Step<readonly number[] | null> {
  const keyOf = ({ segment, number }: { segment: number; number: number }) =>
    placesKey(segment, Math.floor(number / PLACES));
  const pages = yield* got(source.pages([...new Set(asked.map(keyOf))]));
  const decoded = new Map<number, readonly number[]>();
  for (const [key, page] of pages) decoded.set(key, decodePlaces(page));
  const places: number[] = [];
  for (const one of asked) {
    const place = decoded.get(keyOf(one))?.[one.number % PLACES];
    if (place === undefined) return null;
    places.push(place);
  }
  return places;
}
