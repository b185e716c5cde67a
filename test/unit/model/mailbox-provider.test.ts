import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findMailboxProvider, MAILBOX_PROVIDERS } from '../../../src/model/mailbox-provider.ts';

const PROVIDER_ENTRIES = Object.entries(MAILBOX_PROVIDERS);
const mx = (exchange: string, priority = 10) => ({ priority, exchange });

const file = new URL('../../corpus/mailbox-providers.tsv', import.meta.url);
const rows = readFileSync(file, 'utf8').trimEnd().split('\n').slice(1);
const SAMPLE_HOSTS = rows.map((row) => row.split('\t') as [code: string, hosts: string]);

test('every provider has sample hosts', () => {
  expect(SAMPLE_HOSTS.map(([code]) => code)).toEqual(Object.keys(MAILBOX_PROVIDERS));
});

test.each(SAMPLE_HOSTS)('the sample hosts of %s belong to this provider, in any case', (code, hosts) => {
  for (const host of hosts.split(' ')) {
    expect(findMailboxProvider([mx(host)])).toBe(code);
    expect(findMailboxProvider([mx(host.toUpperCase())])).toBe(code);
  }
});

test('each suffix belongs to exactly one provider', () => {
  const suffixes = PROVIDER_ENTRIES.flatMap(([, { mxSuffixes }]) => [...mxSuffixes]);
  expect(new Set(suffixes).size).toBe(suffixes.length);
});

test('the MX record with the lowest preference value determines the provider, in any order of the records', () => {
  const records = [mx('backup.mx.example', 20), mx('smtp.google.com', 1), mx('mx01.mail.icloud.com', 5)];
  fc.assert(
    fc.property(fc.shuffledSubarray(records, { minLength: records.length }), (shuffled) => {
      expect(findMailboxProvider(shuffled)).toBe('google');
    }),
  );
});

test.each([
  ['notgoogle.com', 'other'],
  ['google.com.attacker.example', 'other'],
  ['', 'none'],
])('the host %j has the provider %s', (host, code) => {
  expect(findMailboxProvider([mx(host)])).toBe(code);
});
