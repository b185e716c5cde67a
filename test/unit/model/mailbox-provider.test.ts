import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findMailboxProvider, MAILBOX_PROVIDERS } from '../../../src/model/mailbox-provider.ts';

const PROVIDER_ENTRIES = Object.entries(MAILBOX_PROVIDERS);
const mx = (exchange: string, priority = 10) => ({ priority, exchange });

test.each(PROVIDER_ENTRIES)(
  'every sample host of %s belongs to this provider, in lower and upper case',
  (code, { sampleHosts }) => {
    for (const host of sampleHosts) {
      expect(findMailboxProvider([mx(host)])).toBe(code);
      expect(findMailboxProvider([mx(host.toUpperCase())])).toBe(code);
    }
  },
);

test('each suffix belongs to exactly one provider, and each provider has a name and a sample host', () => {
  const suffixes = PROVIDER_ENTRIES.flatMap(([, { mxSuffixes }]) => [...mxSuffixes]);
  expect(new Set(suffixes).size).toBe(suffixes.length);
  for (const [, { name, sampleHosts }] of PROVIDER_ENTRIES) {
    expect(name).not.toBe('');
    expect(sampleHosts.length).toBeGreaterThan(0);
  }
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
