/** The documented replies of the relay of SendGrid. */
import { ROUTE_THROTTLED, SENDER_FAULT } from '../../model/failure-rule.ts';
import type { RelayReply } from '../provider.ts';

const ERRORS_URL = 'https://sendgrid.com/docs/for-developers/sending-email/smtp-errors-and-troubleshooting/';
const IDENTITY_URL = 'https://github.com/sahat/hackathon-starter/issues/1083';
const CREDITS_ARTICLE = 'Adobe Commerce support, “Emails not sent when SendGrid credits exceeded on Adobe Commerce”';

export const SENDGRID_REPLIES: readonly RelayReply[] = [
  {
    name: 'credits used up',
    stages: ['auth'],
    phrases: ['maximum credits exceeded'],
    // The relay refuses the authentication until the plan renews or an operator buys credits.
    verdict: ROUTE_THROTTLED,
    samples: ['auth 451 Authentication failed: Maximum credits exceeded'],
    source: CREDITS_ARTICLE,
  },
  {
    name: 'sender not verified',
    phrases: ['does not match a verified sender identity'],
    verdict: SENDER_FAULT,
    samples: [
      'content 550 The from address does not match a verified Sender Identity. Mail cannot be sent until this error is resolved.',
    ],
    source: IDENTITY_URL,
  },
  {
    name: 'sender not authorized',
    codes: [403],
    phrases: ['you are not authorized to send from that email address'],
    verdict: SENDER_FAULT,
    samples: ['content 403 You are not authorized to send from that email address'],
    source: ERRORS_URL,
  },
];
