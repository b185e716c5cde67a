/** The documented replies of the relay of SparkPost. */
import type { RelayReply } from '../provider.ts';

const ERRORS_URL = 'https://support.sparkpost.com/docs/faq/error-messages-smtp';
const SUPPRESSED_URL = 'https://support.sparkpost.com/docs/tech-resources/preparing-for-async-suppressions';

export const SPARKPOST_REPLIES: readonly RelayReply[] = [
  {
    name: 'sending domain not configured',
    codes: [550],
    enhancedCodes: ['5.7.1'],
    phrases: ['unconfigured sending domain'],
    result: { kind: 'temporary', reason: 'configuration', scope: 'message' },
    samples: ['content 550 5.7.1 Unconfigured Sending Domain <b.example>'],
    source: ERRORS_URL,
  },
  {
    name: 'metadata not accepted',
    codes: [550],
    phrases: ['json parsing error in x-msys-api'],
    result: { kind: 'permanent', reason: 'content', suppress: false },
    samples: ['content 550 5.6.0 JSON parsing error in X-MSYS-API'],
    source: ERRORS_URL,
  },
  {
    name: 'recipient on the suppression list of SparkPost',
    codes: [550, 554],
    phrases: ['recipient address was suppressed due to customer policy'],
    result: { kind: 'permanent', reason: 'policy', suppress: false },
    samples: ['rcpt 554 5.7.1 recipient address was suppressed due to customer policy'],
    source: SUPPRESSED_URL,
  },
];
