/** The documented replies of the relay of SparkPost. */
import { CONTENT_REFUSAL, POLICY_REFUSAL, SENDER_FAULT } from '../../model/failure-rule.ts';
import type { RelayReply } from '../provider.ts';

const ERRORS_URL = 'https://support.sparkpost.com/docs/faq/error-messages-smtp';
const SUPPRESSED_URL = 'https://support.sparkpost.com/docs/tech-resources/preparing-for-async-suppressions';

export const SPARKPOST_REPLIES: readonly RelayReply[] = [
  {
    name: 'sending domain not configured',
    codes: [550],
    enhancedCodes: ['5.7.1'],
    phrases: ['unconfigured sending domain'],
    verdict: SENDER_FAULT,
    samples: ['content 550 5.7.1 Unconfigured Sending Domain <b.example>'],
    source: ERRORS_URL,
  },
  {
    name: 'metadata not accepted',
    codes: [550],
    phrases: ['json parsing error in x-msys-api'],
    verdict: CONTENT_REFUSAL,
    samples: ['content 550 5.6.0 JSON parsing error in X-MSYS-API'],
    source: ERRORS_URL,
  },
  {
    name: 'recipient on the suppression list of SparkPost',
    codes: [550, 554],
    phrases: ['recipient address was suppressed due to customer policy'],
    verdict: POLICY_REFUSAL,
    samples: ['rcpt 554 5.7.1 recipient address was suppressed due to customer policy'],
    source: SUPPRESSED_URL,
  },
];
