/**
 * Collects the findings of the checks of a captured message. Pure.
 *
 * Guarantees: the memory is bounded, because a finding has at most `MAX_PLACES` places and an excerpt at most
 * `MAX_EXCERPT_CHARACTERS` characters.
 */
import { CHECK_CODES, type CheckCode } from './check-texts.ts';

const MAX_PLACES = 10;
const MAX_EXCERPT_CHARACTERS = 160;

export interface CheckPlace {
  readonly part: 'subject' | 'text' | 'html';
  /** The number of the line in the decoded part, from 1. Null for the subject. */
  readonly line: number | null;
  /** The source at this place, converted to one line. Untrusted. */
  readonly excerpt: string;
}

export interface CheckFinding {
  readonly code: CheckCode;
  /** The number of occurrences. */
  readonly count: number;
  /** The first occurrences. Empty if the finding concerns the whole message. */
  readonly places: readonly CheckPlace[];
}

export interface FindingCollector {
  /** Adds an occurrence. `place` is null if the finding concerns the whole message. `add` shortens the excerpt. */
  add(code: CheckCode, place: CheckPlace | null): void;
  /** Returns the findings in the order of `CHECK_CODES`: errors first. */
  list(): readonly CheckFinding[];
}

export function createFindingCollector(): FindingCollector {
  const findings = new Map<CheckCode, { count: number; readonly places: CheckPlace[] }>();
  return {
    add(code, place) {
      const finding = findings.get(code) ?? { count: 0, places: [] };
      findings.set(code, finding);
      finding.count += 1;
      if (place !== null && finding.places.length < MAX_PLACES)
        finding.places.push({ ...place, excerpt: shortenExcerpt(place.excerpt) });
    },
    list: () =>
      CHECK_CODES.flatMap((code) => {
        const finding = findings.get(code);
        return finding === undefined ? [] : [{ code, ...finding }];
      }),
  };
}

/** Converts the source to one line of at most `MAX_EXCERPT_CHARACTERS` characters. */
function shortenExcerpt(source: string): string {
  const line = source
    .slice(0, 2 * MAX_EXCERPT_CHARACTERS)
    .replaceAll(/\s+/g, ' ')
    .trim();
  const shortenedLine = line.length <= MAX_EXCERPT_CHARACTERS ? line : `${line.slice(0, MAX_EXCERPT_CHARACTERS - 1)}…`;
  return shortenedLine.toWellFormed();
}

export interface LineCounter {
  /**
   * Returns the number of the line at the position, from 1. A position must not be less than the position of the
   * previous call.
   */
  getLineNumber(position: number): number;
}

/** Creates a counter of line feeds. Its total time is linear in the length of the text. */
export function createLineCounter(text: string): LineCounter {
  let line = 1;
  let lineFeedIndex = text.indexOf('\n');
  return {
    getLineNumber(position) {
      while (lineFeedIndex !== -1 && lineFeedIndex < position) {
        line += 1;
        lineFeedIndex = text.indexOf('\n', lineFeedIndex + 1);
      }
      return line;
    },
  };
}
