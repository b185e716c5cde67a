/** Tests the rules for reports and reputation. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { getReputationDelta, REPUTATION_BUCKET_MS, REPUTATION_WINDOW_HOURS } from '../../../src/model/account.ts';
import type { FeedbackEvent, FeedbackReport } from '../../../src/model/feedback.ts';
import { STATES, type State } from '../../../src/model/message.ts';
import {
  computePrematureReportDigest,
  countsTowardReputation,
  decideFeedback,
  decideWithoutMessage,
} from '../../../src/store/rules/feedback.ts';
import {
  evaluateReputation,
  getComplaintWindowStart,
  getLastExpiredHour,
  getLastHourBeforeWindow,
  needsEvaluation,
  ReputationDeltas,
  toHourSinceEpoch,
} from '../../../src/store/rules/reputation.ts';

const RUN_OPTIONS = { seed: 13, numRuns: 300 };
const NOW = Date.UTC(2031, 0, 1);
const EVIDENCE = { status: '5.1.1', diagnostic: '550 no such user', reportingHost: null };
const BOUNCE: FeedbackEvent = {
  ...{ kind: 'bounce', permanent: true, failure: { class: 'hard', category: 'mailbox-unknown' } },
  ...{ recipient: null, alias: null, evidence: EVIDENCE },
};

function createReport(changes: Partial<FeedbackReport> = {}): FeedbackReport {
  return {
    ...{ messageRef: { id: 'm' }, events: [BOUNCE], source: 'smtp', digest: 'd', at: NOW, summary: 's' },
    raw: new Uint8Array(),
    isFinal: false,
    ...changes,
  };
}

function createMessage(state: State, keyId = 1) {
  return { id: 'm', accountId: 7, keyId, state, to: 'rita@example.com', sender: 'shop@example.org' };
}

describe('a report', () => {
  test.each([
    ['of no message', createReport({ messageRef: null }), { kind: 'store', premature: false }],
    [
      'of another program',
      createReport({ messageRef: { reference: 'r' }, mayBeOtherProgram: true }),
      { answer: { kind: 'unrelated' } },
    ],
    ['of an unknown provider id', createReport({ messageRef: { reference: 'r' } }), { answer: { kind: 'not-yet' } }],
    [
      'that has an unknown provider id and will not be sent again',
      createReport({ messageRef: { reference: 'r' }, isFinal: true }),
      { kind: 'store', premature: true },
    ],
  ])('%s does not change a message', (_, changes, decision) => {
    expect(decideWithoutMessage(changes)).toMatchObject(decision);
  });

  test('about a message that is not stored is stored for the operator', () => {
    expect(decideFeedback(createReport(), 'm', null)).toMatchObject({
      kind: 'store',
      messageId: 'm',
      premature: false,
    });
  });

  test.each(['queued', 'sending'] as const)(
    'of a message that is still %s is stored if the report will not be sent again, and otherwise waits',
    (state) => {
      expect(decideFeedback(createReport(), 'm', createMessage(state))).toMatchObject({ answer: { kind: 'not-yet' } });
      expect(decideFeedback(createReport({ isFinal: true }), 'm', createMessage(state))).toMatchObject({
        kind: 'store',
        premature: true,
      });
    },
  );

  test('about a missing mailbox changes a delivered message to bounced, suppresses the recipient and counts towards the reputation', () => {
    const decision = decideFeedback(createReport(), 'm', createMessage('delivered'));
    expect(decision).toMatchObject({
      ...{ kind: 'record', from: 'delivered', newState: 'bounced', suppress: 'bounce', reputationRule: 'always' },
      entries: [{ by: 'feedback:smtp', at: NOW, attempt: null }],
    });
    if (decision.kind === 'record')
      expect(decision.createResult(true)).toMatchObject({ kind: 'applied', to: 'bounced', suppressed: true });
  });

  test('about a message without a key does not count towards the reputation', () => {
    expect(decideFeedback(createReport(), 'm', createMessage('delivered', 0))).toMatchObject({
      reputationRule: 'never',
      suppress: null,
    });
  });

  test('about an expired message is added to its history and does not change its state', () => {
    expect(decideFeedback(createReport(), 'm', createMessage('expired'))).toMatchObject({
      newState: null,
      reputationRule: 'if-suppressed',
    });
  });

  test('counts towards the reputation as its rule states: always, only if it suppressed the recipient, or never', () => {
    const table = (['always', 'if-suppressed', 'never'] as const).map((reputationRule) =>
      [true, false].map((isSuppressed) => countsTowardReputation({ reputationRule }, isSuppressed)),
    );
    expect(table).toEqual([
      [true, true],
      [true, false],
      [false, false],
    ]);
  });

  test('that is premature is stored under a digest that differs from the digest of the repeated report', () => {
    expect(computePrematureReportDigest('d')).not.toBe('d');
  });
});

describe('reputation', () => {
  test('the counts of a batch are the sums of its events by account, in order of account id', () => {
    const event = fc.record({
      accountId: fc.integer({ min: 1, max: 4 }),
      from: fc.constantFrom(...STATES),
      to: fc.constantFrom(...STATES),
      isNewEvidence: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const deltas = new ReputationDeltas();
        for (const [index, { accountId, from, to, isNewEvidence: fresh }] of events.entries())
          deltas.add(accountId, from, to, fresh, index);
        const expected = [1, 2, 3, 4].flatMap((accountId) => {
          const addedCounts = events.flatMap((event, index) => {
            const delta =
              event.accountId === accountId ? getReputationDelta(event.from, event.to, event.isNewEvidence) : null;
            return delta === null ? [] : [{ ...delta, index }];
          });
          const addCounts = (of: 'emails' | 'bounces' | 'complaints') =>
            addedCounts.reduce((total, counts) => total + counts[of], 0);
          const lastCounts = addedCounts.at(-1);
          if (lastCounts === undefined) return [];
          return [[accountId, addCounts('emails'), addCounts('bounces'), addCounts('complaints'), lastCounts.index]];
        });
        const foundDeltas = deltas
          .listByAccount()
          .map(([id, { emails, bounces, complaints }, at]) => [id, emails, bounces, complaints, at]);
        expect(foundDeltas).toEqual(expected);
      }),
      RUN_OPTIONS,
    );
  });

  test('the window has a fixed number of hours, and a bucket is stored for longer than the window', () => {
    fc.assert(
      fc.property(fc.integer({ min: NOW, max: NOW * 2 }), (now) => {
        expect(
          toHourSinceEpoch(now) * REPUTATION_BUCKET_MS <= now &&
            now < (toHourSinceEpoch(now) + 1) * REPUTATION_BUCKET_MS,
        ).toBe(true);
        expect(toHourSinceEpoch(now) - getLastHourBeforeWindow(now)).toBe(REPUTATION_WINDOW_HOURS);
        expect(getLastExpiredHour(now)).toBeLessThan(getLastHourBeforeWindow(now));
        expect(now - getComplaintWindowStart(now)).toBe(REPUTATION_WINDOW_HOURS * REPUTATION_BUCKET_MS);
      }),
      RUN_OPTIONS,
    );
  });

  test('an account with only delivered messages is evaluated only if it has a warning', () => {
    const goodCounts = { emails: 5, bounces: 0, complaints: 0 };
    expect([needsEvaluation(goodCounts, false), needsEvaluation(goodCounts, true)]).toEqual([false, true]);
    expect(needsEvaluation({ ...goodCounts, bounces: 1 }, false)).toBe(true);
    expect(needsEvaluation({ ...goodCounts, complaints: 1 }, false)).toBe(true);
  });

  const THRESHOLDS = { bounceRate: 0.1, complaintRate: 0.0015 };
  test.each([
    ['good', { emails: 1_000, bounces: 1, complaints: 0 }, 'none', 'warn'],
    ['half of a threshold', { emails: 1_000, bounces: 50, complaints: 0 }, 'warn', 'none'],
    ['a threshold', { emails: 1_000, bounces: 100, complaints: 0 }, 'lock', 'lock'],
    ['two complaints about few messages', { emails: 9, bounces: 0, complaints: 2 }, 'lock', 'lock'],
  ] as const)('%s is evaluated, and the first warning stays unchanged until it ends', (_, window, unwarned, warned) => {
    expect([
      evaluateReputation(window, THRESHOLDS, false).kind,
      evaluateReputation(window, THRESHOLDS, true).kind,
    ]).toEqual([unwarned, warned]);
  });

  test('a warning is removed when the counts of the window no longer exceed a threshold', () => {
    expect(evaluateReputation({ emails: 1_000, bounces: 1, complaints: 0 }, THRESHOLDS, true)).toEqual({
      kind: 'warn',
      warning: null,
    });
  });
});
