import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RULES } from '../../../../src/classify/rules.ts';
import { CATEGORY_PHRASES, CAUSE_RULES } from '../../../../src/feedback/read/causes.ts';
import { classifyFailure, withFailureClass } from '../../../../src/feedback/read/classify-failure.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../../../../src/model/failure.ts';
import { selectCaseCount } from '../../../rig/sample.ts';

const MISSING_MAILBOX_FAILURE = { permanent: true, failure: { class: 'hard' } };

test('no sample reply about policy, reputation, content, size or the sender’s configuration means a missing mailbox', () => {
  const nonMailboxReasons = [
    'policy',
    'reputation',
    'content',
    'size',
    'configuration',
    'sender-refused',
    'throttled',
    'smtputf8',
  ];
  for (const { result: expected, samples } of RULES) {
    if (!nonMailboxReasons.includes(expected.reason)) continue;
    for (const sample of samples) {
      const text = sample.slice(sample.indexOf(' ') + 1);
      expect(classifyFailure(text, null).failure.class, text).not.toBe('hard');
    }
  }
});

test('every sample reply that suppresses the recipient during delivery means a missing mailbox if a report contains it', () => {
  for (const { result: expected, samples } of RULES) {
    if (expected.kind !== 'permanent' || !expected.suppress) continue;
    for (const sample of samples) {
      const text = sample.slice(sample.indexOf(' ') + 1);
      expect(classifyFailure(text, null), text).toMatchObject(MISSING_MAILBOX_FAILURE);
    }
  }
});

describe('a failure', () => {
  // The codes in the text take precedence over the status of the report, and a phrase over a generic code.
  test.each([
    ['550 5.1.1 unknown', '5.7.1', true, 'hard', 'mailbox-unknown'],
    ['452 out of space', '5.0.0', false, 'soft', 'mailbox-full'],
    ['550 4.4.7 expired', '5.0.0', false, 'soft', 'network'],
    ['the door was closed', '5.1.1', true, 'hard', 'mailbox-unknown'],
    ['mailbox full', '5.0.0', false, 'soft', 'mailbox-full'],
    ['550 quota exceeded', null, false, 'soft', 'mailbox-full'],
    ['552 5.2.2 message exceeds the maximum size', null, false, 'soft', 'size'],
    ['', '4.4.7', false, 'soft', 'network'],
    ['', '5.4.7', false, 'soft', 'network'],
    ['', '5.1.2', true, 'hard', 'domain'],
    ['', '5.2.1', true, 'hard', 'mailbox-disabled'],
    ['retry timeout exceeded', '5.0.0', false, 'soft', 'network'],
    ['user unknown: retry timeout exceeded', '5.0.0', true, 'hard', 'mailbox-unknown'],
    ['550 5.7.1 no such user', null, true, 'block', 'policy'],
    ['554 5.6.0 message content rejected', null, true, 'block', 'content'],
    ['550 relaying denied', null, true, 'block', 'auth'],
    ['552 5.3.4 message too big', null, true, 'block', 'size'],
    ['550 5.1.8 sender address does not exist', null, true, 'block', 'policy'],
    ['Host or domain name not found', '5.4.4', true, 'hard', 'domain'],
    ['Host not found, try again', '5.4.4', false, 'soft', 'network'],
    ['Domain b.example does not accept mail (nullMX)', '5.1.10', true, 'hard', 'domain'],
    ['550 account temporarily suspended', '5.0.0', false, 'soft', 'mailbox-disabled'],
    ['550 5.2.1 closed', null, true, 'hard', 'mailbox-disabled'],
    ['550 5.4.1 Recipient address rejected: Access denied', null, true, 'hard', 'mailbox-unknown'],
    ['550 #5.1.0 Address rejected.', '5.1.0', true, 'hard', 'mailbox-unknown'],
    ['450 4.2.0 greylisted', null, false, 'soft', 'greylisted'],
    ['550 5.1.1 Mail refused due to recipient preferences', null, true, 'block', 'policy'],
    ['the sender is listed at spamhaus', null, true, 'block', 'reputation'],
    ['550 5.7.26 unauthenticated mail: DMARC', null, true, 'block', 'auth'],
    ['the message was classified as spam', null, true, 'block', 'content'],
    ['550 no', null, true, 'block', 'unknown'],
    ['the server refused the message', null, true, 'soft', 'unknown'],
    ['Your message totalled 550 bytes', null, true, 'soft', 'unknown'],
  ])('%s %s is permanent: %s, %s, %s', (text, status, permanent, failureClass, category) => {
    expect(classifyFailure(text, status)).toMatchObject({ permanent, failure: { class: failureClass, category } });
  });

  test('the category of a hard failure is about the address, and a temporary failure is soft', () => {
    const phrases = [...CAUSE_RULES, ...CATEGORY_PHRASES].flatMap((rule) => rule.phrases);
    const part = fc.oneof(
      fc.constantFrom(...phrases),
      fc.constantFrom('450', '550', '552', '556', '5.1.1', '5.2.1', '5.2.2', '5.4.1', '5.7.1', '4.4.7'),
      fc.string({ maxLength: 8 }),
    );
    const texts = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(' '));
    const statuses = fc.constantFrom(null, '4.2.1', '5.0.0', '5.1.1', '5.1.2', '5.2.1', '5.2.2', '5.4.4', '5.7.1');
    fc.assert(
      fc.property(texts, statuses, (text, status) => {
        const { failure, permanent } = classifyFailure(text, status);
        if (failure.class === 'hard')
          expect(['mailbox-unknown', 'mailbox-disabled', 'domain']).toContain(failure.category);
        if (!permanent) expect(failure.class).toBe('soft');
      }),
      { numRuns: selectCaseCount(100, 2_000) },
    );
  });

  test('a hard bounce of a provider has a category about the address, for every diagnosis', () => {
    for (const category of FAILURE_CATEGORIES) {
      for (const failureClass of FAILURE_CLASSES) {
        const failure = withFailureClass('hard', { class: failureClass, category });
        expect(['mailbox-unknown', 'mailbox-disabled', 'domain']).toContain(failure.category);
      }
    }
  });
});
