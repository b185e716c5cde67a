/** DMARC policy records (RFC 7489 section 6.3): a name has exactly one valid record. Pure. */
import type { RecordFinding } from './dkim-record.ts';
import { parseTags } from './tag-list.ts';

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
