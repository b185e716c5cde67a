/**
 * Admission: decides whether the JSON body of a request is a mail request. Pure. Missing fields come first, then
 * types, then content, so that a client reads about its grossest mistake; never throws, whatever JSON holds.
 */
import { type Address, canonicalAddress, parseAddress } from './address.ts';
import type { Refusal } from './refusal.ts';

/** A mail request with nothing wrong in it. */
export interface Submitted {
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  readonly toAddress: Address;
  readonly fromAddress: Address;
  /** Key of `to` on the suppression list. */
  readonly recipient: string;
}

export type Admission =
  | { readonly kind: 'valid'; readonly mail: Submitted }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** The order in which every text names the fields. */
export const FIELDS = ['to', 'from', 'subject', 'message'] as const;

/** Bytes of UTF-8 in a subject: the longest line RFC 5322 section 2.1.1 allows. */
export const MAX_SUBJECT_BYTES = 998;

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;

/** Judges a parsed body. Reads the four members alone, by name and only where they are the object's own. */
export function admit(body: unknown): Admission {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return refused({ code: 'invalid-json' });
  const to = member(body, 'to');
  const from = member(body, 'from');
  const subject = member(body, 'subject');
  const message = member(body, 'message');
  if (isMissing(to) || isMissing(from) || isMissing(subject) || isMissing(message)) {
    return refused({ code: 'missing-fields', fields: FIELDS.filter((name) => isMissing(member(body, name))) });
  }
  if (
    typeof to !== 'string' ||
    typeof from !== 'string' ||
    typeof subject !== 'string' ||
    typeof message !== 'string'
  ) {
    const fields = FIELDS.filter((name) => typeof member(body, name) !== 'string');
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

function refused(refusal: Refusal): Admission {
  return { kind: 'refused', refusal };
}

/** An own member, or undefined; what a `__proto__` member brings along is nobody's own. */
function member(body: object, name: (typeof FIELDS)[number]): unknown {
  return Object.hasOwn(body, name) ? (body as Readonly<Record<string, unknown>>)[name] : undefined;
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

/** What subject and message may not hold: mail has no place for a NUL (RFC 5321 section 4.1.2), UTF-8 none for half a character. */
function unsendable(field: string, value: string): Refusal | null {
  if (value.includes('\0')) return { code: 'invalid-field', field, fault: 'NUL characters are not allowed' };
  return halfCharacter(field, value);
}

/** A lone surrogate. A field that has a NUL as well is refused for the NUL: an address with one is no address (`parseAddress`). */
function halfCharacter(field: string, value: string): Refusal | null {
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
