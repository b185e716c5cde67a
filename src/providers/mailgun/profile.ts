/** The relay of Mailgun. */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { RelayProfile } from '../provider.ts';
import { MAILGUN_REPLIES } from './replies.ts';

export const MAILGUN_RELAY: RelayProfile = {
  hosts: ['smtp.mailgun.org', 'smtp.eu.mailgun.org'],
  parameters: [],
  metadata: (messageId) => [{ name: 'X-Mailgun-Variables', value: JSON.stringify({ [MESSAGE_ID_TAG]: messageId }) }],
  rewrittenFields: [],
  keepsEnvelopeSender: null,
  maxMessageBytes: 25 * 1024 * 1024,
  spf: 'v=spf1 include:mailgun.org ~all',
  // No connection limit is documented.
  connections: null,
  messagesPerConnection: null,
  replies: MAILGUN_REPLIES,
  findReference: null,
  sources: [
    'https://documentation.mailgun.com/docs/mailgun/user-manual/sending-messages/send-smtp',
    'https://documentation.mailgun.com/docs/mailgun/user-manual/sending-messages/send-http',
    'https://documentation.mailgun.com/docs/mailgun/user-manual/sending-messages/send-attachments',
    'https://documentation.mailgun.com/docs/mailgun/user-manual/domains/domains-verify',
  ],
};
