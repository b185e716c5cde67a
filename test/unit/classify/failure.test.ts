import fc from 'fast-check';
import { expect, test } from 'vitest';
import { classify, classifyOutcome } from '../../../src/classify/classify.ts';
import { RULES } from '../../../src/classify/rules.ts';
import type { Outcome, Reason } from '../../../src/model/outcome.ts';
import { parseReplyLine } from '../../../src/transports/smtp/protocol.ts';
import { selectCaseCount } from '../../rig/sample.ts';

/** For each reason: the class of a bounce without a suppression, the class of a deferral, and the category. */
const EXPECTED_FAILURES: Readonly<Record<Reason, readonly [string, string, string]>> = {
  'recipient-unknown': ['block', 'block', 'mailbox-unknown'],
  'recipient-disabled': ['soft', 'soft', 'mailbox-disabled'],
  'mailbox-full': ['soft', 'soft', 'mailbox-full'],
  'sender-refused': ['block', 'block', 'policy'],
  content: ['block', 'block', 'content'],
  size: ['block', 'block', 'size'],
  policy: ['block', 'block', 'policy'],
  reputation: ['block', 'block', 'reputation'],
  configuration: ['block', 'block', 'auth'],
  throttled: ['soft', 'soft', 'throttled'],
  quota: ['soft', 'soft', 'quota'],
  greylisted: ['soft', 'soft', 'greylisted'],
  unavailable: ['soft', 'soft', 'network'],
  connection: ['soft', 'soft', 'network'],
  smtputf8: ['block', 'block', 'content'],
  unknown: ['block', 'soft', 'unknown'],
};
const REASONS = Object.keys(EXPECTED_FAILURES) as Reason[];
const NO_REPLY = { stage: 'rcpt', code: null, enhanced: null, text: '' } as const;

test.each(REASONS)('a failure with the reason %s has the expected class and category', (reason) => {
  const [bounceClass, deferralClass, category] = EXPECTED_FAILURES[reason];
  const bouncedOutcome: Outcome = { kind: 'bounced', reply: NO_REPLY, reason, suppress: false };
  expect(classifyOutcome(bouncedOutcome)).toEqual({ class: bounceClass, category });
  const deferredOutcome: Outcome = { kind: 'deferred', reply: NO_REPLY, reason, scope: 'message' };
  expect(classifyOutcome(deferredOutcome)).toEqual({ class: deferralClass, category });
});

test.each([
  ['550 5.1.2 Host unknown: the nameserver is unreachable', 'block', 'unknown'],
  ['550 Client host not found', 'block', 'unknown'],
  ['550 Relay host not found', 'block', 'unknown'],
  ['550 5.7.27 Sender address has null MX', 'block', 'auth'],
  ['556 5.1.10 Recipient address has null MX', 'hard', 'domain'],
])('the reply %s is %s, %s', (line, failureClass, category) => {
  expect(classifyOutcome(classify(parseReplyLine('rcpt', line)))).toEqual({ class: failureClass, category });
});

test('the class is hard if and only if the attempt suppresses its recipient', () => {
  const phrases = RULES.flatMap((rule) => rule.phrases ?? []).map((phrase) => phrase.replace('$', ''));
  const lines = fc
    .tuple(
      fc.constantFrom('421', '450', '451', '550', '552', '553', '554', '556', '571'),
      fc.constantFrom(
        '',
        '4.2.1',
        '5.0.0',
        '5.1.0',
        '5.1.1',
        '5.1.2',
        '5.1.10',
        '5.2.1',
        '5.2.2',
        '5.4.1',
        '5.7.1',
        '5.7.27',
      ),
      fc.array(fc.constantFrom(...phrases), { maxLength: 3 }),
    )
    .map(([code, enhanced, parts]) => `${code} ${enhanced} ${parts.join(' ')}`);
  fc.assert(
    fc.property(fc.constantFrom('mail', 'rcpt', 'content'), lines, (stage, line) => {
      const outcome = classify(parseReplyLine(stage, line));
      const suppresses = outcome.kind === 'bounced' && outcome.suppress;
      expect(classifyOutcome(outcome)?.class === 'hard').toBe(suppresses);
    }),
    { numRuns: selectCaseCount(100, 3_000) },
  );
});
