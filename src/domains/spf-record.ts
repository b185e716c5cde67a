/**
 * SPF records (RFC 7208): a domain has exactly one valid record. The hosts that it authorizes are not checked. Pure.
 */
import { isIPv4, isIPv6 } from 'node:net';
import type { RecordFinding } from './dkim-record.ts';

const VERSION = 'v=spf1';
/** Of terms that need a lookup (RFC 7208 section 4.6.4). */
const MAX_LOOKUPS = 10;

/** RFC 7208 section 4.5: the version is followed by a space or by the end of the record. */
export function isSpfRecord(text: string): boolean {
  const prefix = text.slice(0, VERSION.length + 1).toLowerCase();
  return prefix === VERSION || prefix === `${VERSION} `;
}

/** `expected` is the suggested record. */
export function checkSpf(expected: string, txtRecords: readonly string[]): RecordFinding {
  const records = txtRecords.filter(isSpfRecord);
  const [record] = records;
  if (record === undefined) return { found: 'missing', detail: `no SPF record; publish ${expected}` };
  if (records.length > 1) {
    // RFC 7208 section 4.5: several records are an error.
    const detail = `${records.length} SPF records, which is an error; combine them into one`;
    return { found: 'wrong', detail };
  }
  const fault = findSpfFault(record);
  if (fault !== null)
    return { found: 'wrong', detail: `${fault}, which makes the whole record invalid; correct the record` };
  const terms = record.toLowerCase().split(' ');
  const missingTerms = expected
    .toLowerCase()
    .split(' ')
    .filter(
      (term) =>
        term.startsWith('include:') && !terms.some((otherTerm) => otherTerm === term || otherTerm === `+${term}`),
    );
  if (missingTerms.length === 0) return { found: 'found', detail: 'found' };
  return {
    found: 'found',
    detail: `the record exists but does not contain ${missingTerms.join(' ')}, so SPF passes only for the domain of the relay`,
  };
}

export function findSpfFault(record: string): string | null {
  let lookupCount = 0;
  const seenModifiers = new Set<string>();
  for (const term of record.slice(VERSION.length).split(' ')) {
    if (term === '') continue;
    const equalsIndex = term.indexOf('=');
    const name = equalsIndex === -1 ? '' : term.slice(0, equalsIndex).toLowerCase();
    if (equalsIndex !== -1 && isModifier(name)) {
      if (name !== 'redirect' && name !== 'exp') continue;
      if (seenModifiers.has(name)) return `${name}= appears twice`;
      if (equalsIndex === term.length - 1) return `${name}= names no domain`;
      seenModifiers.add(name);
      if (name === 'redirect') lookupCount += 1;
      continue;
    }
    const fault = findMechanismFault(term);
    if (fault !== null) return fault;
    if (needsLookup(term)) lookupCount += 1;
  }
  return lookupCount > MAX_LOOKUPS ? `${lookupCount} terms need a DNS lookup, and the maximum is ${MAX_LOOKUPS}` : null;
}

function isModifier(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const charCode = name.charCodeAt(i);
    const isLetter = charCode >= 0x61 && charCode <= 0x7a;
    const isInnerCharacter =
      (charCode >= 0x30 && charCode <= 0x39) || charCode === 0x2d || charCode === 0x2e || charCode === 0x5f;
    if (!isLetter && !(isInnerCharacter && i > 0)) return false;
  }
  return name !== '';
}

/** Splits `+include:example.com` into `include` and `example.com`. */
function splitTerm(term: string): { readonly kind: string; readonly value: string | null } {
  const termWithoutQualifier = '+-~?'.includes(term.charAt(0)) ? term.slice(1) : term;
  const colonIndex = termWithoutQualifier.indexOf(':');
  const slashIndex = termWithoutQualifier.indexOf('/');
  const kindEnd = colonIndex !== -1 && (slashIndex === -1 || colonIndex < slashIndex) ? colonIndex : slashIndex;
  if (kindEnd === -1) return { kind: termWithoutQualifier.toLowerCase(), value: null };
  return {
    kind: termWithoutQualifier.slice(0, kindEnd).toLowerCase(),
    value: termWithoutQualifier.slice(termWithoutQualifier[kindEnd] === ':' ? kindEnd + 1 : kindEnd),
  };
}

function needsLookup(term: string): boolean {
  return ['include', 'a', 'mx', 'ptr', 'exists'].includes(splitTerm(term).kind);
}

function findMechanismFault(term: string): string | null {
  const { kind, value } = splitTerm(term);
  const shownTerm = term.length > 60 ? `${term.slice(0, 59)}…` : term;
  switch (kind) {
    case 'all':
      return value === null ? null : `"${shownTerm}" does not accept a value`;
    case 'a':
    case 'mx':
    case 'ptr':
      return value === '' ? `"${shownTerm}" names no domain` : null;
    case 'include':
    case 'exists':
      return value === null || value === '' ? `"${shownTerm}" names no domain` : null;
    case 'ip4':
      return isNetwork(value, isIPv4, 32) ? null : `"${shownTerm}" is not an IPv4 network`;
    case 'ip6':
      return isNetwork(value, isIPv6, 128) ? null : `"${shownTerm}" is not an IPv6 network`;
    default:
      return `"${shownTerm}" is not an SPF term`;
  }
}

function isNetwork(value: string | null, isAddress: (text: string) => boolean, maxPrefixLength: number): boolean {
  if (value === null) return false;
  const [address = '', length, ...extraParts] = value.split('/');
  if (!isAddress(address) || extraParts.length > 0) return false;
  if (length === undefined) return true;
  return length !== '' && length.length <= 3 && String(Number(length)) === length && Number(length) <= maxPrefixLength;
}
