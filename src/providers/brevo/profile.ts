/** The relay of Brevo. */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { RelayProfile } from '../provider.ts';

export const BREVO_RELAY: RelayProfile = {
  hosts: ['smtp-relay.brevo.com'],
  parameters: [],
  metadata: (messageId) => [{ name: 'X-Mailin-custom', value: JSON.stringify({ [MESSAGE_ID_TAG]: messageId }) }],
  rewrittenFields: [],
  keepsEnvelopeSender: null,
  maxMessageBytes: null,
  spf: null,
  connections: null,
  findReference: null,
  sources: ['https://developers.brevo.com/docs/smtp-integration'],
};
