/** The relay of Mailjet. */
import type { RelayProfile } from '../provider.ts';

export const MAILJET_RELAY: RelayProfile = {
  hosts: ['in-v3.mailjet.com'],
  parameters: [],
  metadata: (messageId) => [{ name: 'X-MJ-CustomID', value: messageId }],
  rewrittenFields: [],
  keepsEnvelopeSender: false,
  maxMessageBytes: null,
  spf: 'v=spf1 include:spf.mailjet.com ~all',
  // No connection limit and no reply are documented.
  connections: null,
  messagesPerConnection: null,
  replies: [],
  findReference: null,
  sources: [
    'https://dev.mailjet.com/docs/smtp_relay/custom_headers',
    'https://documentation.mailjet.com/hc/en-us/articles/360049641733-Authenticating-Domains-with-SPF-and-DKIM-A-Complete-Guide',
  ],
};
