/** The SMTP interface of Amazon SES. */
import { MESSAGE_ID_TAG } from '../../model/feedback.ts';
import type { RelayProfile } from '../provider.ts';
import { SES_REPLIES } from './replies.ts';

export const SES_RELAY: RelayProfile = {
  hosts: [
    'email-smtp.*.amazonaws.com',
    'email-smtp-fips.*.amazonaws.com',
    // An endpoint of a virtual private cloud.
    '*.email-smtp.*.vpce.amazonaws.com',
  ],
  parameters: ['configuration-set'],
  metadata: (messageId, parameters) => {
    const configurationSet = parameters['configuration-set'];
    return [
      { name: 'X-SES-MESSAGE-TAGS', value: `${MESSAGE_ID_TAG}=${messageId}` },
      ...(configurationSet === undefined ? [] : [{ name: 'X-SES-CONFIGURATION-SET', value: configurationSet }]),
    ];
  },
  rewrittenFields: ['date', 'message-id'],
  // `554 Transaction failed: Duplicate header 'DKIM-Signature'`; the API refuses such a message with the same text.
  acceptsOneSignature: true,
  keepsEnvelopeSender: false,
  maxMessageBytes: 40 * 1024 * 1024,
  spf: 'v=spf1 include:amazonses.com ~all',
  // The maximum number of connections is not documented. The relay refuses a connection above this number with the
  // reply code 421.
  connections: null,
  messagesPerConnection: null,
  replies: SES_REPLIES,
  findReference: null,
  sources: [
    'https://docs.aws.amazon.com/ses/latest/dg/send-email-smtp.html',
    'https://docs.aws.amazon.com/ses/latest/dg/event-publishing-send-email.html',
    'https://docs.aws.amazon.com/ses/latest/dg/header-fields.html',
    'https://docs.aws.amazon.com/ses/latest/dg/quotas.html',
  ],
};
