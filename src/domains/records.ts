/** The DNS records that an operator publishes for a sending domain. Pure. */

import { createPublicKey } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';
import {
  type DkimKey,
  type DnsRecord,
  getDkimRecordName,
  type RecordCheck,
  type SendingDomain,
} from '../model/domain.ts';

export interface SendingSetup {
  /** Null if POSTRIDER_RETURN_PATH_DOMAIN is not set, or if the provider replaces the envelope sender. */
  readonly returnPath: string | null;
  /** The title of the provider that replaces the envelope sender. */
  readonly replacedBy: string | null;
  /** The public name of the feedback listener; null if it is `returnPath`. */
  readonly returnPathHost: string | null;
  /** Null if the relay needs no SPF record. */
  readonly spf: string | null;
  /** For aggregate DMARC reports. */
  readonly reportsTo: string | null;
}

const RETURN_PATH_PRIORITY = 10;

/**
 * In the order of publication. The name of the SPF record is the domain of the envelope sender. Retiring keys are
 * included, because messages in transit have their signatures. A domain with a return path of its own has the records
 * of this one.
 */
export function createRecords(
  domain: Pick<SendingDomain, 'name' | 'keys' | 'returnPath'>,
  setup: SendingSetup,
  provider: readonly DnsRecord[] = [],
): readonly DnsRecord[] {
  const { spf, reportsTo } = setup;
  const returnPath = setup.returnPath === null ? null : (domain.returnPath?.name ?? setup.returnPath);
  const records: DnsRecord[] = domain.keys.map((key) => ({
    purpose: 'dkim',
    type: 'TXT',
    name: getDkimRecordName(domain.name, key.selector),
    value: formatDkimRecord(key),
  }));
  records.push(...provider);
  // SPF applies to the domain of the envelope sender (RFC 7208 section 2.4).
  if (spf !== null) records.push({ purpose: 'spf', type: 'TXT', name: returnPath ?? domain.name, value: spf });
  const reportTag = reportsTo === null ? '' : `; rua=mailto:${encodeMailtoAddress(reportsTo)}`;
  records.push({ purpose: 'dmarc', type: 'TXT', name: `_dmarc.${domain.name}`, value: `v=DMARC1; p=none${reportTag}` });
  if (returnPath !== null) {
    const value = `${RETURN_PATH_PRIORITY} ${setup.returnPathHost ?? setup.returnPath}`;
    records.push({ purpose: 'return-path', type: 'MX', name: returnPath, value });
  }
  return records;
}

/** For a mailto URI in a tag list. */
function encodeMailtoAddress(address: string): string {
  return encodeURIComponent(address).replaceAll('%40', '@');
}

// Parses tag lists (RFC 6376 section 3.2), the syntax of DKIM and DMARC records, in one pass. The functions are pure.

/** Null if the text is no tag list or repeats a tag. Names are case-sensitive. */
export function parseTags(text: string): ReadonlyMap<string, string> | null {
  const tags = new Map<string, string>();
  const tagSpecs = text.split(';');
  for (const [index, tagSpec] of tagSpecs.entries()) {
    const equalsIndex = tagSpec.indexOf('=');
    if (equalsIndex === -1) {
      if (tagSpec.trim() === '' && index === tagSpecs.length - 1) break;
      return null;
    }
    const name = tagSpec.slice(0, equalsIndex).trim();
    if (!/^[a-z][a-z0-9_]*$/i.test(name) || tags.has(name)) return null;
    tags.set(name, tagSpec.slice(equalsIndex + 1).trim());
  }
  return tags;
}

export function listIncludes(value: string, acceptedValues: readonly string[]): boolean {
  return value.split(':').some((item) => acceptedValues.includes(item.trim().toLowerCase()));
}

// DKIM key records (RFC 6376 section 3.6.1). Records with the same tags are equal, regardless of their notation.

export type RecordFinding = Pick<RecordCheck, 'found' | 'detail'>;

export function formatDkimRecord(key: Pick<DkimKey, 'algorithm' | 'publicKey'>): string {
  return `v=DKIM1; k=${key.algorithm}; p=${key.publicKey}`;
}

export function checkDkim(expected: string, observedRecords: readonly string[]): RecordFinding {
  if (observedRecords.length === 0) return { found: 'missing', detail: 'no record; publish it as shown' };
  if (observedRecords.length > 1) {
    // RFC 6376 section 3.6.2.2: with several records the result is undefined.
    return createWrongRecordFinding(
      `${observedRecords.length} records at one selector, so a verifier may use any of them; keep only the record that is shown`,
    );
  }
  const tags = parseTags(observedRecords[0] ?? '');
  const expectedTags = parseTags(expected);
  if (tags === null || expectedTags === null) {
    return createWrongRecordFinding(
      'the record is not a valid tag list, or has a tag twice; publish it as shown, without quotation marks',
    );
  }
  const version = tags.get('v');
  if (version !== undefined && (version !== 'DKIM1' || tags.keys().next().value !== 'v')) {
    return createWrongRecordFinding('the first tag is not v=DKIM1; publish the record as shown');
  }
  const key = removeWhiteSpace(tags.get('p'));
  if (key === null) return createWrongRecordFinding('the record contains no key (p=); publish it as shown');
  if (key === '') return createWrongRecordFinding('the key is revoked (p= is empty); publish the record as shown');
  const type = (tags.get('k') ?? 'rsa').toLowerCase();
  if (type !== (expectedTags.get('k') ?? 'rsa'))
    return createWrongRecordFinding(
      `the key type is k=${type}, expected k=${expectedTags.get('k')}; publish the record as shown`,
    );
  const expectedKey = removeWhiteSpace(expectedTags.get('p')) ?? '';
  if (removePadding(key) !== removePadding(expectedKey) && !(type === 'rsa' && isSameRsaKey(key, expectedKey)))
    return createWrongRecordFinding(describeKeyFault(key, expectedKey));
  if (tags.has('h') && !listIncludes(tags.get('h') ?? '', ['sha256']))
    return createWrongRecordFinding('the tag h= does not allow sha256; remove h=');
  if (tags.has('s') && !listIncludes(tags.get('s') ?? '', ['*', 'email']))
    return createWrongRecordFinding('the tag s= does not include email; remove s=');
  if (listIncludes(tags.get('t') ?? '', ['y'])) {
    return {
      found: 'found',
      detail: 'the record exists, but t=y declares that the domain only tests DKIM; remove t=y',
    };
  }
  return { found: 'found', detail: 'found' };
}

/** The key of RSA-4096 has 736 characters. */
const MAX_DECODED_CHARACTERS = 2_048;

/** RFC 6376 section 3.6.1 specifies PKCS#1, but most records contain a SubjectPublicKeyInfo. */
function isSameRsaKey(key: string, expectedKey: string): boolean {
  if (key.length > MAX_DECODED_CHARACTERS) return false;
  try {
    const publishedKey = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'pkcs1' });
    return publishedKey.export({ format: 'der', type: 'spki' }).toString('base64') === expectedKey;
  } catch {
    return false;
  }
}

function createWrongRecordFinding(detail: string): RecordFinding {
  return { found: 'wrong', detail };
}

function describeKeyFault(key: string, expectedKey: string): string {
  if (expectedKey.startsWith(key)) {
    return `the key is cut off after ${key.length} of ${expectedKey.length} characters; publish the remaining characters in further strings`;
  }
  return `the record contains another key (p=${shortenKey(key)}, expected p=${shortenKey(expectedKey)}); publish it as shown`;
}

function shortenKey(key: string): string {
  return key.length <= 40 ? key : `${key.slice(0, 16)}…${key.slice(-16)}`;
}

/** White space inside p= has no meaning (RFC 6376 section 3.6.1). */
function removeWhiteSpace(value: string | undefined): string | null {
  return value === undefined ? null : value.split(/\s/).join('');
}

function removePadding(base64: string): string {
  let keyEnd = base64.length;
  while (keyEnd > 0 && base64.charCodeAt(keyEnd - 1) === 0x3d) keyEnd -= 1;
  return base64.slice(0, keyEnd);
}

// DMARC policy records (RFC 7489 section 6.3): a name has exactly one valid record.

const POLICIES = ['none', 'quarantine', 'reject'];

/** RFC 7489 section 6.6.3: a record that does not begin with the version is not a DMARC record. */
export function isDmarcRecord(text: string): boolean {
  const trimmedText = text.trimStart();
  const version = trimmedText.slice(0, (trimmedText.indexOf(';') + 1 || trimmedText.length + 1) - 1);
  return version.split(/\s/).join('') === 'v=DMARC1';
}

export function checkDmarc(txtRecords: readonly string[]): RecordFinding {
  const dmarcRecords = txtRecords.filter(isDmarcRecord);
  const [record] = dmarcRecords;
  if (record === undefined) {
    const problem = txtRecords.length > 0 ? 'no record begins with v=DMARC1' : 'no record';
    return { found: txtRecords.length > 0 ? 'wrong' : 'missing', detail: `${problem}; publish it as shown` };
  }
  if (dmarcRecords.length > 1) {
    return {
      found: 'wrong',
      detail: `${dmarcRecords.length} DMARC records, and receivers ignore all of them; publish only one`,
    };
  }
  const tags = parseTags(record);
  if (tags === null)
    return { found: 'wrong', detail: 'the record is not a valid tag list, or has a tag twice; correct it' };
  const policy = tags.get('p')?.toLowerCase();
  if (policy === undefined) return { found: 'wrong', detail: 'the record has no policy (p=); add p=none' };
  if (!POLICIES.includes(policy)) {
    return { found: 'wrong', detail: `the policy is not one of ${POLICIES.join(', ')}; publish p=none, for example` };
  }
  return { found: 'found', detail: 'found' };
}

// SPF records (RFC 7208): a domain has exactly one valid record. The hosts that it authorizes are not checked.

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
    if (/^[a-z][a-z0-9._-]*$/.test(name)) {
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
