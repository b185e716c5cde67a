/** The documented replies of the SMTP interface of Amazon SES. */
import { CONFIGURATION_FAULT, ROUTE_THROTTLED, SENDER_FAULT, THROTTLED } from '../../model/failure-rule.ts';
import type { RelayReply } from '../provider.ts';

const CODES_URL = 'https://docs.aws.amazon.com/ses/latest/DeveloperGuide/smtp-response-codes.html';
const QUOTAS_URL = 'https://docs.aws.amazon.com/ses/latest/dg/manage-sending-quotas-errors.html';
const ERRORS_URL = 'https://docs.aws.amazon.com/ses/latest/dg/troubleshoot-error-messages.html';

export const SES_REPLIES: readonly RelayReply[] = [
  {
    name: 'send rate of the account exceeded',
    codes: [454],
    phrases: ['maximum sending rate exceeded'],
    // An attempt one second later can succeed, so the circuit breaker stays closed.
    verdict: THROTTLED,
    samples: ['content 454 Throttling failure: Maximum sending rate exceeded'],
    source: QUOTAS_URL,
  },
  {
    name: 'daily quota of the account used up',
    codes: [454],
    phrases: ['daily message quota exceeded'],
    verdict: ROUTE_THROTTLED,
    samples: ['content 454 Throttling failure: Daily message quota exceeded'],
    source: QUOTAS_URL,
  },
  {
    name: 'too many connections',
    codes: [421],
    phrases: ['too many concurrent smtp connections'],
    verdict: ROUTE_THROTTLED,
    samples: ['greeting 421 Too many concurrent SMTP connections'],
    source: CODES_URL,
  },
  {
    name: 'sender or recipient not verified',
    codes: [554],
    phrases: ['email address is not verified'],
    // The reply concerns only the addresses of this message. Messages with verified addresses are delivered.
    verdict: SENDER_FAULT,
    samples: [
      'content 554 Message rejected: Email address is not verified. The following identities failed the check in region EU-WEST-1: a@b.example',
    ],
    source: ERRORS_URL,
  },
  {
    name: 'configuration set does not exist or is not allowed to send',
    stages: ['data', 'content'],
    codes: [554],
    phrases: ['configuration set'],
    // Each account can have its own configuration set, so messages of other accounts can succeed.
    verdict: SENDER_FAULT,
    samples: ['content 554 Configuration set does not exist.', 'content 554 Configuration set <news> does not exist.'],
    source: ERRORS_URL,
  },
  {
    name: 'sending paused or suspended for the account',
    codes: [554],
    phrases: ['sending paused for this account', 'sending suspended for this account'],
    verdict: CONFIGURATION_FAULT,
    samples: [
      'content 554 Message rejected: Sending paused for this account. For more information, please check the inbox of the email address associated with your AWS account.',
      'content 554 Message rejected: Sending suspended for this account. For more information, please check the inbox of the email address associated with your AWS account.',
    ],
    source: ERRORS_URL,
  },
];
