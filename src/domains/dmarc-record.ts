/** DMARC policy records (RFC 7489 section 6.3): whether a name has exactly one, and whether it can be read. Pure. */
import type { RecordFinding } from './dkim-record.ts';
import { parseTags } from './tag-list.ts';

const POLICIES = ['none', 'quarantine', 'reject'];

/** RFC 7489 section 6.6.3: records that do not begin with the version are somebody else's. */
export function isDmarcRecord(text: string): boolean {
  const start = text.trimStart();
  const version = start.slice(0, (start.indexOf(';') + 1 || start.length + 1) - 1);
  return version.split(/\s/).join('') === 'v=DMARC1';
}

/** What the TXT records at `_dmarc` say. Any policy will do; the suggested one is the mildest. */
export function checkDmarc(texts: readonly string[]): RecordFinding {
  const records = texts.filter(isDmarcRecord);
  const [record] = records;
  if (record === undefined) {
    const problem = texts.length > 0 ? 'no record there begins with v=DMARC1' : 'no record';
    return { found: texts.length > 0 ? 'wrong' : 'missing', detail: `${problem}; publish it as shown` };
  }
  if (records.length > 1) {
    return { found: 'wrong', detail: `${records.length} DMARC records, which count as none; leave one` };
  }
  const tags = parseTags(record);
  if (tags === null) return { found: 'wrong', detail: 'it is no list of tags, or has one twice; correct it' };
  const policy = tags.get('p')?.toLowerCase();
  if (policy === undefined) return { found: 'wrong', detail: 'it has no policy (p=); add p=none' };
  if (!POLICIES.includes(policy)) {
    return { found: 'wrong', detail: `its policy is none of ${POLICIES.join(', ')}; give p=none, for one` };
  }
  return { found: 'found', detail: 'found' };
}
