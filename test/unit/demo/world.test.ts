/** The simulated servers of the demo: deterministic, and each behaviour leads to the outcome of its name. */
import { expect, test } from 'vitest';
import type { Behaviour } from '../../../demo/behaviours.ts';
import { BEHAVIOURS } from '../../../demo/behaviours.ts';
import { planHistory } from '../../../demo/plan.ts';
import { seededRandom } from '../../../demo/random.ts';
import { Recipients } from '../../../demo/recipients.ts';
import { type ReportKind, rawReport } from '../../../demo/reports.ts';
import { attemptDelivery, RECIPIENT_DOMAINS } from '../../../demo/servers.ts';
import { readFeedbackEvents } from '../../../src/feedback/read/read-feedback-events.ts';
import { validateSubmission } from '../../../src/model/submission.ts';

const NOW = Date.UTC(2026, 10, 21, 12);

function planOf(seed: number) {
  const dice = seededRandom(seed);
  return planHistory(NOW, new Recipients(dice), dice);
}

test('the same seed generates the same history, and another seed a different one', () => {
  expect(planOf(7)).toEqual(planOf(7));
  expect(planOf(8)).not.toEqual(planOf(7));
});

test('the public interface would accept every message of the history, and each lies in the past', () => {
  for (const { at, to, application, subject, message } of planOf(3)) {
    expect(validateSubmission({ to, from: application.from, subject, message }).kind).toBe('valid');
    expect(at).toBeLessThan(NOW);
    expect(Number.isInteger(at)).toBe(true);
  }
});

const COMES_TO: Readonly<Record<Behaviour, string>> = {
  fine: 'delivered',
  slow: 'delivered',
  greylisted: 'deferred greylisted',
  busy: 'deferred unavailable',
  full: 'deferred mailbox-full',
  'full-for-hours': 'deferred mailbox-full',
  unreachable: 'deferred connection',
  'broken-tls': 'deferred connection',
  'cut-off': 'unanswered',
  gone: 'bounced recipient-unknown suppressed',
  disabled: 'bounced recipient-disabled suppressed',
  policy: 'bounced policy',
  spam: 'bounced content',
  'too-large': 'bounced size',
  'bounces-later': 'delivered',
  'full-later': 'delivered',
  complains: 'delivered',
  away: 'delivered',
  'odd-report': 'delivered',
};

test('the reply of a simulated server leads to the outcome of its behaviour', () => {
  for (const [fate, expected] of Object.entries(COMES_TO)) {
    const attempt = {
      behaviour: fate as Behaviour,
      attemptNumber: 1,
      envelopeFrom: 'a@b.example',
      to: 'ada@bigmail.example',
    };
    const { outcome, conversation } = attemptDelivery({ ...attempt, sizeBytes: 900, startedAt: NOW }, seededRandom(1));
    const reason = 'reason' in outcome ? ` ${outcome.reason}` : '';
    const suppressed = outcome.kind === 'bounced' && outcome.suppress ? ' suppressed' : '';
    expect(`${outcome.kind}${reason}${suppressed}`, fate).toBe(expected);
    expect(conversation.join('\n'), fate).not.toMatch(/[{}]/);
  }
});

test('an attempt is unanswered only if the connection is lost after DATA, with every server', () => {
  for (const fate of Object.keys(BEHAVIOURS) as Behaviour[]) {
    for (const domain of RECIPIENT_DOMAINS) {
      const attempt = { behaviour: fate, attemptNumber: 1, envelopeFrom: 'a@b.example', to: `ada@${domain}` };
      const { outcome, conversation } = attemptDelivery(
        { ...attempt, sizeBytes: 900, startedAt: NOW },
        seededRandom(1),
      );
      expect(outcome.kind === 'unanswered', `${fate} ${domain}`).toBe(fate === 'cut-off');
      if (outcome.kind !== 'unanswered') continue;
      expect(outcome.reply.text).toBe(`mx.${domain}:25 closed the connection`);
      expect(conversation.at(-1)).toContain('(900 octets)');
    }
  }
});

test('a server with temporary failures accepts the message afterwards, unless the failure repeats', () => {
  for (const [fate, { failures: hitches, repeatsLast: always }] of Object.entries(BEHAVIOURS)) {
    const tries = hitches.length + 1;
    const attempt = {
      behaviour: fate as Behaviour,
      attemptNumber: tries,
      envelopeFrom: 'a@b.example',
      to: 'ada@uni.example.org',
    };
    const { outcome } = attemptDelivery({ ...attempt, sizeBytes: 900, startedAt: NOW }, seededRandom(1));
    expect(outcome.kind, fate).toBe(always ? 'deferred' : 'delivered');
  }
});

test('every report is read as its kind', () => {
  const about = {
    returnPath: 'b-x@bounces.example',
    to: 'ada@uni.example.org',
    from: 'shop@example.org',
    subject: 'Hi',
    id: 'x',
  };
  const kinds: Readonly<Record<ReportKind, object>> = {
    bounce: { kind: 'bounce', permanent: true, mailboxMissing: true, recipient: about.to },
    full: { kind: 'bounce', mailboxMissing: false, recipient: about.to },
    complaint: { kind: 'complaint', feedbackType: 'abuse', recipient: about.to },
    away: { kind: 'auto-reply' },
    odd: { kind: 'unknown' },
  };
  for (const [kind, notice] of Object.entries(kinds)) {
    expect(readFeedbackEvents(rawReport(kind as ReportKind, about)), kind).toEqual([expect.objectContaining(notice)]);
  }
  const complaint = rawReport('complaint', about).toString();
  expect(complaint, "a complaint is reported by the recipient's own provider").toContain('dns; fbl.uni.example.org');
  expect(complaint).not.toContain('bigmail');
});
