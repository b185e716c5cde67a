/** The documented replies of the relays of Mailtrap. */
import type { RelayReply } from '../provider.ts';

const NOT_ALLOWED_URL = 'https://docs.mailtrap.io/email-api-smtp/help/troubleshooting/sending-from-domain-not-allowed';

export const MAILTRAP_REPLIES: readonly RelayReply[] = [
  {
    name: 'domain of the sender not verified',
    codes: [550],
    // The reply contains the domain between the words `domain` and `is`, or contains no domain.
    phrases: ['sending from domain'],
    result: { kind: 'temporary', reason: 'configuration', scope: 'message' },
    samples: [
      'mail 550 5.7.1 Sending from domain b.example is not allowed',
      'mail 550 5.7.1 Sending from domain is not allowed',
    ],
    source: NOT_ALLOWED_URL,
  },
];
