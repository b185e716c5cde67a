/**
 * Parses the values of filters that several operations share: lists of values separated by commas, and times.
 * `readMatches` limits the work of a filter that matches few rows of a long list.
 */
import { formatSuggestion } from '../config/nearest.ts';
import { parseTimestamp, quote } from '../config/units.ts';
import { Type } from '../model/schema.ts';
import { createInvalid, ok, type Result } from './errors.ts';

export const createOptionalText = (description: string) => Type.Optional(Type.String({ description }));

/**
 * Creates the schema of a list of values separated by commas. `x-values` are the values that shell completion offers.
 */
export const createOptionalList = (description: string, values: readonly string[]) =>
  Type.Optional(Type.String({ description, 'x-values': [...values] }));

/** Returns the distinct values of a comma-separated list. */
export function splitList(text: string | undefined): readonly string[] {
  const values = (text ?? '').split(',').map((value) => value.trim());
  return [...new Set(values.filter((value) => value !== ''))];
}

/** Parses a list of allowed values. Returns an error for any other value. */
export function parseList<const Value extends string>(
  member: string,
  text: string | undefined,
  allowedValues: readonly Value[],
): Result<readonly Value[]> {
  const values: Value[] = [];
  for (const name of splitList(text)) {
    const value = allowedValues.find((candidate) => candidate === name);
    if (value === undefined)
      return createInvalid(
        member,
        `${quote(name)} is not one of ${allowedValues.join(', ')}${formatSuggestion(name, allowedValues)}`,
      );
    values.push(value);
  }
  return ok(values);
}

/** Parses a date, or a duration that is subtracted from `now`. Returns null for an absent or empty text. */
export function parseTime(member: string, text: string | undefined, now: number): Result<number | null> {
  if (text === undefined || text === '') return ok(null);
  const parsed = parseTimestamp(text, now, 'back');
  return parsed.ok ? ok(parsed.value) : createInvalid(member, parsed.fault);
}

/** The maximum number of rows that one filtered request examines, which bounds the duration of the request. */
export const MAX_EXAMINED_ROWS = 20_000;
const ROWS_PER_READ = 5_000;

export interface Matches<Row> {
  /** The matching rows, at most one more than the page size. */
  readonly rows: readonly Row[];
  /** The last examined row if unexamined rows may follow it; null if all rows were examined. */
  readonly examinedUntil: Row | null;
}

/**
 * Reads rows in the order of the list until one row more than the page size matches, the list ends, or
 * MAX_EXAMINED_ROWS were examined. `read` returns the rows after the row `after`, or the first rows if `after` is null.
 */
export async function readMatches<Row>(
  read: (after: Row | null, limit: number) => Promise<readonly Row[]>,
  matches: (row: Row) => boolean,
  pageSize: number,
): Promise<Matches<Row>> {
  const matchingRows: Row[] = [];
  let lastRow: Row | null = null;
  for (let examinedCount = 0; examinedCount < MAX_EXAMINED_ROWS; examinedCount += ROWS_PER_READ) {
    const rows: readonly Row[] = await read(lastRow, ROWS_PER_READ);
    for (const row of rows) {
      lastRow = row;
      if (!matches(row)) continue;
      matchingRows.push(row);
      if (matchingRows.length > pageSize) return { rows: matchingRows, examinedUntil: row };
    }
    if (rows.length < ROWS_PER_READ) return { rows: matchingRows, examinedUntil: null };
  }
  return { rows: matchingRows, examinedUntil: lastRow };
}
