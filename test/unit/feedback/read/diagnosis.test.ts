import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RULES } from '../../../../src/classify/rules.ts';
import { diagnose, withFailureClass } from '../../../../src/feedback/read/diagnosis.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES } from '../../../../src/model/failure.ts';
import { selectCaseCount } from '../../../rig/sample.ts';

const HARD_CATEGORIES = ['mailbox-unknown', 'mailbox-disabled', 'domain'];

// The codes in the text take precedence over the status of the report, and a phrase over a generic code.
test.each([
  ['550 5.1.1 unknown', '5.7.1', true, 'hard', 'mailbox-unknown'],
  ['452 out of space', '5.0.0', false, 'soft', 'mailbox-full'],
  ['550 4.4.7 expired', '5.0.0', false, 'soft', 'network'],
  ['the door was closed', '5.1.1', true, 'hard', 'mailbox-unknown'],
  ['mailbox full', '5.0.0', false, 'soft', 'mailbox-full'],
  ['', '4.4.7', false, 'soft', 'network'],
  ['', '5.4.7', false, 'soft', 'network'],
  ['', '5.1.2', true, 'hard', 'domain'],
  ['', '5.2.1', true, 'hard', 'mailbox-disabled'],
  ['user unknown: retry timeout exceeded', '5.0.0', true, 'hard', 'mailbox-unknown'],
  ['550 5.7.1 no such user', null, true, 'block', 'policy'],
  ['Host or domain name not found', '5.4.4', true, 'hard', 'domain'],
  ['Host not found, try again', '5.4.4', false, 'soft', 'network'],
  ['Domain b.example does not accept mail (nullMX)', '5.1.10', true, 'hard', 'domain'],
  ['550 #5.1.0 Address rejected.', '5.1.0', true, 'hard', 'mailbox-unknown'],
  ['550 no', null, true, 'block', 'unknown'],
  ['the server refused the message', null, true, 'soft', 'unknown'],
  ['Your message totalled 550 bytes', null, true, 'soft', 'unknown'],
  ['550 user unknown\n421 mx.example: connection timed out', null, true, 'hard', 'mailbox-unknown'],
  ['error after MAIL FROM:<s@c.example>: 553 5.1.0 c.example is not a valid user', null, true, 'block', 'policy'],
  ['<mailbox.full@over-quota.example>: blocked@spam.example', null, true, 'soft', 'unknown'],
  ['the mailbox\n   is full', null, false, 'soft', 'mailbox-full'],
])('%s %s is permanent: %s, %s, %s', (text, status, permanent, failureClass, category) => {
  expect(diagnose(text, status)).toMatchObject({ permanent, failure: { class: failureClass, category } });
});

test('a hard failure is about the address and is permanent', () => {
  const part = fc.oneof(
    fc.constantFrom(...RULES.flatMap(({ phrases }) => phrases ?? [])),
    fc.constantFrom('450', '550', '552', '556', '5.1.1', '5.2.1', '5.2.2', '5.4.1', '5.7.1', '4.4.7'),
    fc.string({ maxLength: 8 }),
  );
  const texts = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(' '));
  const statuses = fc.constantFrom(null, '4.2.1', '5.0.0', '5.1.1', '5.1.2', '5.2.1', '5.2.2', '5.4.4', '5.7.1');
  fc.assert(
    fc.property(texts, statuses, (text, status) => {
      const { failure, permanent } = diagnose(text, status);
      if (failure.class !== 'hard') return;
      expect(HARD_CATEGORIES).toContain(failure.category);
      expect(permanent).toBe(true);
    }),
    { numRuns: selectCaseCount(100, 2_000) },
  );
});

test('a hard bounce of a provider has a category about the address, for every diagnosis', () => {
  for (const category of FAILURE_CATEGORIES) {
    for (const failureClass of FAILURE_CLASSES)
      expect(HARD_CATEGORIES).toContain(withFailureClass('hard', { class: failureClass, category }).category);
  }
});
