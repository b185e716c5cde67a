/** The documented replies of the SMTP server of Postal (app/lib/smtp_server/client.rb). */
import { CONFIGURATION_FAULT, SENDER_FAULT, SIZE_REFUSAL } from '../../model/failure-rule.ts';
import type { RelayReply } from '../provider.ts';

const CLIENT_URL = 'https://github.com/postalserver/postal/blob/main/app/lib/smtp_server/client.rb';

export const POSTAL_REPLIES: readonly RelayReply[] = [
  {
    name: 'domain of the sender not verified',
    stages: ['content'],
    codes: [530],
    phrases: ['from/sender name is not valid'],
    // On other servers, the reply code 530 means `authentication required`.
    verdict: SENDER_FAULT,
    samples: ['content 530 From/Sender name is not valid'],
    source: CLIENT_URL,
  },
  {
    name: 'mail server suspended',
    codes: [535],
    phrases: ['mail server has been suspended'],
    verdict: CONFIGURATION_FAULT,
    samples: ['rcpt 535 Mail server has been suspended'],
    source: CLIENT_URL,
  },
  {
    name: 'message too large',
    codes: [552],
    phrases: ['message too large'],
    verdict: SIZE_REFUSAL,
    samples: ['content 552 Message too large (maximum size 14MB)'],
    source: CLIENT_URL,
  },
];
