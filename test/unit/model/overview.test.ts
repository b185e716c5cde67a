import { expect, test } from 'vitest';
import { parseFailedRecords } from '../../../src/model/attention.ts';
import type { RecordCheck } from '../../../src/model/domain.ts';

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

test('the record of an Ed25519 key is optional, so the overview does not show a missing one as failed', () => {
  const ed25519Check = createCheck({ name: 'b._domainkey.example.org', value: 'v=DKIM1; k=ed25519; p=11qY' });
  expect(parseFailedRecords(JSON.stringify([ed25519Check, createCheck({ found: 'found' })]))).toEqual([]);
  expect(parseFailedRecords(JSON.stringify([ed25519Check, createCheck({})]))).toEqual([
    { purpose: 'dkim', name: 'a._domainkey.example.org' },
  ]);
});
