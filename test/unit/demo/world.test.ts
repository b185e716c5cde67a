/** Tests that the simulated servers of the demo are deterministic and that each behavior has its expected outcome. */
import { expect, test } from 'vitest';
import type { Behavior } from '../../../demo/behaviors.ts';
import { BEHAVIORS } from '../../../demo/behaviors.ts';
import { planHistory } from '../../../demo/plan.ts';
import { createSeededRandom } from '../../../demo/random.ts';
import { Recipients } from '../../../demo/recipients.ts';
import { composeReport, type ReportKind } from '../../../demo/reports.ts';
import { attemptDelivery, RECIPIENT_DOMAINS } from '../../../demo/servers.ts';
import { readFeedbackEvents } from '../../../src/feedback/read/read-feedback-events.ts';
import { validateSubmission } from '../../../src/model/submission.ts';

const NOW = Date.UTC(2026, 10, 21, 12);

function createPlan(seed: number) {
  const random = createSeededRandom(seed);
  return planHistory(NOW, new Recipients(random), random);
}

test('the same seed generates the same history, and another seed generates a different history', () => {
  expect(createPlan(7)).toEqual(createPlan(7));
  expect(createPlan(8)).not.toEqual(createPlan(7));
});

test('every message of the history is valid for the public interface and has a time in the past', () => {
  for (const { at, to, application, subject, message } of createPlan(3)) {
    expect(validateSubmission({ to, from: application.from, subject, message }).kind).toBe('valid');
    expect(at).toBeLessThan(NOW);
    expect(Number.isInteger(at)).toBe(true);
  }
});

const EXPECTED_OUTCOMES: Readonly<Record<Behavior, string>> = {
  accepting: 'delivered',
  slow: 'delivered',
  greylisted: 'deferred greylisted',
  'server-busy': 'deferred unavailable',
  'mailbox-full': 'deferred mailbox-full',
  'mailbox-full-for-hours': 'deferred mailbox-full',
  unreachable: 'deferred connection',
  'broken-tls': 'deferred connection',
  'cut-off': 'unanswered',
  'mailbox-unknown': 'bounced recipient-unknown suppressed',
  'mailbox-disabled': 'bounced recipient-disabled suppressed',
  policy: 'bounced policy',
  spam: 'bounced content',
  'too-large': 'bounced size',
  'bounces-later': 'delivered',
  'mailbox-full-later': 'delivered',
  complains: 'delivered',
  'out-of-office': 'delivered',
  'not-understood-report': 'delivered',
};

test('each behavior of a simulated server results in its expected outcome', () => {
  for (const [behavior, expected] of Object.entries(EXPECTED_OUTCOMES)) {
    const attempt = {
      behavior: behavior as Behavior,
      attemptNumber: 1,
      envelopeFrom: 'a@b.example',
      to: 'ada@bigmail.example',
    };
    const { outcome, transcript } = attemptDelivery(
      { ...attempt, sizeBytes: 900, startedAt: NOW },
      createSeededRandom(1),
    );
    const reason = 'reason' in outcome ? ` ${outcome.reason}` : '';
    const suppressedSuffix = outcome.kind === 'bounced' && outcome.suppress ? ' suppressed' : '';
    expect(`${outcome.kind}${reason}${suppressedSuffix}`, behavior).toBe(expected);
    expect(transcript.join('\n'), behavior).not.toMatch(/[{}]/);
  }
});

test('with every server, an attempt is unanswered only if the connection is lost after DATA', () => {
  for (const behavior of Object.keys(BEHAVIORS) as Behavior[]) {
    for (const domain of RECIPIENT_DOMAINS) {
      const attempt = { behavior, attemptNumber: 1, envelopeFrom: 'a@b.example', to: `ada@${domain}` };
      const { outcome, transcript } = attemptDelivery(
        { ...attempt, sizeBytes: 900, startedAt: NOW },
        createSeededRandom(1),
      );
      expect(outcome.kind === 'unanswered', `${behavior} ${domain}`).toBe(behavior === 'cut-off');
      if (outcome.kind !== 'unanswered') continue;
      expect(outcome.reply.text).toBe(`mx.${domain}:25 closed the connection`);
      expect(transcript.at(-1)).toContain('(900 octets)');
    }
  }
});

test('the attempt after the listed failures of a behavior delivers the message, unless the last failure repeats', () => {
  for (const [behavior, { failures, repeatsLast }] of Object.entries(BEHAVIORS)) {
    const attemptNumber = failures.length + 1;
    const attempt = {
      behavior: behavior as Behavior,
      attemptNumber,
      envelopeFrom: 'a@b.example',
      to: 'ada@uni.example.org',
    };
    const { outcome } = attemptDelivery({ ...attempt, sizeBytes: 900, startedAt: NOW }, createSeededRandom(1));
    expect(outcome.kind, behavior).toBe(repeatsLast ? 'deferred' : 'delivered');
  }
});

test('each kind of composed report is parsed as the expected event', () => {
  const message = {
    returnPath: 'b-x@bounces.example',
    to: 'ada@uni.example.org',
    from: 'shop@example.org',
    subject: 'Hi',
    id: 'x',
  };
  const kinds: Readonly<Record<ReportKind, object>> = {
    bounce: {
      kind: 'bounce',
      permanent: true,
      failure: { class: 'hard', category: 'mailbox-unknown' },
      recipient: message.to,
    },
    'mailbox-full': { kind: 'bounce', failure: { class: 'soft', category: 'mailbox-full' }, recipient: message.to },
    complaint: { kind: 'complaint', feedbackType: 'abuse', recipient: message.to },
    'out-of-office': { kind: 'auto-reply' },
    'not-understood': { kind: 'unknown' },
  };
  for (const [kind, event] of Object.entries(kinds)) {
    expect(readFeedbackEvents(composeReport(kind as ReportKind, message)), kind).toEqual([
      expect.objectContaining(event),
    ]);
  }
  const complaint = composeReport('complaint', message).toString();
  expect(complaint, "a complaint is reported by the recipient's own provider").toContain('dns; fbl.uni.example.org');
  expect(complaint).not.toContain('bigmail');
});
