/** The documented replies of the relay of MailerSend. */
import { THROTTLED } from '../../model/failure-rule.ts';
import type { RelayReply } from '../provider.ts';

const ERROR_421_URL = 'https://www.mailersend.com/help/smtp-configuration-421-error';

export const MAILERSEND_REPLIES: readonly RelayReply[] = [
  {
    name: 'too many messages on one connection',
    codes: [421],
    // The relay accepts further messages on a new connection, so the circuit breaker stays closed.
    phrases: ['service not available'],
    verdict: THROTTLED,
    stages: ['mail', 'rcpt', 'data', 'content'],
    samples: ['mail 421 Service not available'],
    source: ERROR_421_URL,
  },
];
