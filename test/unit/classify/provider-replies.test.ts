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
    expect(outcome.kind).toBe(['content', 'size', 'policy'].includes(rule.verdict.category) ? 'bounced' : 'deferred');
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
