/** The relay of Mandrill. */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { RelayProfile } from '../provider.ts';

export const MANDRILL_RELAY: RelayProfile = {
  hosts: ['smtp.mandrillapp.com'],
  parameters: [],
  metadata: (messageId) => [{ name: 'X-MC-Metadata', value: JSON.stringify({ [MESSAGE_ID_TAG]: messageId }) }],
  rewrittenFields: [],
  keepsEnvelopeSender: false,
  maxMessageBytes: 25 * 1024 * 1024,
  spf: null,
  // No connection limit is documented. After the authentication, the relay accepts every message and reports a failure
  // as an event (https://mandrill.zendesk.com/hc/en-us/articles/213530577-SMTP-Troubleshooting-Tips).
  connections: null,
  messagesPerConnection: null,
  replies: [],
  findReference: null,
  sources: [
    'https://mailchimp.com/developer/transactional/docs/smtp-integration/',
    'https://mailchimp.com/developer/transactional/docs/authentication-delivery/',
    'https://mailchimp.com/developer/transactional/docs/outbound-email/',
  ],
};
