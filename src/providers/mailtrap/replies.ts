/** The documented replies of the relays of Mailtrap. */
import { SENDER_FAULT } from '../../model/failure-rule.ts';
import type { RelayReply } from '../provider.ts';

const NOT_ALLOWED_URL = 'https://docs.mailtrap.io/email-api-smtp/help/troubleshooting/sending-from-domain-not-allowed';

export const MAILTRAP_REPLIES: readonly RelayReply[] = [
  {
    name: 'domain of the sender not verified',
    codes: [550],
    // The reply contains the domain between the words `domain` and `is`, or contains no domain.
    phrases: ['sending from domain'],
    verdict: SENDER_FAULT,
    samples: [
      'mail 550 5.7.1 Sending from domain b.example is not allowed',
      'mail 550 5.7.1 Sending from domain is not allowed',
    ],
    source: NOT_ALLOWED_URL,
  },
];
