import { expect, test } from 'vitest';
import { classify, classifyOutcome, judge } from '../../../src/classify/classify.ts';
import type { Reply, Stage } from '../../../src/model/outcome.ts';
import { PROVIDERS } from '../../../src/providers/providers.ts';
import { parseReplyLine } from '../../../src/transports/smtp/protocol.ts';
import { listSamples } from '../../rig/rule-samples.ts';

const SES_DOCUMENTATION = 'https://docs.aws.amazon.com/ses/latest/DeveloperGuide/smtp-response-codes.html';
const SPARKPOST_DOCUMENTATION = 'https://support.sparkpost.com/docs/faq/error-messages-smtp';

const throttledDeferral = { kind: 'deferred', category: 'throttled' };
const networkDeferral = { kind: 'deferred', category: 'network' };
const authDeferral = { kind: 'deferred', category: 'auth' };

const listRules = (name: string) => PROVIDERS.find((provider) => provider.name === name)?.relay?.replies ?? [];

function parseSample(sample: string): Reply {
  const stage = sample.slice(0, sample.indexOf(' ')) as Stage;
  return parseReplyLine(stage, sample.slice(stage.length + 1));
}

const REPLY_ROWS = PROVIDERS.flatMap(({ name, relay }) =>
  (relay?.replies ?? []).flatMap((rule) => listSamples(name, rule.name).map((sample) => [name, sample, rule] as const)),
);

test.each(REPLY_ROWS)(
  'the documented reply of the relay of %s has the outcome of its rule: %s',
  (name, sample, rule) => {
    const reply = parseSample(sample);
    expect(judge(reply, listRules(name)).rule?.name).toBe(rule.name);
    const outcome = classify(reply, listRules(name));
    const { category, scope } = rule.verdict;
    const isRefusal = ['content', 'size', 'policy'].includes(category);
    expect(outcome).toMatchObject(isRefusal ? { kind: 'bounced' } : { kind: 'deferred', scope });
    // In each of these replies, the provider refuses the sender or the message, or is busy. None of the replies means
    // that the mailbox does not exist.
    expect(classifyOutcome(outcome)?.class).not.toBe('hard');
  },
);

test('an address that contains the phrase of a rule does not match the rule', () => {
  const rules = listRules('ses');
  const text = 'rcpt 550 5.1.1 <"configuration set does not exist"@b.example>: user unknown';
  expect(classify(parseSample(text), rules)).toMatchObject({ kind: 'bounced', reason: 'recipient-unknown' });
});

test.each([
  ['ses', SES_DOCUMENTATION, 'greeting 421 Too many concurrent SMTP connections', throttledDeferral],
  ['ses', SES_DOCUMENTATION, 'content 451 Temporary service failure', networkDeferral],
  ['ses', SES_DOCUMENTATION, 'content 451 Timeout waiting for data from client', networkDeferral],
  ['ses', SES_DOCUMENTATION, 'auth 454 Temporary authentication failure', networkDeferral],
  ['ses', SES_DOCUMENTATION, 'auth 535 Authentication Credentials Invalid', authDeferral],
  ['ses', SES_DOCUMENTATION, 'mail 530 Authentication required', authDeferral],
  ['sparkpost', SPARKPOST_DOCUMENTATION, 'auth 535 5.7.8 Sorry. No authentication type succeeded', authDeferral],
] as const)(
  'the rules for all servers apply to the reply of the relay of %s (documented in %s): %s',
  (name, _source, sample, expected) => {
    const outcome = classify(parseSample(sample), listRules(name));
    expect({ kind: outcome.kind, category: classifyOutcome(outcome)?.category }).toEqual(expected);
  },
);

/** In usual words, for which most relays have no rule of their own. */
const FAULTS = [
  ['sign-in refused', 'auth 535 5.7.8 Authentication failed', 'configuration', 'route'],
  ['account paused', 'content 554 5.7.1 Sending is paused: your account is under review', 'configuration', 'route'],
  ['account suspended', 'mail 550 5.7.1 Account suspended', 'configuration', 'route'],
  ['account suspended', 'rcpt 550 Your account has been suspended', 'configuration', 'route'],
  ['quota used up', 'mail 452 4.5.3 Daily message limit exceeded', 'quota', 'route'],
  ['quota used up', 'content 550 5.7.0 Monthly quota exceeded', 'quota', 'route'],
  ['throttled', 'mail 452 4.4.5 Messages per second limit exceeded', 'throttled', 'route'],
  ['throttled', 'mail 451 4.7.0 Rate limit exceeded', 'throttled', 'route'],
  ['throttled', 'content 550 5.7.0 Too many emails per second', 'throttled', 'route'],
  ['sender not verified', 'mail 550 5.7.1 The sender is not accepted', 'sender-refused', 'sender'],
  ['sender not verified', 'content 550 5.7.1 Sender domain not verified', 'configuration', 'sender'],
  ['sender not verified', 'rcpt 553 5.7.1 <a@b.example>: Sender not allowed', 'configuration', 'sender'],
] as const;

test.each(PROVIDERS.flatMap(({ name }) => FAULTS.map((fault) => [name, ...fault] as const)))(
  'the relay of %s (%s) bounces no message: %s',
  (name, _case, sample, reason, scope) => {
    expect(classify(parseSample(sample), listRules(name))).toMatchObject({ kind: 'deferred', reason, scope });
  },
);

test.each([
  ['mail 553 5.1.8 The domain of the sender does not exist', 'sender-refused'],
  ['content 554 5.7.1 Rejected', 'policy'],
])('every relay refuses it, so it bounces: %s', (sample, reason) => {
  expect(classify(parseSample(sample))).toMatchObject({ kind: 'bounced', reason });
});
