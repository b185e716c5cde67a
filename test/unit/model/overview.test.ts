/** The failed records of a domain, which the overview shows. */
import { expect, test } from 'vitest';
import type { RecordCheck } from '../../../src/model/domain.ts';
import { parseFailedRecords } from '../../../src/model/overview.ts';

const createCheck = (change: Partial<RecordCheck>): RecordCheck => ({
  purpose: 'dkim',
  type: 'TXT',
  name: 'a._domainkey.example.org',
  value: 'v=DKIM1; k=rsa; p=MIIB',
  found: 'missing',
  seen: [],
  detail: 'missing',
  ...change,
});

test('the record of an Ed25519 key is optional, so a domain without it is complete', () => {
  const ed25519 = createCheck({ name: 'b._domainkey.example.org', value: 'v=DKIM1; k=ed25519; p=11qY' });
  expect(parseFailedRecords(JSON.stringify([ed25519, createCheck({ found: 'found' })]))).toEqual([]);
  expect(parseFailedRecords(JSON.stringify([ed25519, createCheck({})]))).toEqual([
    { purpose: 'dkim', name: 'a._domainkey.example.org' },
  ]);
});
