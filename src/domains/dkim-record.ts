/**
 * DKIM key records (RFC 6376 section 3.6.1). Records with the same tags are equal, regardless of their notation. Pure.
 */
import { createPublicKey } from 'node:crypto';
import type { DkimKey, RecordCheck } from '../model/domain.ts';
import { listIncludes, parseTags } from './tag-list.ts';

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
