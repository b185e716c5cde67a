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
  // SendGrid documents a limit of 10,000 connections from one server and a limit of 5,000 messages per connection. Both
  // limits exceed the limits that Postrider applies to all relays.
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
