/**
 * Tests the documented replies of the relays of providers. Each reply has the outcome of its rule, and the rule
 * applies only to this relay.
 */
import { expect, test } from 'vitest';
import { classify, findRule } from '../../../src/classify/classify.ts';
import { classifyOutcome } from '../../../src/classify/failure.ts';
import type { Reply, Stage } from '../../../src/model/outcome.ts';
import { PROVIDERS } from '../../../src/providers/providers.ts';
import { parseReplyLine } from '../../../src/transports/smtp/protocol.ts';

const SES_CODES = 'https://docs.aws.amazon.com/ses/latest/DeveloperGuide/smtp-response-codes.html';
const SPARKPOST_DOCUMENTATION = 'https://support.sparkpost.com/docs/faq/error-messages-smtp';

const throttledOutcome = { kind: 'deferred', category: 'throttled' };
const networkDeferral = { kind: 'deferred', category: 'network' };
const configuration = { kind: 'deferred', category: 'auth' };

const listRules = (name: string) => PROVIDERS.find((provider) => provider.name === name)?.relay?.replies ?? [];

function parseSample(sample: string): Reply {
  const stage = sample.slice(0, sample.indexOf(' ')) as Stage;
  return parseReplyLine(stage, sample.slice(stage.length + 1));
}

const ROWS = PROVIDERS.flatMap(({ name, relay }) =>
  (relay?.replies ?? []).flatMap((rule) => rule.samples.map((sample) => [name, sample, rule] as const)),
);

test.each(ROWS)('the relay of %s, %s', (name, sample, rule) => {
  const reply = parseSample(sample);
  expect(findRule(reply, listRules(name))?.name).toBe(rule.name);
  const outcome = classify(reply, listRules(name));
  const { result } = rule;
  expect(outcome).toMatchObject(
    result.kind === 'permanent'
      ? { kind: 'bounced', reason: result.reason, suppress: false }
      : { kind: 'deferred', reason: result.reason, scope: result.scope },
  );
  // The provider refuses the sender or the message, or is busy. No such reply means that the mailbox does not exist.
  expect(classifyOutcome(outcome)?.class).not.toBe('hard');
});

test.each([
  ['ses', 'content 454 Throttling failure: Maximum sending rate exceeded', throttledOutcome, 'message'],
  ['ses', 'content 454 Throttling failure: Daily message quota exceeded', throttledOutcome, 'transport'],
  ['ses', 'content 554 Message rejected: Email address is not verified.', configuration, 'message'],
  ['ses', 'content 554 Configuration set does not exist.', configuration, 'message'],
  ['ses', 'content 554 Message rejected: Sending paused for this account.', configuration, 'transport'],
  ['sendgrid', 'auth 451 Authentication failed: Maximum credits exceeded', throttledOutcome, 'transport'],
  ['postal', 'content 530 From/Sender name is not valid', configuration, 'message'],
  ['postal', 'rcpt 530 Authentication required', configuration, 'transport'],
  ['mailtrap', 'mail 550 5.7.1 Sending from domain b.example is not allowed', configuration, 'message'],
  [
    'mailgun',
    'content 421 Domain b.example is not allowed to send: recipient limit exceeded',
    throttledOutcome,
    'transport',
  ],
] as const)(
  'the relay of %s, %s: the outcome has the scope on which the circuit breaker depends',
  (name, sample, expected, scope) => {
    const outcome = classify(parseSample(sample), listRules(name));
    expect(outcome).toMatchObject({ kind: expected.kind, scope });
    expect(classifyOutcome(outcome)?.category).toBe(expected.category);
  },
);

test('the rules of a relay do not apply to another server', () => {
  const reply = parseSample('content 530 From/Sender name is not valid');
  expect(classify(reply)).toMatchObject({ kind: 'deferred', reason: 'configuration', scope: 'transport' });
  expect(classify(reply, listRules('ses'))).toEqual(classify(reply));
});

test('an address that contains the phrase of a rule does not match the rule', () => {
  const rules = listRules('ses');
  const text = 'rcpt 550 5.1.1 <"configuration set does not exist"@b.example>: user unknown';
  expect(classify(parseSample(text), rules)).toMatchObject({ kind: 'bounced', reason: 'recipient-unknown' });
});

test.each([
  ['ses', SES_CODES, 'greeting 421 Too many concurrent SMTP connections', throttledOutcome],
  ['ses', SES_CODES, 'content 451 Temporary service failure', networkDeferral],
  ['ses', SES_CODES, 'content 451 Timeout waiting for data from client', networkDeferral],
  ['ses', SES_CODES, 'auth 454 Temporary authentication failure', networkDeferral],
  ['ses', SES_CODES, 'auth 535 Authentication Credentials Invalid', configuration],
  ['ses', SES_CODES, 'mail 530 Authentication required', configuration],
  ['sparkpost', SPARKPOST_DOCUMENTATION, 'auth 535 5.7.8 Sorry. No authentication type succeeded', configuration],
] as const)('the relay of %s (%s), %s: the rules for all servers apply', (name, _source, sample, expected) => {
  const outcome = classify(parseSample(sample), listRules(name));
  expect({ kind: outcome.kind, category: classifyOutcome(outcome)?.category }).toEqual(expected);
});
