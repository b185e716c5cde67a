/** The relay of Brevo. */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { RelayProfile } from '../provider.ts';
import { BREVO_REPLIES } from './replies.ts';

export const BREVO_RELAY: RelayProfile = {
  hosts: ['smtp-relay.brevo.com'],
  parameters: [],
  metadata: (messageId) => [{ name: 'X-Mailin-custom', value: JSON.stringify({ [MESSAGE_ID_TAG]: messageId }) }],
  rewrittenFields: [],
  keepsEnvelopeSender: null,
  maxMessageBytes: null,
  spf: null,
  // No connection limit is documented.
  connections: null,
  messagesPerConnection: null,
  replies: BREVO_REPLIES,
  findReference: null,
  sources: ['https://developers.brevo.com/docs/smtp-integration'],
};
