/** Reads untrusted JSON. The functions are pure, never throw, and accept every documented form of a value. */
import { hash } from 'node:crypto';
import { MESSAGE_ID_TAG } from '../model/feedback.ts';
import { isMessageId } from '../model/submission.ts';

export type Json = Readonly<Record<string, unknown>>;

/** The maximum length of a provider's id, in characters. */
const MAX_ID_LENGTH = 256;
/** The length of a message id, in characters. The Message-ID of Postrider contains the message id before the `@`. */
const UUID_LENGTH = 36;
/**
 * The maximum nesting depth of a value whose digest is computed, because `JSON.stringify` is recursive, and of a body
 * that is parsed before it is authenticated, because parsing 1 MiB of `[` takes 0.1 s.
 */
export const MAX_DEPTH = 64;

const UTF_8_DECODER = new TextDecoder('utf-8');

/**
 * Parses UTF-8 JSON. Returns undefined if the bytes are not JSON. A byte order mark is skipped. Bytes that are not
 * UTF-8 become U+FFFD, so that such bytes in one event do not affect the other events of the body. `JSON.parse` is not
 * recursive, so the nesting depth has no limit.
 */
export function parseJson(body: Buffer): unknown {
  return parseJsonText(UTF_8_DECODER.decode(body));
}

const [QUOTE, OPEN_BRACKET, BACKSLASH, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x22, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d];
/** A byte order mark and white space, which may precede a JSON value. */
const LEADING_BYTES: ReadonlySet<number | undefined> = new Set([0xef, 0xbb, 0xbf, 0x20, 0x09, 0x0a, 0x0d]);

/**
 * Returns true if JSON bytes are nested deeper than `MAX_DEPTH`, without parsing them and in linear time. Returns false
 * for a body that does not begin as a JSON object or array, such as a form.
 */
export function isNestedTooDeep(body: Buffer): boolean {
  let index = 0;
  while (LEADING_BYTES.has(body[index])) index += 1;
  if (body[index] !== OPEN_BRACKET && body[index] !== OPEN_BRACE) return false;
  let depth = 0;
  let isInText = false;
  for (; index < body.length; index += 1) {
    const byte = body[index];
    if (isInText) {
      if (byte === BACKSLASH) index += 1;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) isInText = true;
    else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) depth -= 1;
  }
  return false;
}

function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns true if the objects and arrays of a parsed value are nested deeper than `depth`. */
function isDeeperThan(depth: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((member) => isDeeperThan(depth - 1, member));
}

/** Returns the row with this name in the table, or undefined. An inherited name such as `constructor` has no row. */
export function findRow<Row>(table: Readonly<Record<string, Row>>, name: string | null): Row | undefined {
  return name !== null && Object.hasOwn(table, name) ? table[name] : undefined;
}

/** Returns the value if it is an object, otherwise null. */
export function toObject(value: unknown): Json | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;
}

/**
 * Returns the elements of an array, or the value itself as the only element. Returns an empty list for undefined and
 * null.
 */
export function toList(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}

/**
 * Returns the element of an array of one element, otherwise the value itself. Some providers put single values into an
 * array.
 */
export function unwrapSingle(value: unknown): unknown {
  return Array.isArray(value) && value.length === 1 ? value[0] : value;
}

/**
 * Returns the member `name` of `value`, unwrapped by `unwrapSingle`. Returns undefined if `value` is not an object or
 * has no own member with this name.
 */
export function getMember(value: unknown, name: string): unknown {
  const object = toObject(value);
  return object !== null && Object.hasOwn(object, name) ? unwrapSingle(object[name]) : undefined;
}

/**
 * Returns a non-empty text, or null. Numbers are converted to text, because providers write ids and codes both as
 * numbers and as text.
 */
export function toText(wrapped: unknown): string | null {
  const value = unwrapSingle(wrapped);
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Returns a number, or null. Text such as `"605"` is converted to a number. */
export function toNumber(wrapped: unknown): number | null {
  const value = unwrapSingle(wrapped);
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'string' || value.length > 32 || !/^-?\d+(?:\.\d+)?$/.test(value)) return null;
  return Number(value);
}

/** Returns a boolean, or null. The numbers and texts that mean true or false are converted to a boolean. */
export function toBoolean(wrapped: unknown): boolean | null {
  const value = unwrapSingle(wrapped);
  if (typeof value === 'boolean') return value;
  if (value === 1 || value === '1' || value === 'true' || value === 'True') return true;
  if (value === 0 || value === '0' || value === 'false' || value === 'False') return false;
  return null;
}

/**
 * Converts a Unix time in seconds, with or without a fraction, to milliseconds since the epoch. Returns null for
 * any other value.
 */
export function parseUnixSeconds(value: unknown): number | null {
  const seconds = toNumber(value);
  return seconds === null || seconds < 0 || seconds > 1e11 ? null : Math.round(seconds * 1000);
}

/** Returns an id of at most 256 printable ASCII characters, or null. */
export function toId(value: unknown): string | null {
  const text = toText(value);
  return text !== null && text.length <= MAX_ID_LENGTH && /^[!-~]+$/.test(text) ? text : null;
}

/**
 * Returns the id of the Postrider message that the value identifies, or null. The value is the id, the Message-ID of
 * the message, a metadata object with the member `postrider-id`, or such an object as JSON text. If the value is an
 * array, its first element is used.
 */
export function findPostriderId(value: unknown): string | null {
  const [identifier] = toList(value);
  if (typeof identifier !== 'string') return findIdInMetadata(toObject(identifier));
  if (identifier.startsWith('{')) return findIdInMetadata(toObject(parseShortJson(identifier)));
  return toMessageId(identifier) ?? findIdInHeader(identifier);
}

/** Returns the value if it is the id of a Postrider message, otherwise null. */
export function toMessageId(value: unknown): string | null {
  return typeof value === 'string' && isMessageId(value) ? value : null;
}

function findIdInMetadata(metadata: Json | null): string | null {
  return toMessageId(toList(metadata?.[MESSAGE_ID_TAG])[0]);
}

/**
 * Returns the message id in a Message-ID of Postrider, with or without angle brackets. Returns null for any other
 * text.
 */
function findIdInHeader(text: string): string | null {
  const unbracketedText = text.startsWith('<') ? text.slice(1) : text;
  const id = unbracketedText.slice(0, UUID_LENGTH);
  return unbracketedText[UUID_LENGTH] === '@' && isMessageId(id) ? id : null;
}

/**
 * Returns a digest of a parsed JSON value. Two copies of one event have the same digest. Returns null if objects and
 * arrays are nested deeper than 64 levels.
 */
export function computeDigest(value: unknown): string | null {
  return isDeeperThan(MAX_DEPTH, value) ? null : hash('sha256', JSON.stringify(value) ?? '');
}

function parseShortJson(text: string): unknown {
  return text.length > 4_096 ? undefined : parseJsonText(text);
}

const MAX_FORM_FIELDS = 1_000;
const AMPERSAND = 0x26;

/** The fields of a form in the order of the body. Several fields can have the same name. */
export type FormFields = readonly (readonly [name: string, value: string])[];

/**
 * Parses a body of the type `application/x-www-form-urlencoded` (URL Standard, section 5.1). Bytes that are not UTF-8
 * become U+FFFD. Returns null if the body has more than 1,000 fields. Reading a body of 10 MB takes about 50 ms.
 */
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
