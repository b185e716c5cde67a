/** The relay of Postmark. */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { RelayProfile } from '../provider.ts';

export const POSTMARK_RELAY: RelayProfile = {
  hosts: ['smtp.postmarkapp.com', 'smtp-broadcasts.postmarkapp.com'],
  parameters: ['stream'],
  metadata: (messageId, { stream }) => [
    { name: `X-PM-Metadata-${MESSAGE_ID_TAG}`, value: messageId },
    { name: 'X-PM-KeepID', value: 'true' },
    ...(stream === undefined ? [] : [{ name: 'X-PM-Message-Stream', value: stream }]),
  ],
  rewrittenFields: [],
  keepsEnvelopeSender: false,
  maxMessageBytes: 10 * 1024 * 1024,
  spf: null,
  // No reply is documented. The relay accepts every message, and Postmark reports a failure as a bounce of the type
  // SMTPApiError.
  connections: 10,
  messagesPerConnection: null,
  replies: [],
  findReference: null,
  sources: [
    'https://postmarkapp.com/developer/user-guide/send-email-with-smtp',
    'https://postmarkapp.com/support/article/1125-custom-metadata-faq',
    'https://postmarkapp.com/support/article/do-we-have-rate-limits-for-smtp',
  ],
};
