import { describe, expect, test } from 'vitest';
import { RULES } from '../../../../src/classify/rules.ts';
import { classifyFailure } from '../../../../src/feedback/read/classify-failure.ts';

const TEMPORARY = { permanent: false, mailboxMissing: false };
const REFUSED = { permanent: true, mailboxMissing: false };
const MISSING = { permanent: true, mailboxMissing: true };

describe('a failure is classified by', () => {
  test.each([
    ['the status in the text rather than the status of the report', '550 5.1.1 unknown', '5.7.1', MISSING],
    ['the reply code in the text rather than the status of the report', '452 out of space', '5.0.0', TEMPORARY],
    ['a status of class 4 anywhere in the text', '550 4.4.7 expired', '5.0.0', TEMPORARY],
    ['the status of the report for a text without a code', 'the door was closed', '5.1.1', MISSING],
    ['a full mailbox rather than a generic status', 'mailbox full', '5.0.0', TEMPORARY],
    ['a full mailbox rather than a generic reply code', '550 quota exceeded', null, TEMPORARY],
    [
      'a status of a full mailbox rather than text about size',
      '552 5.2.2 message exceeds the maximum size',
      null,
      TEMPORARY,
    ],
    ['an expired retry period', '', '4.4.7', TEMPORARY],
    ['an expired retry period with class 5', '', '5.4.7', TEMPORARY],
    ['an expired retry period in the text', 'retry timeout exceeded', '5.0.0', TEMPORARY],
    ['a missing mailbox rather than an expired retry period', 'user unknown: retry timeout exceeded', '5.0.0', MISSING],
    ['policy rather than the mailbox', '550 5.7.1 no such user', null, REFUSED],
    ['content', '554 5.6.0 message content rejected', null, REFUSED],
    ['relaying', '550 relaying denied', null, REFUSED],
    ['size', '552 5.3.4 message too big', null, REFUSED],
    ['the sender’s address', '550 5.1.8 sender address does not exist', null, REFUSED],
    ['an unknown text', 'the server refused the message', null, REFUSED],
    ['a host that does not exist', 'Host or domain name not found', '5.4.4', MISSING],
    ['a host whose lookup failed temporarily', 'Host not found, try again', '5.4.4', TEMPORARY],
    ['a suspended mailbox', '550 account temporarily suspended', '5.0.0', TEMPORARY],
    ['a closed mailbox', '550 5.2.1 closed', null, MISSING],
    ['a number of bytes', 'Your message totalled 550 bytes', null, REFUSED],
  ])('%s', (_, text, status, expected) => {
    expect(classifyFailure(text, status)).toMatchObject(expected);
  });
});

test('no sample reply about policy, reputation, content, size or the sender’s configuration means a missing mailbox', () => {
  const otherSamples = [
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
    if (!otherSamples.includes(expected.reason)) continue;
    for (const sample of samples) {
      const text = sample.slice(sample.indexOf(' ') + 1);
      expect(classifyFailure(text, null).mailboxMissing, text).toBe(false);
    }
  }
});

test('every sample reply that suppresses during delivery means a missing mailbox in a report', () => {
  for (const { result: expected, samples } of RULES) {
    if (expected.kind !== 'permanent' || !expected.suppress) continue;
    for (const sample of samples) {
      const text = sample.slice(sample.indexOf(' ') + 1);
      expect(classifyFailure(text, null), text).toMatchObject(MISSING);
    }
  }
});
