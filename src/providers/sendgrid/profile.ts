/** The relay of SendGrid. */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { RelayProfile } from '../provider.ts';
import { SENDGRID_REPLIES } from './replies.ts';

export const SENDGRID_RELAY: RelayProfile = {
  hosts: ['smtp.sendgrid.net'],
  parameters: [],
  metadata: (messageId) => [
    { name: 'X-SMTPAPI', value: JSON.stringify({ unique_args: { [MESSAGE_ID_TAG]: messageId } }) },
  ],
  rewrittenFields: [],
  keepsEnvelopeSender: null,
  maxMessageBytes: 30 * 1024 * 1024,
  spf: null,
  // SendGrid documents at most 10,000 connections from one server and 5,000 messages per connection. Both numbers
  // exceed the limits for all relays.
  connections: null,
  messagesPerConnection: null,
  replies: SENDGRID_REPLIES,
  findReference: null,
  sources: [
    'https://www.twilio.com/docs/sendgrid/for-developers/sending-email/integrating-with-the-smtp-api',
    'https://www.twilio.com/docs/sendgrid/for-developers/sending-email/building-an-x-smtpapi-header',
    'https://www.twilio.com/docs/sendgrid/for-developers/sending-email/unique-arguments',
    'https://www.twilio.com/docs/sendgrid/api-reference/mail-send/limitations',
    'https://docs.sendgrid.com/for-developers/sending-email/integrating-with-the-smtp-api',
  ],
};
