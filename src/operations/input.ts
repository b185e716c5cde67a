/**
 * Reads the input of an operation by its schema. Pure. Adapters provide members as strings (command line, path, query)
 * or as JSON values (body). Both forms are converted to the types of the schema. An unknown member is an error.
 */
import type { Static, TObject, TSchema } from 'typebox';
import { formatSuggestion } from '../config/nearest.ts';
import { parseTimestamp, quote } from '../config/units.ts';
import { Type } from '../model/schema.ts';
import { createInvalid, createInvalidTemplate, type ErrorResult, ok, type Result } from './errors.ts';

/** The keywords of JSON Schema that members of inputs use. */
interface MemberSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  /** 0 if the operation itself checks empty strings. Otherwise, an empty required string counts as missing. */
  readonly minLength?: number;
  readonly default?: unknown;
  readonly items?: MemberSchema;
  /** The allowed values of a comma-separated list. The operation checks the list. */
  readonly 'x-values'?: readonly string[];
  /** True for a text of several lines: it may contain line feeds, carriage returns and tabs. */
  readonly 'x-multiline'?: boolean;
  /** The error text of an invalid value, which replaces the general error text (schemas.ts). */
  readonly errorMessage?: string;
}

/** Returns the members of an input schema by name. */
export function getInputMembers(schema: TObject): Readonly<Record<string, TSchema & MemberSchema>> {
  return schema.properties as Readonly<Record<string, TSchema & MemberSchema>>;
}

/** Returns true if the input must contain the member. */
export function isRequired(schema: TObject, name: string): boolean {
  const { required } = schema as { readonly required?: readonly string[] };
  return required?.includes(name) === true && getInputMembers(schema)[name]?.default === undefined;
}

/** Returns the input, completed with default values, or the error of an unknown, invalid or missing member. */
export function readInput<I extends TObject>(
  schema: I,
  rawInput: Readonly<Record<string, unknown>>,
): Result<Static<I>> {
  const members = getInputMembers(schema);
  const unknownName = Object.keys(rawInput).find((name) => !Object.hasOwn(members, name));
  if (unknownName !== undefined) return createInvalid(null, `Unknown parameter: ${quote(unknownName)}`);
  const input: Record<string, unknown> = {};
  const missingNames: string[] = [];
  for (const [name, member] of Object.entries(members)) {
    const value = rawInput[name];
    if (value === undefined || value === null || (value === '' && member.minLength !== 0 && isRequired(schema, name))) {
      if (member.default !== undefined) input[name] = member.default;
      else if (isRequired(schema, name)) missingNames.push(name);
      continue;
    }
    const result = readMember(name, member, value);
    if (!result.ok) return result;
    input[name] = result.value;
  }
  if (missingNames.length > 0) {
    return createInvalidTemplate(
      missingNames[0] ?? null,
      (getMemberName) => `Missing: ${missingNames.map(getMemberName).join(', ')}`,
    );
  }
  // Each value was checked against the schema of its member.
  return ok(input as Static<I>);
}

function readMember(name: string, member: MemberSchema, value: unknown): Result<unknown> {
  switch (member.type) {
    case 'boolean':
      if (typeof value === 'boolean') return ok(value);
      if (value === 'true' || value === 'false') return ok(value === 'true');
      return createInvalidTemplate(name, (getMemberName) => `${getMemberName(name)} must be true or false`);
    case 'integer':
      return readInteger(name, member, value);
    case 'array': {
      const items = Array.isArray(value) ? value : [value];
      const itemResults = items.map((item) => readMember(name, member.items ?? {}, item));
      const fault = itemResults.find((result): result is ErrorResult => !result.ok);
      return fault ?? ok(itemResults.map((result) => (result.ok ? result.value : null)));
    }
    case 'string':
      return readString(name, member, value);
    default:
      throw new Error(`the input member ${name} has a type that no adapter can read: ${member.type}`);
  }
}

function readInteger(
  name: string,
  { minimum = 0, maximum = Number.MAX_SAFE_INTEGER, errorMessage }: MemberSchema,
  value: unknown,
): Result<number> {
  const number = typeof value === 'string' && isDigits(value) ? Number(value) : value;
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= minimum && number <= maximum)
    return ok(number);
  const shownValue = typeof value === 'string' ? quote(value) : typeof value === 'number' ? String(value) : 'the value';
  return createInvalid(name, `${shownValue} ${errorMessage ?? `is not a whole number from ${minimum} to ${maximum}`}`);
}

function isDigits(text: string): boolean {
  if (text === '' || text.length > 16) return false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 48 || code > 57) return false;
  }
  return true;
}

function readString(name: string, member: MemberSchema, value: unknown): Result<string> {
  // A JSON body may contain a number for a string member that is a count, such as a volume.
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string')
    return createInvalidTemplate(name, (getMemberName) => `${getMemberName(name)} must be a string`);
  if (member.maxLength !== undefined && text.length > member.maxLength) {
    return createInvalid(name, `has more than ${member.maxLength} characters`);
  }
  if (member.enum !== undefined && !member.enum.includes(text)) {
    return createInvalid(
      name,
      `${quote(text)} is not one of ${member.enum.join(', ')}${formatSuggestion(text, member.enum)}`,
    );
  }
  return ok(text);
}

/** The maximum length of the name of an account, a key or a token. */
const MAX_NAME_LENGTH = 64;

/**
 * Parses a name, which is visible text. A leading hyphen is refused, because a command would read the name as an
 * option.
 */
export function parseName(field: string, text: string): Result<string> {
  const parsed = parseVisibleText(field, text, MAX_NAME_LENGTH);
  if (parsed.ok && text.startsWith('-')) return createInvalid(field, `${quote(text)} begins with a hyphen`);
  return parsed;
}

/** Parses text of 1 to `maxLength` visible characters without leading or trailing spaces. */
export function parseVisibleText(field: string, text: string, maxLength = MAX_NAME_LENGTH): Result<string> {
  const isValid = text.length >= 1 && text.length <= maxLength && text.trim() === text && !/\p{C}/u.test(text);
  return isValid ? ok(text) : createInvalid(field, `${quote(text)} is not 1 to ${maxLength} visible characters`);
}

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
