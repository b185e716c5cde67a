/**
 * What a client submits: decides whether the JSON body of a request is a message, and makes the id of one that is accepted. Pure.
 *
 * Missing fields come first, then types, then content, so that a client reads about its grossest mistake; never throws,
 * whatever JSON holds.
 */
import { type Address, canonicalAddress, parseAddress } from './address.ts';

/** A mail request with nothing wrong in it. */
interface Submitted {
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  readonly toAddress: Address;
  readonly fromAddress: Address;
  /** Key of `to` on the suppression list. */
  readonly recipient: string;
}

type Admission =
  | { readonly kind: 'valid'; readonly mail: Submitted }
  | { readonly kind: 'refused'; readonly refusal: ValidationFault };

/** The order in which every text names the fields. */
export const REQUEST_FIELDS = ['to', 'from', 'subject', 'message'] as const;

/** Bytes of UTF-8 in a subject: the longest line RFC 5322 section 2.1.1 allows. */
const MAX_SUBJECT_BYTES = 998;

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;

/** Judges a parsed body. Reads the four members alone, by name and only where they are the object's own. */
export function validateSubmission(body: unknown): Admission {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return refused({ code: 'invalid-json' });
  const to = member(body, 'to');
  const from = member(body, 'from');
  const subject = member(body, 'subject');
  const message = member(body, 'message');
  if (isMissing(to) || isMissing(from) || isMissing(subject) || isMissing(message)) {
    return refused({ code: 'missing-fields', fields: REQUEST_FIELDS.filter((name) => isMissing(member(body, name))) });
  }
  if (
    typeof to !== 'string' ||
    typeof from !== 'string' ||
    typeof subject !== 'string' ||
    typeof message !== 'string'
  ) {
    const fields = REQUEST_FIELDS.filter((name) => typeof member(body, name) !== 'string');
    return refused({ code: 'not-strings', fields });
  }
  const refusal =
    halfCharacter('to', to) ??
    halfCharacter('from', from) ??
    unsendable('subject', subject) ??
    unsendable('message', message);
  if (refusal !== null) return refused(refusal);
  const toAddress = parseAddress(to);
  const fromAddress = parseAddress(from);
  if (toAddress === null || fromAddress === null) {
    const fields = [...(toAddress === null ? ['to'] : []), ...(fromAddress === null ? ['from'] : [])];
    return refused({ code: 'invalid-address', fields });
  }
  const fault = subjectFault(subject);
  if (fault !== null) return refused({ code: 'invalid-field', field: 'subject', fault });
  const recipient = canonicalAddress(toAddress);
  return { kind: 'valid', mail: { to, from, subject, message, toAddress, fromAddress, recipient } };
}

function refused(refusal: ValidationFault): Admission {
  return { kind: 'refused', refusal };
}

/** An own member, or undefined; what a `__proto__` member brings along is nobody's own. */
function member(body: object, name: (typeof REQUEST_FIELDS)[number]): unknown {
  return Object.hasOwn(body, name) ? (body as Readonly<Record<string, unknown>>)[name] : undefined;
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

/** What subject and message may not hold: mail has no place for a NUL (RFC 5321 section 4.1.2), UTF-8 none for half a character. */
function unsendable(field: string, value: string): ValidationFault | null {
  if (value.includes('\0')) return { code: 'invalid-field', field, fault: 'NUL characters are not allowed' };
  return halfCharacter(field, value);
}

/** A lone surrogate. A field that has a NUL as well is refused for the NUL: an address with one is no address (`parseAddress`). */
function halfCharacter(field: string, value: string): ValidationFault | null {
  if (value.isWellFormed() || value.includes('\0')) return null;
  return { code: 'invalid-field', field, fault: 'unpaired surrogates are not allowed' };
}

/** The first fault of a subject, line breaks before other controls before length, or null. */
function subjectFault(subject: string): string | null {
  let control = false;
  for (let i = 0; i < subject.length; i++) {
    const c = subject.charCodeAt(i);
    if (c < 0x20 || c === 0x7f) {
      if (c === CR || c === LF) return 'line breaks are not allowed';
      if (c !== TAB) control = true;
    }
  }
  if (control) return 'control characters other than a tab are not allowed';
  // A UTF-16 unit is three bytes of UTF-8 at most.
  if (subject.length * 3 > MAX_SUBJECT_BYTES && Buffer.byteLength(subject, 'utf8') > MAX_SUBJECT_BYTES) {
    return `more than ${MAX_SUBJECT_BYTES} bytes in UTF-8 are not allowed`;
  }
  return null;
}

// Why a request is refused, as a code with what its text needs. http/errors.ts gives each its status and text.

export type ValidationFault =
  | { readonly code: 'invalid-json' }
  | { readonly code: 'missing-fields'; readonly fields: readonly string[] }
  | { readonly code: 'not-strings'; readonly fields: readonly string[] }
  /** The field contains characters that are not allowed. `fault` names them: `line breaks are not allowed`. */
  | { readonly code: 'invalid-field'; readonly field: string; readonly fault: string }
  | { readonly code: 'invalid-address'; readonly fields: readonly string[] };

export type ForbiddenReason =
  | 'volume-exhausted'
  | 'volume-expired'
  | 'rate-limit-exceeded'
  | 'sender-not-authenticated';

// Whether the sender of a message needs an authenticated domain.

interface SenderRule {
  readonly transport: { readonly kind: string };
  readonly senders: 'authenticated' | 'any';
}

/** False where every sender is accepted: the operator has set so, or no message leaves the machine. */
export function requiresAuthenticatedSender({ transport, senders }: SenderRule): boolean {
  return senders === 'authenticated' && transport.kind !== 'capture';
}

// Identifiers of mail requests: lower-case UUIDv7 (RFC 9562 section 5.7), strictly increasing within one process and
// after a restart, also when the clock goes back. The first 60 bits (48 of time, 12 of a counter, section 6.2
// method 1) order them; the last 62 are random, so an id cannot be guessed.

const COUNTER_END = 4096;

export interface MessageIdGenerator {
  /** The next id for `now` (milliseconds since the epoch). */
  next(now: number): string;
}

/**
 * Makes ids after `last` (the greatest id the store has seen, or null). `randomUuid` gives a version 4 UUID, whose
 * variant and random bits become the tail.
 */
export function createMessageIdGenerator(last: string | null, randomUuid: () => string): MessageIdGenerator {
  let lastMs = last === null ? 0 : timestampOfId(last);
  let counter = last === null ? 0 : counterOfId(last) + 1;
  let head = '';
  return {
    next(now) {
      if (now > lastMs) {
        lastMs = now;
        counter = 0;
        head = '';
      } else if (counter >= COUNTER_END) {
        lastMs += 1;
        counter = 0;
        head = '';
      }
      if (head === '') {
        const hex = lastMs.toString(16).padStart(12, '0');
        head = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
      }
      const id = head + counter.toString(16).padStart(3, '0') + randomUuid().slice(18);
      counter += 1;
      return id;
    },
  };
}

/** Milliseconds since the epoch held by a UUIDv7. */
export function timestampOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The 12 bits after the version. */
export function counterOfId(id: string): number {
  return Number.parseInt(id.slice(15, 18), 16);
}

/** True for a lower-case UUIDv7; linear, 36 characters at most. */
export function isMessageId(text: string): boolean {
  return text.length === 36 && /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(text);
}
