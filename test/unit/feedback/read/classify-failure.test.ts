import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RULES } from '../../../../src/classify/rules.ts';
import { CATEGORY_PHRASES, CAUSE_RULES } from '../../../../src/feedback/read/causes.ts';
import { classifyFailure, withFailureClass } from '../../../../src/feedback/read/classify-failure.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../../../../src/model/failure.ts';
import { selectCaseCount } from '../../../rig/sample.ts';

const TEMPORARY_FAILURE = { permanent: false, failure: { class: 'soft' } };
const BLOCK_FAILURE = { permanent: true, failure: { class: 'block' } };
const UNKNOWN_FAILURE = { permanent: true, failure: { class: 'soft' } };
const MISSING_MAILBOX_FAILURE = { permanent: true, failure: { class: 'hard' } };

describe('a failure is classified by', () => {
  test.each([
    [
      'the status in the text rather than the status of the report',
      '550 5.1.1 unknown',
      '5.7.1',
      MISSING_MAILBOX_FAILURE,
    ],
    ['the reply code in the text rather than the status of the report', '452 out of space', '5.0.0', TEMPORARY_FAILURE],
    ['a status of class 4 anywhere in the text', '550 4.4.7 expired', '5.0.0', TEMPORARY_FAILURE],
    ['the status of the report for a text without a code', 'the door was closed', '5.1.1', MISSING_MAILBOX_FAILURE],
    ['a full mailbox rather than a generic status', 'mailbox full', '5.0.0', TEMPORARY_FAILURE],
    ['a full mailbox rather than a generic reply code', '550 quota exceeded', null, TEMPORARY_FAILURE],
    [
      'a status of a full mailbox rather than text about size',
      '552 5.2.2 message exceeds the maximum size',
      null,
      TEMPORARY_FAILURE,
    ],
    ['an expired retry period', '', '4.4.7', TEMPORARY_FAILURE],
    ['an expired retry period with a status of class 5', '', '5.4.7', TEMPORARY_FAILURE],
    ['an expired retry period in the text', 'retry timeout exceeded', '5.0.0', TEMPORARY_FAILURE],
    [
      'a missing mailbox rather than an expired retry period',
      'user unknown: retry timeout exceeded',
      '5.0.0',
      MISSING_MAILBOX_FAILURE,
    ],
    ['policy rather than the mailbox', '550 5.7.1 no such user', null, BLOCK_FAILURE],
    ['content', '554 5.6.0 message content rejected', null, BLOCK_FAILURE],
    ['relaying', '550 relaying denied', null, BLOCK_FAILURE],
    ['size', '552 5.3.4 message too big', null, BLOCK_FAILURE],
    ['the sender’s address', '550 5.1.8 sender address does not exist', null, BLOCK_FAILURE],
    ['an unknown text', 'the server refused the message', null, UNKNOWN_FAILURE],
    ['a host that does not exist', 'Host or domain name not found', '5.4.4', MISSING_MAILBOX_FAILURE],
    ['a host whose lookup failed temporarily', 'Host not found, try again', '5.4.4', TEMPORARY_FAILURE],
    ['a suspended mailbox', '550 account temporarily suspended', '5.0.0', TEMPORARY_FAILURE],
    ['a closed mailbox', '550 5.2.1 closed', null, MISSING_MAILBOX_FAILURE],
    ['a number of bytes', 'Your message totalled 550 bytes', null, UNKNOWN_FAILURE],
  ])('%s', (_, text, status, expected) => {
    expect(classifyFailure(text, status)).toMatchObject(expected);
  });
});

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

describe('the class and the category', () => {
  test.each([
    ['550 5.4.1 Recipient address rejected: Access denied', null, 'hard', 'mailbox-unknown'],
    ['550 #5.1.0 Address rejected.', '5.1.0', 'hard', 'mailbox-unknown'],
    ['Domain b.example does not accept mail (nullMX)', '5.1.10', 'hard', 'domain'],
    ['Host or domain name not found', '5.4.4', 'hard', 'domain'],
    ['Host not found, try again', '5.4.4', 'soft', 'network'],
    ['', '5.1.2', 'hard', 'domain'],
    ['', '5.2.1', 'hard', 'mailbox-disabled'],
    ['mailbox full', '5.0.0', 'soft', 'mailbox-full'],
    ['450 4.2.0 greylisted', null, 'soft', 'greylisted'],
    ['retry timeout exceeded', '5.0.0', 'soft', 'network'],
    ['550 5.1.1 Mail refused due to recipient preferences', null, 'block', 'policy'],
    ['the sender is listed at spamhaus', null, 'block', 'reputation'],
    ['550 5.7.26 unauthenticated mail: DMARC', null, 'block', 'auth'],
    ['the message was classified as spam', null, 'block', 'content'],
    ['552 5.3.4 message too big', null, 'block', 'size'],
    ['550 no', null, 'block', 'unknown'],
    ['something happened', null, 'soft', 'unknown'],
  ])('%s %s: %s, %s', (text, status, failureClass, category) => {
    expect(classifyFailure(text, status).failure).toEqual({ class: failureClass, category });
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
