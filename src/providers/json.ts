/** Reads untrusted JSON in every documented form of a value. Never throws. */
import { hash } from 'node:crypto';
import { MESSAGE_ID_TAG } from '../model/feedback.ts';
import { isMessageId } from '../model/submission.ts';

export type Json = Readonly<Record<string, unknown>>;

const MAX_ID_LENGTH = 256;
/** The Message-ID of Postrider contains the message id before the `@`. */
const UUID_LENGTH = 36;
/** `JSON.stringify` is recursive, and parsing 1 MiB of `[` before a body is authenticated takes 0.1 s. */
export const MAX_DEPTH = 64;

const UTF_8_DECODER = new TextDecoder('utf-8');

/** Undefined if not JSON. Invalid UTF-8 becomes U+FFFD, so that one event does not affect the others. */
export function parseJson(body: Buffer): unknown {
  return parseJsonText(UTF_8_DECODER.decode(body));
}

const [QUOTE, OPEN_BRACKET, BACKSLASH, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x22, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d];
const LEADING_BYTES: ReadonlySet<number | undefined> = new Set([0xef, 0xbb, 0xbf, 0x20, 0x09, 0x0a, 0x0d]);

/** In linear time, without parsing. False for a body that is not a JSON object or array, such as a form. */
export function isNestedTooDeep(body: Buffer): boolean {
  let index = 0;
  while (LEADING_BYTES.has(body[index])) index += 1;
  if (body[index] !== OPEN_BRACKET && body[index] !== OPEN_BRACE) return false;
  let depth = 0;
  for (; index < body.length; index += 1) {
    const byte = body[index];
    if (byte === QUOTE) index = findTextEnd(body, index + 1);
    else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) depth -= 1;
  }
  return false;
}

/** The index of the closing quotation mark. The search is native, for long texts. */
export function findTextEnd(body: Buffer, start: number): number {
  for (let end = body.indexOf(QUOTE, start); end >= 0; end = body.indexOf(QUOTE, end + 1)) {
    let first = end;
    while (body[first - 1] === BACKSLASH) first -= 1;
    if ((end - first) % 2 === 0) return end;
  }
  return body.length;
}

function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isDeeperThan(depth: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((member) => isDeeperThan(depth - 1, member));
}

/** An inherited name such as `constructor` has no row. */
export function findRow<Row>(table: Readonly<Record<string, Row>>, name: string | null): Row | undefined {
  return name !== null && Object.hasOwn(table, name) ? table[name] : undefined;
}

export function toObject(value: unknown): Json | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;
}

export function toList(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}

/** Some providers put single values into an array. */
export function unwrapSingle(value: unknown): unknown {
  return Array.isArray(value) && value.length === 1 ? value[0] : value;
}

/** Unwrapped. Inherited members are none. */
export function getMember(value: unknown, name: string): unknown {
  const object = toObject(value);
  return object !== null && Object.hasOwn(object, name) ? unwrapSingle(object[name]) : undefined;
}

/** Not empty. Providers write ids and codes both as numbers and as text. */
export function toText(wrapped: unknown): string | null {
  const value = unwrapSingle(wrapped);
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Text such as `"605"` is a number too. */
export function toNumber(wrapped: unknown): number | null {
  const value = unwrapSingle(wrapped);
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'string' || value.length > 32 || !/^-?\d+(?:\.\d+)?$/.test(value)) return null;
  return Number(value);
}

export function toBoolean(wrapped: unknown): boolean | null {
  const value = unwrapSingle(wrapped);
  if (typeof value === 'boolean') return value;
  if (value === 1 || value === '1' || value === 'true' || value === 'True') return true;
  if (value === 0 || value === '0' || value === 'false' || value === 'False') return false;
  return null;
}

/** Of a time with or without a fraction. Returns milliseconds since the epoch. */
export function parseUnixSeconds(value: unknown): number | null {
  const seconds = toNumber(value);
  return seconds === null || seconds < 0 || seconds > 1e11 ? null : Math.round(seconds * 1000);
}

/** At most 256 printable ASCII characters. */
export function toId(value: unknown): string | null {
  const text = toText(value);
  return text !== null && text.length <= MAX_ID_LENGTH && /^[!-~]+$/.test(text) ? text : null;
}

/** An id, a Message-ID, an object with `postrider-id`, or one as JSON text. Of an array, the first counts. */
export function findPostriderId(value: unknown): string | null {
  const [identifier] = toList(value);
  if (typeof identifier !== 'string') return findIdInMetadata(toObject(identifier));
  if (identifier.startsWith('{')) return findIdInMetadata(toObject(parseShortJson(identifier)));
  return toMessageId(identifier) ?? findIdInHeader(identifier);
}

export function toMessageId(value: unknown): string | null {
  return typeof value === 'string' && isMessageId(value) ? value : null;
}

function findIdInMetadata(metadata: Json | null): string | null {
  return toMessageId(toList(metadata?.[MESSAGE_ID_TAG])[0]);
}

function findIdInHeader(text: string): string | null {
  const unbracketedText = text.startsWith('<') ? text.slice(1) : text;
  const id = unbracketedText.slice(0, UUID_LENGTH);
  return unbracketedText[UUID_LENGTH] === '@' && isMessageId(id) ? id : null;
}

/** Equal for two copies of one event. Null if it is nested deeper than `MAX_DEPTH`. */
export function computeDigest(value: unknown): string | null {
  return isDeeperThan(MAX_DEPTH, value) ? null : hash('sha256', JSON.stringify(value) ?? '');
}

function parseShortJson(text: string): unknown {
  return text.length > 4_096 ? undefined : parseJsonText(text);
}

const MAX_FORM_FIELDS = 1_000;
const AMPERSAND = 0x26;

export type FormFields = readonly (readonly [name: string, value: string])[];

/** URL Standard section 5.1. Null above 1,000 fields. Reading 10 MB takes about 50 ms. */
export function parseForm(body: Buffer): FormFields | null {
  let separatorCount = 0;
  for (
    let index = body.indexOf(AMPERSAND);
    index >= 0 && separatorCount < MAX_FORM_FIELDS;
    index = body.indexOf(AMPERSAND, index + 1)
  )
    separatorCount += 1;
  return separatorCount >= MAX_FORM_FIELDS ? null : [...new URLSearchParams(body.toString('utf8'))];
}
