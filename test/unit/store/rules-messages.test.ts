import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Account, type AccountLimits, toLimitUsage } from '../../../src/model/account.ts';
import type { NewMessage } from '../../../src/model/message.ts';
import { decideAcceptance, getMaxIdAt, getMinIdAt, getRowsPerTurn, toSeq } from '../../../src/store/rules/messages.ts';
import { createMessage, createMessageIdAt, NO_LIMITS } from '../../rig/messages.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const RUN_OPTIONS = { seed: 13, numRuns: selectCaseCount(100, 300) };
const NOW = Date.UTC(2031, 0, 1);
const LEASE = { owner: 'node-a', until: NOW + 60_000 };

function createAccount(limits: Partial<AccountLimits> = {}, locked: Account['locked'] = null): Account {
  return {
    ...{ id: 1, name: 'shop', createdAt: 0, locked, warning: null },
    thresholds: { bounceRate: 0.1, complaintRate: 0.0015 },
    limits: { ...NO_LIMITS, ...limits },
    onReputation: 'lock',
    sesConfigurationSet: null,
    ...{ maxAgeMs: null, onlyTo: null, unknownFields: 'ignore', senders: [] },
    ...{ volumeUsed: 0, rateUsed: 0, rateWindowAt: null },
  };
}

describe('acceptance', () => {
  const storedKey = { id: 'earlier', fingerprint: 'aa' };
  const emptyLookups = { findByIdempotencyKey: () => null, isSuppressed: () => false };
  const createKeyedMessage = (fingerprint: string) =>
    createMessage({ acceptedAt: NOW, idempotency: { key: 'k', fingerprint } });
  const plainMessage = createMessage({ acceptedAt: NOW });
  const keyLookups = { ...emptyLookups, findByIdempotencyKey: () => storedKey };
  const suppressedLookups = { ...emptyLookups, isSuppressed: () => true };
  const leasedMessage = { ...plainMessage, lease: LEASE };
  const open = createAccount();
  const usedUp = createAccount({ volume: 0 });
  const locked = createAccount({}, { reason: 'abuse', at: 1 });

  test.each<[string, object, NewMessage, Account | null, typeof emptyLookups | typeof keyLookups]>([
    ['an account that does not exist', { kind: 'locked' }, plainMessage, null, emptyLookups],
    ['a locked account', { kind: 'locked' }, plainMessage, locked, emptyLookups],
    ['an idempotency key of the same message', { kind: 'replayed' }, createKeyedMessage('aa'), usedUp, keyLookups],
    ['a key of another message', { kind: 'idempotency-conflict' }, createKeyedMessage('bb'), usedUp, keyLookups],
    ['an exhausted volume', { kind: 'refused' }, plainMessage, usedUp, emptyLookups],
    ['no lease', { kind: 'accepted', state: 'queued' }, plainMessage, open, emptyLookups],
    ['a lease', { kind: 'accepted', state: 'sending' }, leasedMessage, open, emptyLookups],
    ['a suppressed recipient', { kind: 'accepted', state: 'suppressed' }, leasedMessage, open, suppressedLookups],
    [
      'a simulated suppression',
      { kind: 'accepted', state: 'suppressed' },
      { ...plainMessage, suppressedBy: 'simulator' },
      open,
      emptyLookups,
    ],
  ])('a message with %s results in %o', (_label, expected, message, account, lookups) => {
    expect(decideAcceptance(message, account && toLimitUsage(account), lookups)).toMatchObject(expected);
  });

  test('a batch of any size accepts and counts exactly the messages that volume and rate allow, even slightly out of order', () => {
    const limits = fc.record({ volume: fc.option(fc.nat(40)), limit: fc.option(fc.integer({ min: 1, max: 40 })) });
    fc.assert(
      fc.property(limits, fc.array(fc.nat(4), { maxLength: 60 }), ({ volume, limit }, offsetsMs) => {
        const size = offsetsMs.length;
        const rate = limit === null ? null : { limit, periodMs: 60_000 };
        const limitUsage = toLimitUsage(createAccount({ volume, rate }));
        const messages = offsetsMs.map((ms) => ({ ...plainMessage, acceptedAt: NOW + ms }));
        const kinds = messages.map((message) => decideAcceptance(message, limitUsage, emptyLookups).kind);
        const maxAccepted = Math.min(size, volume ?? size, limit ?? size);
        expect(kinds.filter((kind) => kind === 'accepted')).toHaveLength(maxAccepted);
        expect(kinds.slice(0, maxAccepted).every((kind) => kind === 'accepted')).toBe(true);
        expect([limitUsage.volumeUsed, limitUsage.rateUsed]).toEqual([maxAccepted, rate === null ? 0 : maxAccepted]);
      }),
      RUN_OPTIONS,
    );
  });
});

test.each([
  [1, 1],
  [63, 1],
  [64, 1],
  [128, 2],
  [512, 8],
  [100_000, 8],
])('a claim of %i messages leases %i messages of an account in one turn of the rotation', (messages, rows) => {
  expect(getRowsPerTurn(messages)).toBe(rows);
});

describe('sequence numbers of ids', () => {
  const time = fc.integer({ min: Date.UTC(2025, 0, 1), max: Date.UTC(2090, 0, 1) });

  test('increase with the ids of one process, and are exact integers', () => {
    fc.assert(
      fc.property(fc.array(time, { minLength: 2, maxLength: 20 }), (times) => {
        const ids = times.map(createMessageIdAt);
        const sortedIds = ids.toSorted();
        expect(sortedIds.map(toSeq)).toEqual(ids.map(toSeq).toSorted((left, right) => left - right));
        expect(ids.every((id) => Number.isSafeInteger(toSeq(id)))).toBe(true);
      }),
      RUN_OPTIONS,
    );
  });

  test('a range of time corresponds to the range of ids created in it', () => {
    fc.assert(
      fc.property(time, (ms) => {
        const id = createMessageIdAt(ms);
        expect(getMinIdAt(ms) <= id && id <= getMaxIdAt(ms)).toBe(true);
        expect(getMaxIdAt(ms - 1) < getMinIdAt(ms)).toBe(true);
      }),
      RUN_OPTIONS,
    );
    expect([getMinIdAt(-1), getMinIdAt(Number.MAX_SAFE_INTEGER)]).toEqual([
      '00000000-0000-0000-0000-000000000000',
      'ffffffff-ffff-0000-0000-000000000000',
    ]);
  });
});
