import { describe, expect, test } from 'vitest';
import { RULES } from '../../../../src/classify/rules.ts';
import { classifyFailure } from '../../../../src/feedback/read/classify-failure.ts';

const PASSING = { permanent: false, mailboxMissing: false };
const REFUSED = { permanent: true, mailboxMissing: false };
const MISSING = { permanent: true, mailboxMissing: true };

describe('what goes before what', () => {
  test.each([
    ['the words’ status before the report’s', '550 5.1.1 unknown', '5.7.1', MISSING],
    ['the words’ reply code before the report’s status', '452 out of space', '5.0.0', PASSING],
    ['a class 4 anywhere in the words', '550 4.4.7 expired', '5.0.0', PASSING],
    ['the report’s status where the words have no code', 'the door was closed', '5.1.1', MISSING],
    ['a full mailbox before a lazy status', 'mailbox full', '5.0.0', PASSING],
    ['a full mailbox before a lazy reply code', '550 quota exceeded', null, PASSING],
    ['a status of a full mailbox before words about size', '552 5.2.2 message exceeds the maximum size', null, PASSING],
    ['given up after a time', '', '4.4.7', PASSING],
    ['given up after a time, in class 5', '', '5.4.7', PASSING],
    ['given up after a time, in words', 'retry timeout exceeded', '5.0.0', PASSING],
    ['a mailbox known to be missing before being given up', 'user unknown: retry timeout exceeded', '5.0.0', MISSING],
    ['policy before the mailbox', '550 5.7.1 no such user', null, REFUSED],
    ['content', '554 5.6.0 message content rejected', null, REFUSED],
    ['relaying', '550 relaying denied', null, REFUSED],
    ['size', '552 5.3.4 message too big', null, REFUSED],
    ['the sender’s address', '550 5.1.8 sender address does not exist', null, REFUSED],
    ['nothing known', 'It was not to be.', null, REFUSED],
    ['a host that does not exist', 'Host or domain name not found', '5.4.4', MISSING],
    ['a host that could not be looked up now', 'Host not found, try again', '5.4.4', PASSING],
    ['a mailbox that sleeps', '550 account temporarily suspended', '5.0.0', PASSING],
    ['a mailbox that is closed', '550 5.2.1 closed', null, MISSING],
    ['a message of so many bytes', 'Your message totalled 550 bytes', null, REFUSED],
  ])('%s', (_, words, status, verdict) => {
    expect(classifyFailure(words, status)).toMatchObject(verdict);
  });
});

test('no sample reply about policy, reputation, content, size or our own faults says that a mailbox is missing', () => {
  const others = [
    'policy',
    'reputation',
    'content',
    'size',
    'configuration',
    'sender-refused',
    'throttled',
    'smtputf8',
  ];
  for (const { verdict, samples } of RULES) {
    if (!others.includes(verdict.reason)) continue;
    for (const sample of samples) {
      const words = sample.slice(sample.indexOf(' ') + 1);
      expect(classifyFailure(words, null).mailboxMissing, words).toBe(false);
    }
  }
});

test('every sample reply that suppresses in a conversation says in a report that the mailbox is missing', () => {
  for (const { verdict, samples } of RULES) {
    if (verdict.kind !== 'permanent' || !verdict.suppress) continue;
    for (const sample of samples) {
      const words = sample.slice(sample.indexOf(' ') + 1);
      expect(classifyFailure(words, null), words).toMatchObject(MISSING);
    }
  }
});
