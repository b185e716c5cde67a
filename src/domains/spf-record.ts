/**
 * Checks SPF records (RFC 7208). A domain must have exactly one record, and the record must be valid. The hosts that the record
 * allows are not checked. The functions are pure.
 */
import { isIPv4, isIPv6 } from 'node:net';
import type { RecordFinding } from './dkim-record.ts';

const VERSION = 'v=spf1';
/** RFC 7208 section 4.6.4: maximum number of terms that need a lookup. More terms cause an error. */
const MAX_LOOKUPS = 10;

/** RFC 7208 section 4.5: the version is followed by a space or by the end. */
export function isSpfRecord(text: string): boolean {
  const start = text.slice(0, VERSION.length + 1).toLowerCase();
  return start === VERSION || start === `${VERSION} `;
}

/** Checks the SPF record among the TXT records of a name. `expected` is the suggested record. */
export function checkSpf(expected: string, texts: readonly string[]): RecordFinding {
  const records = texts.filter(isSpfRecord);
  const [record] = records;
  if (record === undefined) return { found: 'missing', detail: `no SPF record; publish ${expected}` };
  if (records.length > 1) {
    // RFC 7208 section 4.5.
    const detail = `${records.length} SPF records, which is an error; combine them into one`;
    return { found: 'wrong', detail };
  }
  const fault = spfFault(record);
  if (fault !== null) return { found: 'wrong', detail: `${fault}, which makes the whole record invalid; correct it` };
  const terms = record.toLowerCase().split(' ');
  const missingTerms = expected
    .toLowerCase()
    .split(' ')
    .filter((term) => term.startsWith('include:') && !terms.some((other) => other === term || other === `+${term}`));
  if (missingTerms.length === 0) return { found: 'found', detail: 'found' };
  return {
    found: 'found',
    detail: `found; without ${missingTerms.join(' ')} SPF passes only for the domain of the relay`,
  };
}

/** Returns the reason for which the record is invalid, or null if it is valid. */
export function spfFault(record: string): string | null {
  let lookups = 0;
  const seenModifiers = new Set<string>();
  for (const term of record.slice(VERSION.length).split(' ')) {
    if (term === '') continue;
    const equals = term.indexOf('=');
    const name = equals === -1 ? '' : term.slice(0, equals).toLowerCase();
    if (equals !== -1 && isModifier(name)) {
      if (name !== 'redirect' && name !== 'exp') continue;
      if (seenModifiers.has(name)) return `${name}= appears twice`;
      if (equals === term.length - 1) return `${name}= names no domain`;
      seenModifiers.add(name);
      if (name === 'redirect') lookups += 1;
      continue;
    }
    const fault = mechanismFault(term);
    if (fault !== null) return fault;
    if (needsLookup(term)) lookups += 1;
  }
  return lookups > MAX_LOOKUPS ? `${lookups} terms need a DNS lookup, and the maximum is ${MAX_LOOKUPS}` : null;
}

function isModifier(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const c = name.charCodeAt(i);
    const letter = c >= 0x61 && c <= 0x7a;
    const inner = (c >= 0x30 && c <= 0x39) || c === 0x2d || c === 0x2e || c === 0x5f;
    if (!letter && !(inner && i > 0)) return false;
  }
  return name !== '';
}

/** `+include:example.com` → `include`, `example.com`. */
function splitTerm(term: string): { readonly kind: string; readonly value: string | null } {
  const unqualified = '+-~?'.includes(term.charAt(0)) ? term.slice(1) : term;
  const colon = unqualified.indexOf(':');
  const slash = unqualified.indexOf('/');
  const end = colon !== -1 && (slash === -1 || colon < slash) ? colon : slash;
  if (end === -1) return { kind: unqualified.toLowerCase(), value: null };
  return {
    kind: unqualified.slice(0, end).toLowerCase(),
    value: unqualified.slice(unqualified[end] === ':' ? end + 1 : end),
  };
}

function needsLookup(term: string): boolean {
  return ['include', 'a', 'mx', 'ptr', 'exists'].includes(splitTerm(term).kind);
}

function mechanismFault(term: string): string | null {
  const { kind, value } = splitTerm(term);
  const shown = term.length > 60 ? `${term.slice(0, 59)}…` : term;
  switch (kind) {
    case 'all':
      return value === null ? null : `"${shown}" does not accept a value`;
    case 'a':
    case 'mx':
    case 'ptr':
      return value === '' ? `"${shown}" names no domain` : null;
    case 'include':
    case 'exists':
      return value === null || value === '' ? `"${shown}" names no domain` : null;
    case 'ip4':
      return isNetwork(value, isIPv4, 32) ? null : `"${shown}" is not an IPv4 network`;
    case 'ip6':
      return isNetwork(value, isIPv6, 128) ? null : `"${shown}" is not an IPv6 network`;
    default:
      return `"${shown}" is not an SPF term`;
  }
}

function isNetwork(value: string | null, isAddress: (text: string) => boolean, bits: number): boolean {
  if (value === null) return false;
  const [address = '', length, ...extraParts] = value.split('/');
  if (!isAddress(address) || extraParts.length > 0) return false;
  if (length === undefined) return true;
  return length !== '' && length.length <= 3 && String(Number(length)) === length && Number(length) <= bits;
}
