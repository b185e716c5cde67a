import { describe, expect, test } from 'vitest';
import type { FeedbackEvent, FeedbackReport } from '../../../src/model/feedback.ts';
import { decideFeedback, getFacts, type RecordDecision, toHistorySummary } from '../../../src/store/rules/feedback.ts';
import { evaluateReputation } from '../../../src/store/rules/reputation.ts';

describe('reputation', () => {
  const FEW_BOUNCES = { emails: 1_000, bounces: 1, complaints: 0 };
  const THRESHOLDS = { bounceRate: 0.1, complaintRate: 0.0015 };
  test.each([
    ['good', { emails: 1_000, bounces: 1, complaints: 0 }, 'none', 'warn'],
    ['half of a threshold', { emails: 1_000, bounces: 50, complaints: 0 }, 'warn', 'none'],
    ['a threshold', { emails: 1_000, bounces: 100, complaints: 0 }, 'lock', 'lock'],
    ['five complaints about few messages', { emails: 9, bounces: 0, complaints: 5 }, 'lock', 'lock'],
  ] as const)('%s is evaluated, and the first warning stays unchanged until it ends', (_, counts, unwarned, warned) => {
    const window = { ...counts, provenBounces: counts.bounces, provenComplaints: counts.complaints };
    expect([
      evaluateReputation(window, THRESHOLDS, 'lock', false).kind,
      evaluateReputation(window, THRESHOLDS, 'lock', true).kind,
    ]).toEqual([unwarned, warned]);
  });

  test('a warning is removed when the counts of the window no longer exceed a threshold', () => {
    expect(
      evaluateReputation({ ...FEW_BOUNCES, provenBounces: 1, provenComplaints: 0 }, THRESHOLDS, 'lock', true),
    ).toEqual({
      kind: 'warn',
      warning: null,
    });
  });
});

describe('a bounce of the recipient after the first report', () => {
  const RECIPIENT = 'rita@example.com';
  const createBounce = (members: Partial<Extract<FeedbackEvent, { kind: 'bounce' }>> = {}): FeedbackEvent => ({
    kind: 'bounce',
    permanent: true,
    recipient: RECIPIENT,
    alias: null,
    evidence: { status: '5.1.1', diagnostic: null, reportingHost: null },
    failure: { class: 'hard', category: 'mailbox-unknown' },
    ...members,
  });
  const decide = (event: FeedbackEvent, state: 'delivered' | 'bounced', facts: number, reports: string | null) => {
    const report: FeedbackReport = {
      ...{ messageRef: { id: 'm' }, events: [event], source: 'smtp', digest: 'd', at: 1, summary: '' },
      ...{ raw: new Uint8Array(), isFinal: false },
    };
    const summary = toHistorySummary(facts, reports);
    const message = {
      id: 'm',
      accountId: 1,
      keyId: 1,
      state,
      to: RECIPIENT,
      sender: 'shop@example.org',
      route: null,
      summary,
    };
    return decideFeedback(report, 'm', message, false) as RecordDecision;
  };

  test.each([
    ['of an address to which the recipient forwards', createBounce({ alias: 'rita@elsewhere.example' }), 'bounce'],
    ['of another address', createBounce({ recipient: 'rita@elsewhere.example' }), 'bounce'],
    ['of the recipient', createBounce(), undefined],
  ] as const)('after a failure %s', (_, first, suppress) => {
    const { entries, addedReport } = decide(first, 'delivered', 0, null);
    const facts = entries.reduce((sum, entry) => sum | getFacts(entry), 0);
    const second: { readonly kind: string; readonly suppress?: unknown } = decide(
      createBounce(),
      'bounced',
      facts,
      addedReport,
    );
    expect(second.kind).toBe(suppress === undefined ? 'answer' : 'record');
    expect(second.suppress).toBe(suppress);
  });
});
