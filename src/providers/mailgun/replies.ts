/** The documented replies of the relay of Mailgun. */
import { CONFIGURATION_FAULT, ROUTE_THROTTLED, SENDER_FAULT } from '../../model/failure-rule.ts';
import type { RelayReply } from '../provider.ts';

const LIMIT_URL = 'https://github.com/mailgun/mailgun-java/issues/50';
const ACTIVATION_URL = 'https://github.com/Monstarrrr/rebutify/issues/162';
const AUTHORIZED_RECIPIENTS_URL = 'https://help.mailgun.com/hc/en-us/articles/217531258-Authorized-Recipients';

export const MAILGUN_REPLIES: readonly RelayReply[] = [
  {
    name: 'limit of the domain exceeded',
    phrases: ['is not allowed to send: recipient limit exceeded'],
    // The credentials of the relay belong to one domain, so the limit concerns every message.
    verdict: ROUTE_THROTTLED,
    samples: [
      'content 421 Domain b.example is not allowed to send: recipient limit exceeded, try again after Mon, 25 Aug 2025 07:00:31 UTC',
    ],
    source: LIMIT_URL,
  },
  {
    name: 'domain or account not allowed to send',
    phrases: ['is not allowed to send'],
    verdict: CONFIGURATION_FAULT,
    samples: [
      'content 421 Domain b.example is not allowed to send: Please activate your Mailgun account. Check your inbox or log in to your control panel to resend the activation email.',
    ],
    source: ACTIVATION_URL,
  },
  {
    name: 'recipient not authorized for a sandbox domain or a free account',
    phrases: ['are for test purposes only'],
    // The phrase is from an error text of the API. The reply code is not documented. The relay still accepts messages
    // to authorized recipients.
    verdict: SENDER_FAULT,
    samples: [
      'content 550 Sandbox subdomains are for test purposes only. Please add your own domain or add the address to authorized recipients in Account Settings.',
    ],
    source: AUTHORIZED_RECIPIENTS_URL,
  },
];
