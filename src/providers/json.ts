/** Reads untrusted JSON. The functions are pure, never throw, and accept every documented form of a value. */
import { createHash } from 'node:crypto';
import { MESSAGE_ID_TAG } from '../model/feedback.ts';
import { isMessageId } from '../model/submission.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Maximum length of an id of a provider. */
const MAX_ID_LENGTH = 256;
/** The Message-ID of Postrider contains the id of the message before the `@`. */
const UUID_LENGTH = 36;
/** Maximum nesting of objects and arrays. JSON.stringify is recursive and fails at a greater depth. */
const MAX_DEPTH = 64;

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Parses UTF-8 JSON. Returns undefined if the bytes are not UTF-8 or not JSON, or are nested deeper than 64 levels. A byte
 * order mark is skipped.
 */
export function parseJson(body: Buffer): unknown {
  if (isDeeperThan(MAX_DEPTH, body)) return undefined;
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

/** Returns true if the text nests objects and arrays deeper than `depth`. Brackets inside strings do not count. */
function isDeeperThan(depth: number, json: Buffer): boolean {
  let open = 0;
  let inString = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (inString) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inString = false;
    } else if (byte === QUOTE) inString = true;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      if (++open > depth) return true;
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) open--;
  }
  return false;
}

/** Returns the row of a table. A name such as `constructor` that the table does not contain itself has no row. */
export function rowOf<Row>(table: Readonly<Record<string, Row>>, name: string | null): Row | undefined {
  return name !== null && Object.hasOwn(table, name) ? table[name] : undefined;
}

/** Returns the value if it is an object, otherwise null. */
export function toObject(value: unknown): Json | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null;
}

/** Returns the elements of an array, or the value itself as the only element. Undefined and null give no element. */
export function toList(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}

/** Returns a text that is not empty. Numbers are converted, because providers write ids and codes in both forms. */
export function toText(value: unknown): string | null {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Returns a number, also from a text such as `"605"`. Returns null for another value. */
export function toNumber(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'string' || value.length > 32 || !/^-?\d+(?:\.\d+)?$/.test(value)) return null;
  return Number(value);
}

/** Returns a boolean, also from the texts and numbers that stand for one. Returns null for another value. */
export function toBoolean(value: unknown): boolean | null {
  if (typeof value === 'boolean') return value;
  if (value === 1 || value === '1' || value === 'true' || value === 'True') return true;
  if (value === 0 || value === '0' || value === 'false' || value === 'False') return false;
  return null;
}

/** Returns the time in milliseconds since the epoch of an ISO 8601 text with a time zone, or null. */
export function timeOfIsoText(value: unknown): number | null {
  if (typeof value !== 'string' || value.length > 40 || !/^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:?\d\d)$/.test(value))
    return null;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : at;
}

/** Returns the time in milliseconds since the epoch of a Unix time in seconds, which may have a fraction. */
export function timeOfUnixSeconds(value: unknown): number | null {
  const seconds = toNumber(value);
  return seconds === null || seconds < 0 || seconds > 1e11 ? null : Math.round(seconds * 1000);
}

/** Returns an id of at most 256 printable ASCII characters, or null. */
export function toId(value: unknown): string | null {
  const text = toText(value);
  return text !== null && text.length <= MAX_ID_LENGTH && /^[!-~]+$/.test(text) ? text : null;
}

/**
 * Returns the message id in a metadata object with the member `postrider-id`. Providers return the metadata as an object,
 * as an object in JSON text, or as an array of one of these. Returns null if there is no valid id.
 */
export function messageIdOfMetadata(metadata: unknown): string | null {
  const found = toObject(typeof metadata === 'string' ? parseShortJson(metadata) : toList(metadata)[0]);
  return toMessageId(toList(found?.[MESSAGE_ID_TAG])[0]);
}

/** Returns the id of a message of Postrider, or null for another value. */
export function toMessageId(value: unknown): string | null {
  return typeof value === 'string' && isMessageId(value) ? value : null;
}

/** Returns the message id in a Message-ID of Postrider, with or without angle brackets; otherwise null. */
export function messageIdOfHeader(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const bare = value.startsWith('<') ? value.slice(1) : value;
  const id = bare.slice(0, UUID_LENGTH);
  return bare[UUID_LENGTH] === '@' && isMessageId(id) ? id : null;
}

/** Returns a digest of a parsed JSON value. Two copies of one event have the same digest. */
export function digestOf(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(value) ?? '')
    .digest('hex');
}

function parseShortJson(text: string): unknown {
  return text.length > 4_096 ? undefined : parseJson(Buffer.from(text));
}
