/**
 * Validates the JSON body of a request: missing fields first, then wrong types, then invalid content. Generates the ids
 * of messages. Pure, and never throws.
 */
import { type Address, parseAddress, parseSenderAddress, toCanonicalAddress } from './address.ts';

export interface ValidSubmission {
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  readonly toAddress: Address;
  readonly fromAddress: Address;
  /** The key of the suppression list. */
  readonly recipient: string;
}

type ValidationResult =
  | { readonly kind: 'valid'; readonly submission: ValidSubmission }
  | { readonly kind: 'refused'; readonly refusal: ValidationFault };

/** In the order of error messages. */
export const REQUEST_FIELDS = ['to', 'from', 'subject', 'message'] as const;

/** UTF-8, the maximum length of a line (RFC 5322 section 2.1.1). */
const MAX_SUBJECT_BYTES = 998;

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;

/** Inherited members are ignored. */
export function validateSubmission(body: unknown): ValidationResult {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return createRefusal({ code: 'invalid-json' });
  const to = getOwnMember(body, 'to');
  const from = getOwnMember(body, 'from');
  const subject = getOwnMember(body, 'subject');
  const message = getOwnMember(body, 'message');
  if (isMissing(to) || isMissing(from) || isMissing(subject) || isMissing(message)) {
    return createRefusal({
      code: 'missing-fields',
      fields: REQUEST_FIELDS.filter((name) => isMissing(getOwnMember(body, name))),
    });
  }
  if (
    typeof to !== 'string' ||
    typeof from !== 'string' ||
    typeof subject !== 'string' ||
    typeof message !== 'string'
  ) {
    const fields = REQUEST_FIELDS.filter((name) => typeof getOwnMember(body, name) !== 'string');
    return createRefusal({ code: 'not-strings', fields });
  }
  const refusal =
    findUnpairedSurrogate('to', to) ??
    findUnpairedSurrogate('from', from) ??
    findForbiddenCharacter('subject', subject) ??
    findForbiddenCharacter('message', message);
  if (refusal !== null) return createRefusal(refusal);
  const toAddress = parseAddress(to);
  const fromAddress = parseSenderAddress(from);
  if (toAddress === null || fromAddress === null) {
    const fields = [...(toAddress === null ? ['to'] : []), ...(fromAddress === null ? ['from'] : [])];
    return createRefusal({ code: 'invalid-address', fields });
  }
  const fault = findSubjectFault(subject);
  if (fault !== null) return createRefusal({ code: 'invalid-field', field: 'subject', fault });
  const recipient = toCanonicalAddress(toAddress);
  return { kind: 'valid', submission: { to, from, subject, message, toAddress, fromAddress, recipient } };
}

function createRefusal(refusal: ValidationFault): ValidationResult {
  return { kind: 'refused', refusal };
}

/** Inherited members are ignored. */
function getOwnMember(body: object, name: (typeof REQUEST_FIELDS)[number]): unknown {
  return Object.hasOwn(body, name) ? (body as Readonly<Record<string, unknown>>)[name] : undefined;
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

/** NUL (RFC 5321 section 4.1.2), and unpaired surrogates, which UTF-8 cannot encode. */
function findForbiddenCharacter(field: string, value: string): ValidationFault | null {
  if (value.includes('\0')) return { code: 'invalid-field', field, fault: 'NUL characters are not allowed' };
  return findUnpairedSurrogate(field, value);
}

/** Null if there is also a NUL, which a later check refuses. */
function findUnpairedSurrogate(field: string, value: string): ValidationFault | null {
  if (value.isWellFormed() || value.includes('\0')) return null;
  return { code: 'invalid-field', field, fault: 'unpaired surrogates are not allowed' };
}

/** Line breaks are reported first, then other control characters, then the length. */
function findSubjectFault(subject: string): string | null {
  let hasControlCharacter = false;
  for (let i = 0; i < subject.length; i++) {
    const codeUnit = subject.charCodeAt(i);
    if (codeUnit < 0x20 || codeUnit === 0x7f) {
      if (codeUnit === CR || codeUnit === LF) return 'line breaks are not allowed';
      if (codeUnit !== TAB) hasControlCharacter = true;
    }
  }
  if (hasControlCharacter) return 'control characters other than a tab are not allowed';
  // A UTF-16 code unit takes at most three bytes in UTF-8.
  if (subject.length * 3 > MAX_SUBJECT_BYTES && Buffer.byteLength(subject, 'utf8') > MAX_SUBJECT_BYTES) {
    return `more than ${MAX_SUBJECT_BYTES} bytes in UTF-8 are not allowed`;
  }
  return null;
}

// http/errors.ts defines the status and the text of each code.

export type ValidationFault =
  | { readonly code: 'invalid-json' }
  | { readonly code: 'missing-fields'; readonly fields: readonly string[] }
  | { readonly code: 'not-strings'; readonly fields: readonly string[] }
  | { readonly code: 'invalid-field'; readonly field: string; readonly fault: string }
  | { readonly code: 'invalid-address'; readonly fields: readonly string[] };

export type ForbiddenReason =
  | 'volume-exhausted'
  | 'volume-expired'
  | 'rate-limit-exceeded'
  | 'sender-not-authenticated';

interface SenderRule {
  readonly routes: readonly { readonly transport: { readonly kind: string } }[];
  readonly senders: 'authenticated' | 'any';
}

export function requiresAuthenticatedSender({ routes, senders }: SenderRule): boolean {
  return senders === 'authenticated' && !isCaptureOnly(routes);
}

/** `capture:` sends no message. */
export function isCaptureOnly(routes: SenderRule['routes']): boolean {
  return routes.every(({ transport }) => transport.kind === 'capture');
}

// Ids are lower-case UUIDv7 (RFC 9562 section 5.7) and increase strictly on a node, also after a restart and after the
// clock is set back: 48 bits of time and a counter of 12 bits (section 6.2 method 1). The last 62 bits are random, so
// an id cannot be guessed.

const COUNTER_LIMIT = 4096;

export interface MessageIdGenerator {
  next(now: number): string;
}

/** `lastId`: the greatest stored id. `randomUuid` returns a version 4 UUID, whose end becomes the end of the id. */
export function createMessageIdGenerator(lastId: string | null, randomUuid: () => string): MessageIdGenerator {
  let lastMs = lastId === null ? 0 : getIdTimestamp(lastId);
  let counter = lastId === null ? 0 : getIdCounter(lastId) + 1;
  let idPrefix = '';
  return {
    next(now) {
      if (now > lastMs) {
        lastMs = now;
        counter = 0;
        idPrefix = '';
      } else if (counter >= COUNTER_LIMIT) {
        lastMs += 1;
        counter = 0;
        idPrefix = '';
      }
      if (idPrefix === '') {
        const hex = lastMs.toString(16).padStart(12, '0');
        idPrefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
      }
      const id = idPrefix + counter.toString(16).padStart(3, '0') + randomUuid().slice(18);
      counter += 1;
      return id;
    },
  };
}

/** Of a resend: the upper half of the counter, which is used only after 2048 ids in one millisecond. */
export function createOperatorMessageId(now: number, random: (bytes: number) => Uint8Array): string {
  const bytes = Buffer.from(random(10));
  const time = now.toString(16).padStart(12, '0');
  const counter = (0x800 | (bytes.readUInt16BE(0) & 0x7ff)).toString(16);
  const variant = (0x8000 | (bytes.readUInt16BE(2) & 0x3fff)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-${variant}-${bytes.toString('hex', 4, 10)}`;
}

export function getIdTimestamp(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

export function getIdCounter(id: string): number {
  return Number.parseInt(id.slice(15, 18), 16);
}

/** The length is checked first, because the text may be long. */
export function isMessageId(text: string): boolean {
  return text.length === 36 && /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(text);
}

// The text form of the UUIDs of messages and of webhook deliveries (RFC 9562 section 4).

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Returns true for a UUID in lower case. */
export function isUuid(text: string): boolean {
  return UUID_PATTERN.test(text);
}
