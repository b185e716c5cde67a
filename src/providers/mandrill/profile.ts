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
  connections: null,
  findReference: null,
  sources: [
    'https://mailchimp.com/developer/transactional/docs/smtp-integration/',
    'https://mailchimp.com/developer/transactional/docs/authentication-delivery/',
    'https://mailchimp.com/developer/transactional/docs/outbound-email/',
  ],
};
