/** Tests the rules for messages with tables of cases, and with properties of random cases. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Account, type AccountLimits, toLimitUsage } from '../../../src/model/account.ts';
import {
  type AcceptResult,
  type Cause,
  isAllowedTransition,
  STATES,
  type State,
  TERMINAL_STATES,
} from '../../../src/model/message.ts';
import {
  decideAcceptance,
  decideOperatorChange,
  getLane,
  getMaxIdAt,
  getMaxSeqAt,
  getMinIdAt,
  getMinIdOfSeq,
  getRowsPerTurn,
  getStateAfterChange,
  packSettlements,
  requireTransition,
  toSeq,
} from '../../../src/store/rules/messages.ts';
import { createAttempt, createMessage, createMessageIdAt, createSettlement, NO_LIMITS } from '../../rig/messages.ts';

const RUN_OPTIONS = { seed: 13, numRuns: 300 };
const NOW = Date.UTC(2031, 0, 1);
const CAUSES: readonly Cause[] = ['accept', 'queue', 'operator', 'feedback'];
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

  test('a message without an idempotency key does not cause a lookup', () => {
    const lookups = { ...emptyLookups, findByIdempotencyKey: () => storedKey };
    expect(decideAcceptance(plainMessage, toLimitUsage(createAccount()), lookups).kind).toBe('accepted');
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

test('only transitions in the table are allowed', () => {
  for (const from of [null, ...STATES])
    for (const to of STATES)
      for (const by of CAUSES) {
        if (isAllowedTransition(from, to, by)) expect(requireTransition(from, to, by)).toBe(to);
        else expect(() => requireTransition(from, to, by)).toThrow(`from ${from ?? 'none'} to ${to} (${by})`);
      }
});

test('the first change of a settlement is the outcome of the attempt, and only a later change may be a report', () => {
  for (const from of STATES)
    for (const to of STATES) {
      const getFirstState = () => getStateAfterChange(from, to, true);
      const getLaterState = () => getStateAfterChange(from, to, false);
      if (isAllowedTransition(from, to, 'queue')) expect([getFirstState(), getLaterState()]).toEqual([to, to]);
      else {
        expect(getFirstState).toThrow('See docs/states.md');
        if (isAllowedTransition(from, to, 'feedback')) expect(getLaterState()).toBe(to);
        else expect(getLaterState).toThrow('See docs/states.md');
      }
    }
});

test('only a deferred message becomes a retry', () => {
  expect(['deferred', 'delivered', 'bounced', 'expired'].map(getLane)).toEqual([1, 0, 0, 0]);
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

test('a claim that leases several rows of an account in one turn of the rotation serves at least 64 accounts', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100_000 }), (messages) => {
      const rows = getRowsPerTurn(messages);
      expect(rows).toBeGreaterThanOrEqual(1);
      expect(rows === 1 || Math.floor(messages / rows) >= 64).toBe(true);
    }),
    RUN_OPTIONS,
  );
});

describe('a packed settlement', () => {
  const message = { id: createMessageIdAt(NOW), attempts: 2, lease: LEASE };

  test('contains the attempt as JSON, and the provider’s id if the attempt has one', () => {
    const reply = { stage: 'content', code: 250, enhanced: '2.0.0', text: 'ok' } as const;
    const attempt = createAttempt({ kind: 'delivered', reply, reference: 'ses-1' });
    const event = { at: NOW, verb: 'delivered', by: 'node-a', detail: null, failure: null, attempt };
    const [packed] = packSettlements([createSettlement(message, { to: 'delivered', event })]);
    expect(packed).toMatchObject({ id: message.id, owner: 'node-a', attempts: 2, excludedFromReputation: false });
    expect(packed?.changes).toMatchObject([{ to: 'delivered', isTerminal: true, reference: 'ses-1' }]);
    // Earlier versions stored the transcript under the name `conversation`.
    const { transcript, ...members } = attempt;
    expect(JSON.parse(packed?.changes[0]?.attempt ?? '')).toEqual({ ...members, conversation: transcript });
  });

  test.each(STATES)('marks a change to the state %s as terminal only if the state is terminal', (to) => {
    const event = { at: NOW, verb: 'v', by: 'node-a', detail: null, failure: null, attempt: null };
    const [packed] = packSettlements([{ ...createSettlement(message, { to, event }), excludedFromReputation: true }]);
    expect(packed?.changes[0]).toMatchObject({ isTerminal: TERMINAL_STATES.has(to), attempt: null, reference: null });
    expect(packed?.excludedFromReputation).toBe(true);
  });
});

describe('an operator', () => {
  const actor = { name: 'rita', at: NOW };
  const change = (from: State, to: 'queued' | 'cancelled') =>
    decideOperatorChange({ id: 'm', from, dueAt: 5 }, to, NOW, actor).kind;

  test('can retry or cancel a queued or uncertain message, and no message in another state', () => {
    for (const from of STATES)
      for (const to of ['queued', 'cancelled'] as const) {
        const isAllowed = from === 'queued' || from === 'uncertain';
        expect([from, to, change(from, to)]).toEqual([from, to, isAllowed ? 'change' : 'wrong-state']);
      }
  });

  test('is recorded in the audit log if the actor is given', () => {
    const messageBefore = { id: 'm', from: 'queued', dueAt: 5 } as const;
    expect(decideOperatorChange(messageBefore, 'cancelled', NOW, actor)).toMatchObject({
      kind: 'change',
      audit: { actor: 'rita', action: 'message.cancel', target: 'm' },
    });
    expect(decideOperatorChange(messageBefore, 'queued', NOW, undefined)).toMatchObject({
      kind: 'change',
      audit: null,
    });
  });
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

  test('are mapped to the least id with the same sequence number', () => {
    fc.assert(
      fc.property(time, (ms) => {
        const id = createMessageIdAt(ms);
        expect(toSeq(getMinIdOfSeq(toSeq(id)))).toBe(toSeq(id));
        expect(getMinIdOfSeq(toSeq(id)) <= id && id < getMinIdOfSeq(toSeq(id) + 1)).toBe(true);
        expect(toSeq(id)).toBeLessThanOrEqual(getMaxSeqAt(ms));
        expect(getMaxSeqAt(ms)).toBeLessThan(getMaxSeqAt(ms + 1));
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
