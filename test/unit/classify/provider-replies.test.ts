/** The documented SMTP replies of managed providers have the outcome and the category that the documentation gives them. */
import { expect, test } from 'vitest';
import { classify } from '../../../src/classify/classify.ts';
import { classifyOutcome } from '../../../src/classify/failure.ts';
import type { Reply, Stage } from '../../../src/model/outcome.ts';

const SES_CODES = 'https://docs.aws.amazon.com/ses/latest/DeveloperGuide/smtp-response-codes.html';
const SES_QUOTAS = 'https://docs.aws.amazon.com/ses/latest/dg/manage-sending-quotas-errors.html';
const SES_ERRORS = 'https://docs.aws.amazon.com/ses/latest/dg/troubleshoot-error-messages.html';
const SENDGRID = 'https://sendgrid.com/docs/for-developers/sending-email/smtp-errors-and-troubleshooting/';
const SENDGRID_IDENTITY = 'https://github.com/sahat/hackathon-starter/issues/1083';
const SPARKPOST = 'https://support.sparkpost.com/docs/faq/error-messages-smtp';
const SPARKPOST_SUPPRESSED = 'https://support.sparkpost.com/docs/tech-resources/preparing-for-async-suppressions';

const throttled = { kind: 'deferred', category: 'throttled' };
const unavailable = { kind: 'deferred', category: 'network' };
const configuration = { kind: 'deferred', category: 'auth' };

function parseReply(stage: Stage, line: string): Reply {
  const {
    code,
    enhanced,
    text = '',
  } = /^(?<code>\d{3}) (?:(?<enhanced>\d\.\d\.\d) )?(?<text>.*)$/.exec(line)?.groups ?? {};
  return { stage, code: Number(code), enhanced: enhanced ?? null, text };
}

test.each([
  ['Amazon SES', SES_QUOTAS, 'content', '454 Throttling failure: Maximum sending rate exceeded', throttled],
  ['Amazon SES', SES_QUOTAS, 'content', '454 Throttling failure: Daily message quota exceeded', throttled],
  ['Amazon SES', SES_CODES, 'greeting', '421 Too many concurrent SMTP connections', throttled],
  ['Amazon SES', SES_CODES, 'content', '451 Temporary service failure', unavailable],
  ['Amazon SES', SES_CODES, 'content', '451 Timeout waiting for data from client', unavailable],
  ['Amazon SES', SES_CODES, 'auth', '454 Temporary authentication failure', unavailable],
  ['Amazon SES', SES_CODES, 'auth', '535 Authentication Credentials Invalid', configuration],
  ['Amazon SES', SES_CODES, 'mail', '530 Authentication required', configuration],
  [
    ...(['Amazon SES', SES_ERRORS, 'content'] as const),
    '554 Message rejected: Email address is not verified. The following identities failed the check in region EU-WEST-1: shop@example.org',
    configuration,
  ],
  ['SendGrid', SENDGRID, 'content', '403 You are not authorized to send from that email address', configuration],
  [
    ...(['SendGrid', SENDGRID_IDENTITY, 'content'] as const),
    '550 The from address does not match a verified Sender Identity. Mail cannot be sent until this error is resolved.',
    configuration,
  ],
  ['SparkPost', SPARKPOST, 'auth', '535 5.7.8 Sorry. No authentication type succeeded', configuration],
  ['SparkPost', SPARKPOST, 'content', '550 5.7.1 Unconfigured Sending Domain <example.org>', configuration],
  [
    'SparkPost',
    SPARKPOST,
    'content',
    '550 5.6.0 JSON parsing error in X-MSYS-API',
    { kind: 'bounced', category: 'content' },
  ],
  [
    ...(['SparkPost', SPARKPOST_SUPPRESSED, 'rcpt'] as const),
    '554 5.7.1 recipient address was suppressed due to customer policy',
    { kind: 'bounced', category: 'policy' },
  ],
] as const)('%s (%s), at %s: %s', (_provider, _source, stage, line, expected) => {
  const outcome = classify(parseReply(stage, line));
  expect({ kind: outcome.kind, category: classifyOutcome(outcome)?.category }).toEqual(expected);
  // The provider refuses the sender or the message, or is busy. No such reply means that the mailbox does not exist.
  expect(classifyOutcome(outcome)?.class).not.toBe('hard');
});
