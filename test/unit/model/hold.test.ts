import { expect, test } from 'vitest';
import { findHold, getHoldEnd, getHoldState, type Hold, isHoldListed } from '../../../src/model/hold.ts';
import type { MailboxProvider } from '../../../src/model/mailbox-provider.ts';

const NOW = Date.UTC(2030, 0, 1);
const DAY_MS = 24 * 3_600_000;
const MESSAGE = { accountId: 1, from: 'News@Shop.Example.org', to: 'rita@example.com' };

const createHold = (members: Partial<Hold>): Hold => ({
  ...{ id: 1, accountId: null, from: null, to: null, mailboxProvider: null, reason: 'incident' },
  ...{ until: null, createdAt: NOW, by: 'cli:ada', releasedAt: null },
  ...members,
});

test.each<[title: string, members: Partial<Hold>, isHeld: boolean]>([
  ['no filter', {}, true],
  ['the account', { accountId: 1 }, true],
  ['another account', { accountId: 2 }, false],
  ['the sender in another case', { from: 'news@shop.example.org' }, true],
  ['the domain of the sender', { from: '@shop.example.org' }, true],
  ['the domain above', { from: '@example.org' }, false],
  ['its subdomains', { from: '@*.example.org' }, true],
  ['the recipient', { to: 'rita@example.com' }, true],
  ['another recipient', { to: 'max@example.com' }, false],
  ['subdomains do not contain the domain itself', { to: '@*.example.com' }, false],
  ['the mailbox provider', { mailboxProvider: 'google' }, true],
  ['another mailbox provider', { mailboxProvider: 'yahoo' }, false],
  ['all filters match', { accountId: 1, from: '@*.example.org', to: '@example.com', mailboxProvider: 'google' }, true],
  ['one of two filters does not match', { accountId: 1, to: '@example.org' }, false],
])('a hold with %s', (_, members, isHeld) => {
  const hold = createHold(members);
  const findProvider = (domain: string): MailboxProvider => (domain === 'example.com' ? 'google' : 'other');
  expect(findHold([hold], MESSAGE, findProvider)).toBe(isHeld ? hold : null);
});

test('a message is held by the first of several holds that matches, and a mailbox provider that is not known yet matches', () => {
  const holds = [
    createHold({ accountId: 2 }),
    createHold({ id: 2, mailboxProvider: 'yahoo' }),
    createHold({ id: 3, mailboxProvider: 'google' }),
  ];
  expect(findHold(holds, MESSAGE, () => 'google')?.id).toBe(3);
  expect(findHold(holds, MESSAGE, () => null)?.id).toBe(2);
  expect(findHold(holds, MESSAGE, () => 'unknown')).toBeNull();
});

test('a hold is active until its release or its end, and is listed for a week after it', () => {
  const hold = createHold({ until: NOW + 5 });
  expect([getHoldState(hold, NOW + 4), getHoldState(hold, NOW + 5)]).toEqual(['active', 'ended']);
  expect([getHoldEnd(hold, NOW + 4), getHoldEnd(hold, NOW + 5)]).toEqual([null, NOW + 5]);
  const releasedHold = { ...hold, releasedAt: NOW + 1 };
  expect([getHoldState(releasedHold, NOW + 9), getHoldEnd(releasedHold, NOW + 9)]).toEqual(['released', NOW + 1]);
  expect([7 * DAY_MS, 7 * DAY_MS + 1].map((ageMs) => isHoldListed(releasedHold, NOW + ageMs))).toEqual([true, false]);
  expect(isHoldListed(createHold({}), NOW + 100 * DAY_MS)).toBe(true);
});
