/** The relays of Mailtrap: one for the transactional stream and one for the bulk stream. */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { RelayProfile } from '../provider.ts';
import { MAILTRAP_REPLIES } from './replies.ts';

export const MAILTRAP_RELAY: RelayProfile = {
  hosts: ['live.smtp.mailtrap.io', 'bulk.smtp.mailtrap.io'],
  parameters: [],
  metadata: (messageId) => [{ name: 'X-MT-Custom-Variables', value: JSON.stringify({ [MESSAGE_ID_TAG]: messageId }) }],
  rewrittenFields: [],
  keepsEnvelopeSender: null,
  maxMessageBytes: null,
  spf: null,
  // No connection limit is documented.
  connections: null,
  messagesPerConnection: null,
  replies: MAILTRAP_REPLIES,
  findReference: null,
  sources: [
    'https://docs.mailtrap.io/email-api-smtp/setup/smtp-integration',
    'https://docs.mailtrap.io/email-api-smtp/advanced/custom-variables',
    'https://docs.mailtrap.io/email-api-smtp/setup/sending-domain',
  ],
};
