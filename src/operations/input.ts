/** Reads the input of an operation by its schema, and the values and matches of filters. */
import type { Static, TObject, TSchema } from 'typebox';
import { formatSuggestion, parseTimestamp, quote } from '../config/units.ts';
import { createInvalid, createInvalidTemplate, type ErrorResult, ok, type Result, toMemberResult } from './errors.ts';
import { PARSE, type ParseText } from './schemas.ts';

interface MemberSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  /** 0 if the operation itself checks empty strings. Otherwise, an empty required string counts as missing. */
  readonly minLength?: number;
  readonly default?: unknown;
  readonly description?: string;
  readonly items?: MemberSchema;
  /** The allowed values of a comma-separated list. The operation checks the list. */
  readonly 'x-values'?: readonly string[];
  readonly 'x-multiline'?: boolean;
  readonly errorMessage?: string;
  readonly [PARSE]?: ParseText;
}

export function getInputMembers(schema: TObject): Readonly<Record<string, TSchema & MemberSchema>> {
  return schema.properties as Readonly<Record<string, TSchema & MemberSchema>>;
}

export function isRequired(schema: TObject, name: string): boolean {
  const { required } = schema as { readonly required?: readonly string[] };
  return required?.includes(name) === true && getInputMembers(schema)[name]?.default === undefined;
}

export function readInput<I extends TObject>(
  schema: I,
  rawInput: Readonly<Record<string, unknown>>,
  now = 0,
): Result<Static<I>> {
  const members = getInputMembers(schema);
  const unknownName = Object.keys(rawInput).find((name) => !Object.hasOwn(members, name));
  if (unknownName !== undefined) return createInvalid(null, `Unknown parameter: ${quote(unknownName)}`);
  const input: Record<string, unknown> = {};
  const missingNames: string[] = [];
  for (const [name, member] of Object.entries(members)) {
    let value = rawInput[name];
    if (value === undefined || value === null || (value === '' && member.minLength !== 0 && isRequired(schema, name))) {
      if (member.default === undefined) {
        if (isRequired(schema, name)) missingNames.push(name);
        continue;
      }
      value = member.default;
    }
    const result = readMember(name, member, value, now);
    if (!result.ok) return result;
    input[name] = result.value;
  }
  if (missingNames.length > 0) {
    return createInvalidTemplate(
      missingNames[0] ?? null,
      (getMemberName) => `Missing: ${missingNames.map(getMemberName).join(', ')}`,
    );
  }
  return ok(input as Static<I>);
}

function readMember(name: string, member: MemberSchema, value: unknown, now: number): Result<unknown> {
  switch (member.type) {
    case 'boolean':
      if (typeof value === 'boolean') return ok(value);
      if (value === 'true' || value === 'false') return ok(value === 'true');
      return createInvalidTemplate(name, (getMemberName) => `${getMemberName(name)} must be true or false`);
    case 'integer':
      return readInteger(name, member, value);
    case 'array': {
      const items = Array.isArray(value) ? value : [value];
      const itemResults = items.map((item) => readMember(name, member.items ?? {}, item, now));
      const fault = itemResults.find((result): result is ErrorResult => !result.ok);
      return fault ?? ok(itemResults.map((result) => (result.ok ? result.value : null)));
    }
    case 'string': {
      const text = readString(name, member, value);
      const parse = member[PARSE];
      return text.ok && parse !== undefined ? toMemberResult(name, parse(text.value, now)) : text;
    }
    default:
      throw new Error(`the input member ${name} has a type that no adapter can read: ${member.type}`);
  }
}

function readInteger(
  name: string,
  { minimum = 0, maximum = Number.MAX_SAFE_INTEGER, errorMessage }: MemberSchema,
  value: unknown,
): Result<number> {
  const number = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value;
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= minimum && number <= maximum)
    return ok(number);
  const shownValue = typeof value === 'string' ? quote(value) : typeof value === 'number' ? String(value) : 'the value';
  return createInvalid(name, `${shownValue} ${errorMessage ?? `is not a whole number from ${minimum} to ${maximum}`}`);
}

function readString(name: string, member: MemberSchema, value: unknown): Result<string> {
  // A JSON body may contain a number for a string member that is a count, such as a volume.
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string')
    return createInvalidTemplate(name, (getMemberName) => `${getMemberName(name)} must be a string`);
  if (member.maxLength !== undefined && text.length > member.maxLength)
    return createInvalid(name, `has more than ${member.maxLength} characters`);
  return member.enum === undefined ? ok(text) : readEnumValue(name, text, member.enum);
}

function readEnumValue<Value extends string>(name: string, text: string, allowedValues: readonly Value[]) {
  const value = allowedValues.find((candidate) => candidate === text);
  if (value !== undefined) return ok(value);
  const suggestion = formatSuggestion(text, allowedValues);
  return createInvalid(name, `${quote(text)} is not one of ${allowedValues.join(', ')}${suggestion}`);
}

export function combineResults<T extends Readonly<Record<string, Result<unknown>>>>(
  results: T,
): Result<{ readonly [name in keyof T]: T[name] extends Result<infer Value> ? Value : never }> {
  const fault = Object.values(results).find((result): result is ErrorResult => !result.ok);
  const entries = Object.entries(results).map(([name, result]) => [name, result.ok ? result.value : null]);
  return fault ?? ok(Object.fromEntries(entries));
}

export function splitList(text: string | undefined): readonly string[] {
  const values = (text ?? '').split(',').map((value) => value.trim());
  return [...new Set(values.filter((value) => value !== ''))];
}

export function parseList<const Value extends string>(
  member: string,
  text: string | undefined,
  allowedValues: readonly Value[],
): Result<readonly Value[]> {
  const values: Value[] = [];
  for (const name of splitList(text)) {
    const value = readEnumValue(member, name, allowedValues);
    if (!value.ok) return value;
    values.push(value.value);
  }
  return ok(values);
}

export function parseTime(member: string, text: string | undefined, now: number): Result<number | null> {
  return text === undefined || text === '' ? ok(null) : toMemberResult(member, parseTimestamp(text, now, 'back'));
}

/** The maximum number of rows that one filtered request examines, which bounds the duration of the request. */
export const MAX_EXAMINED_ROWS = 20_000;
const ROWS_PER_READ = 5_000;

interface Matches<Row> {
  readonly rows: readonly Row[];
  /** The last examined row if unexamined rows may follow it; null if all rows were examined. */
  readonly examinedUntil: Row | null;
}

/** `read` returns the rows after the row `after`, or the first rows if `after` is null. */
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
