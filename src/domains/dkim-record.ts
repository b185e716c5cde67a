/**
 * Writes DKIM key records (RFC 6376 section 3.6.1) and compares them with the records in DNS. The comparison uses the meaning
 * of the tags, not their notation. The functions are pure.
 */
import type { DkimKey, RecordCheck } from '../model/domain.ts';
import { listIncludes, parseTags } from './tag-list.ts';

export type RecordFinding = Pick<RecordCheck, 'found' | 'detail'>;

export function dkimRecordValue(key: Pick<DkimKey, 'algorithm' | 'publicKey'>): string {
  return `v=DKIM1; k=${key.algorithm}; p=${key.publicKey}`;
}

/** Compares the records at the name of a selector with the expected value. */
export function compareDkim(expected: string, seen: readonly string[]): RecordFinding {
  if (seen.length === 0) return { found: 'missing', detail: 'no record; publish it as shown' };
  if (seen.length > 1) {
    // RFC 6376 section 3.6.2.2: with several records the result is undefined.
    return wrong(`${seen.length} records at one selector, so a verifier may use any of them; keep only the one shown`);
  }
  const tags = parseTags(seen[0] ?? '');
  const expectedTags = parseTags(expected);
  if (tags === null || expectedTags === null) {
    return wrong('it is not a valid tag list, or has a tag twice; publish it as shown, without quotes around it');
  }
  const version = tags.get('v');
  if (version !== undefined && (version !== 'DKIM1' || tags.keys().next().value !== 'v')) {
    return wrong('v= must be DKIM1 and come first; publish it as shown');
  }
  const key = withoutWhiteSpace(tags.get('p'));
  if (key === null) return wrong('it contains no key (p=); publish it as shown');
  if (key === '') return wrong('its key is revoked (p= is empty); publish it as shown');
  const type = (tags.get('k') ?? 'rsa').toLowerCase();
  if (type !== (expectedTags.get('k') ?? 'rsa'))
    return wrong(`its key type is k=${type}, expected k=${expectedTags.get('k')}; publish it as shown`);
  const expectedKey = withoutWhiteSpace(expectedTags.get('p')) ?? '';
  if (withoutPadding(key) !== withoutPadding(expectedKey)) return wrong(keyFault(key, expectedKey));
  if (tags.has('h') && !listIncludes(tags.get('h') ?? '', ['sha256']))
    return wrong('its h= does not allow sha256; remove h=');
  if (tags.has('s') && !listIncludes(tags.get('s') ?? '', ['*', 'email']))
    return wrong('its s= does not include email; remove s=');
  if (listIncludes(tags.get('t') ?? '', ['y'])) {
    return { found: 'found', detail: 'found, but t=y declares that the domain only tests DKIM; remove t=y' };
  }
  return { found: 'found', detail: 'found' };
}

function wrong(detail: string): RecordFinding {
  return { found: 'wrong', detail };
}

function keyFault(key: string, expected: string): string {
  if (expected.startsWith(key)) {
    return `its key is cut off after ${key.length} of ${expected.length} characters; publish the remaining characters in further strings`;
  }
  return `it contains another key (p=${clipped(key)}, expected p=${clipped(expected)}); publish it as shown`;
}

function clipped(key: string): string {
  return key.length <= 40 ? key : `${key.slice(0, 16)}…${key.slice(-16)}`;
}

/** White space inside p= has no meaning (RFC 6376 section 3.6.1). */
function withoutWhiteSpace(value: string | undefined): string | null {
  return value === undefined ? null : value.split(/\s/).join('');
}

function withoutPadding(base64: string): string {
  let end = base64.length;
  while (end > 0 && base64.charCodeAt(end - 1) === 0x3d) end -= 1;
  return base64.slice(0, end);
}
