/** The relay of SparkPost. */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { RelayProfile } from '../provider.ts';
import { SPARKPOST_REPLIES } from './replies.ts';

export const SPARKPOST_RELAY: RelayProfile = {
  hosts: ['smtp.sparkpostmail.com', 'smtp.eu.sparkpostmail.com'],
  parameters: [],
  metadata: (messageId) => [
    { name: 'X-MSYS-API', value: JSON.stringify({ metadata: { [MESSAGE_ID_TAG]: messageId } }) },
  ],
  rewrittenFields: [],
  keepsEnvelopeSender: false,
  maxMessageBytes: null,
  spf: null,
  connections: 10,
  messagesPerConnection: null,
  replies: SPARKPOST_REPLIES,
  findReference: null,
  sources: [
    'https://developers.sparkpost.com/api/smtp/',
    'https://support.sparkpost.com/docs/tech-resources/smtp-rest-api-performance',
  ],
};
