import { expect, test } from 'vitest';
import { accountJson, accountPairs } from '../../../src/cli/account-text.ts';
import type { Account } from '../../../src/model/account.ts';

const NOW = Date.UTC(2030, 0, 1);
/** The warning was stored at the last bounce, when 7 of 100 had come back. */
const ACCOUNT: Account = {
  id: 1,
  name: 'acme',
  createdAt: NOW,
  locked: null,
  warning: '7 hard bounces of 100 emails in 7 days (7 %; the limit is 10 %)',
  thresholds: { bounceRate: 0.1, complaintRate: 0.0015 },
  limits: { volume: null, volumeExpiresAt: null, rate: null, throttle: null },
  volumeUsed: 0,
  rateUsed: 0,
  rateWindowAt: null,
};

test('the warning of an account has the counts of now, and goes when they are good again', () => {
  const shown = (emails: number) => {
    const counts = { emails, bounces: 7, complaints: 0 };
    const { warning } = accountJson(ACCOUNT, NOW, counts) as { warning: string | null };
    return { warning, text: accountPairs(ACCOUNT, NOW, counts) };
  };
  const nearer = shown(125);
  expect(nearer.warning).toContain('7 hard bounces of 125 emails');
  expect(nearer.text).toContain('7 hard bounces of 125 emails');
  expect(nearer.text).not.toContain('of 100 emails');
  expect(shown(10_000).warning).toBeNull();
  expect(shown(10_000).text).not.toContain('warning');
});
