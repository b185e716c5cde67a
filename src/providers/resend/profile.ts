/** The relay of Resend. */
import type { RelayProfile } from '../provider.ts';
import { RESEND_REPLIES } from './replies.ts';

/**
 * The header field that contains the message id. Resend has no field for metadata and returns custom header fields in
 * its events.
 */
export const ID_FIELD = 'X-Postrider-Id';

export const RESEND_RELAY: RelayProfile = {
  hosts: ['smtp.resend.com'],
  parameters: [],
  metadata: (messageId) => [{ name: ID_FIELD, value: messageId }],
  rewrittenFields: [],
  keepsEnvelopeSender: false,
  maxMessageBytes: 40 * 1024 * 1024,
  // The SPF record of Resend is at a subdomain, `send` by default, and not at the sending domain.
  spf: null,
  // No connection limit is documented for the relay. The rate limit of the API applies to a team.
  connections: null,
  messagesPerConnection: null,
  replies: RESEND_REPLIES,
  findReference: null,
  sources: [
    'https://resend.com/docs/send-with-smtp',
    'https://resend.com/docs/dashboard/domains/introduction',
    'https://resend.com/docs/dashboard/emails/attachments',
  ],
};
