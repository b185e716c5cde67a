/** Tests the rules for messages with tables of cases, and with properties of random cases. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Account, type AccountLimits, toLimitUsage } from '../../../src/model/account.ts';
import type { AcceptResult } from '../../../src/model/message.ts';
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
    sesConfigurationSet: null,
    ...{ volumeUsed: 0, rateUsed: 0, rateWindowAt: null },
  };
}

describe('acceptance', () => {
  const storedKey = { id: 'earlier', fingerprint: 'aa' };
  const emptyLookups = { findByIdempotencyKey: () => null, isSuppressed: () => false };
  const createKeyedMessage = (fingerprint: string) =>
    createMessage({ acceptedAt: NOW, idempotency: { key: 'k', fingerprint } });
  const plainMessage = createMessage({ acceptedAt: NOW });
  const usedUpLimits = { volume: 0 };

  test.each<[string, AcceptResult['kind'], string | undefined, () => AcceptResult]>([
    ['an account that does not exist', 'locked', undefined, () => decideAcceptance(plainMessage, null, emptyLookups)],
    [
      'a locked account',
      'locked',
      undefined,
      () => decideAcceptance(plainMessage, toLimitUsage(createAccount({}, { reason: 'abuse', at: 1 })), emptyLookups),
    ],
    [
      'an idempotency key of the same message',
      'replayed',
      undefined,
      () =>
        decideAcceptance(createKeyedMessage('aa'), toLimitUsage(createAccount(usedUpLimits)), {
          ...emptyLookups,
          findByIdempotencyKey: () => storedKey,
        }),
    ],
    [
      'an idempotency key of another message',
      'idempotency-conflict',
      undefined,
      () =>
        decideAcceptance(createKeyedMessage('bb'), toLimitUsage(createAccount(usedUpLimits)), {
          ...emptyLookups,
          findByIdempotencyKey: () => storedKey,
        }),
    ],
    [
      'an exhausted volume',
      'refused',
      undefined,
      () => decideAcceptance(plainMessage, toLimitUsage(createAccount(usedUpLimits)), emptyLookups),
    ],
    [
      'a message without a lease',
      'accepted',
      'queued',
      () => decideAcceptance(plainMessage, toLimitUsage(createAccount()), emptyLookups),
    ],
    [
      'a message with a lease',
      'accepted',
      'sending',
      () => decideAcceptance({ ...plainMessage, lease: LEASE }, toLimitUsage(createAccount()), emptyLookups),
    ],
    [
      'a suppressed recipient',
      'accepted',
      'suppressed',
      () =>
        decideAcceptance({ ...plainMessage, lease: LEASE }, toLimitUsage(createAccount()), {
          ...emptyLookups,
          isSuppressed: () => true,
        }),
    ],
    [
      'a message that the transport suppresses',
      'accepted',
      'suppressed',
      () =>
        decideAcceptance({ ...plainMessage, suppressedBy: 'simulator' }, toLimitUsage(createAccount()), emptyLookups),
    ],
  ])('%s results in the decision %s', (_label, kind, state, decide) => {
    expect(decide()).toMatchObject({ kind, ...(state === undefined ? {} : { state }) });
  });

  test('a batch of any size accepts and counts exactly the messages that volume and rate allow', () => {
    const limits = fc.record({ volume: fc.option(fc.nat(40)), limit: fc.option(fc.integer({ min: 1, max: 40 })) });
    fc.assert(
      fc.property(limits, fc.nat(60), ({ volume, limit }, size) => {
        const rate = limit === null ? null : { limit, periodMs: 60_000 };
        const limitUsage = toLimitUsage(createAccount({ volume, rate }));
        const kinds = Array.from({ length: size }, () => decideAcceptance(plainMessage, limitUsage, emptyLookups).kind);
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
