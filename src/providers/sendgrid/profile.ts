/** The relay of SendGrid. */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { RelayProfile } from '../provider.ts';

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
  connections: null,
  findReference: null,
  sources: [
    'https://www.twilio.com/docs/sendgrid/for-developers/sending-email/integrating-with-the-smtp-api',
    'https://www.twilio.com/docs/sendgrid/for-developers/sending-email/building-an-x-smtpapi-header',
    'https://www.twilio.com/docs/sendgrid/for-developers/sending-email/unique-arguments',
    'https://www.twilio.com/docs/sendgrid/api-reference/mail-send/limitations',
  ],
};
