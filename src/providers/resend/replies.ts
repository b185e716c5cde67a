/**
 * The replies of the relay of Resend. Public logs show that the relay replies with the error texts of the API, so the
 * rules match these texts. The reply codes for exceeded limits are not documented, so no rule matches a reply code.
 */
import { ROUTE_THROTTLED, SENDER_FAULT, THROTTLED } from '../../model/failure-rule.ts';
import type { RelayReply } from '../provider.ts';

const ERRORS_URL = 'https://resend.com/docs/api-reference/errors';

export const RESEND_REPLIES: readonly RelayReply[] = [
  {
    name: 'domain of the sender not verified',
    phrases: ['domain is not verified'],
    verdict: SENDER_FAULT,
    samples: [
      'content 550 The b.example domain is not verified. Please, add and verify your domain on https://resend.com/domains',
    ],
    source: ERRORS_URL,
  },
  {
    name: 'recipient not allowed before a domain is verified',
    phrases: ['you can only send testing emails to your own email address'],
    verdict: SENDER_FAULT,
    samples: [
      'content 550 You can only send testing emails to your own email address (a@b.example). To send emails to other recipients, please verify a domain at resend.com/domains',
    ],
    source: ERRORS_URL,
  },
  {
    name: 'rate limit of the team exceeded',
    phrases: ['you can only make', 'too many requests'],
    verdict: THROTTLED,
    samples: ['content 450 Too many requests. You can only make 2 requests per second.'],
    source: ERRORS_URL,
  },
  {
    name: 'quota of the team used up',
    phrases: ['you have reached your daily email sending quota', 'you have reached your monthly email sending quota'],
    verdict: ROUTE_THROTTLED,
    samples: ['content 450 You have reached your daily email sending quota.'],
    source: ERRORS_URL,
  },
];
