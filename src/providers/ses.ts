import { CONFIGURATION_FAULT, nameRules, ROUTE_QUOTA, ROUTE_THROTTLED, SENDER_FAULT } from '../model/failure.ts';
import { MESSAGE_ID_TAG } from '../model/feedback.ts';
import { type Provider, RELAY_DEFAULTS } from './provider.ts';

export const SES: Provider = {
  name: 'ses',
  title: 'Amazon SES',
  // https://docs.aws.amazon.com/ses/latest/dg/send-email-smtp.html
  // https://docs.aws.amazon.com/ses/latest/dg/event-publishing-send-email.html
  // https://docs.aws.amazon.com/ses/latest/dg/header-fields.html
  // https://docs.aws.amazon.com/ses/latest/dg/quotas.html
  relay: {
    ...RELAY_DEFAULTS,
    hosts: ['email-smtp.*.amazonaws.com', 'email-smtp-fips.*.amazonaws.com', '*.email-smtp.*.vpce.amazonaws.com'],
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
    // Above its undocumented maximum of connections, the relay replies 421.
    // https://docs.aws.amazon.com/ses/latest/DeveloperGuide/smtp-response-codes.html
    // https://docs.aws.amazon.com/ses/latest/dg/manage-sending-quotas-errors.html
    // https://docs.aws.amazon.com/ses/latest/dg/troubleshoot-error-messages.html
    replies: nameRules({
      'send rate of the account exceeded': {
        codes: [454],
        phrases: ['maximum sending rate exceeded'],
        verdict: ROUTE_THROTTLED,
      },
      'daily quota of the account used up': {
        codes: [454],
        phrases: ['daily message quota exceeded'],
        verdict: ROUTE_QUOTA,
      },
      'too many connections': {
        codes: [421],
        phrases: ['too many concurrent smtp connections'],
        verdict: ROUTE_THROTTLED,
      },
      'sender or recipient not verified': {
        codes: [554],
        phrases: ['email address is not verified'],
        // The reply concerns only the addresses of this message. Messages with verified addresses are delivered.
        verdict: SENDER_FAULT,
      },
      'configuration set does not exist or is not allowed to send': {
        stages: ['data', 'content'],
        codes: [554],
        phrases: ['configuration set'],
        // Each account can have its own configuration set, so messages of other accounts can succeed.
        verdict: SENDER_FAULT,
      },
      'sending paused or suspended for the account': {
        codes: [554],
        phrases: ['sending paused for this account', 'sending suspended for this account'],
        verdict: CONFIGURATION_FAULT,
      },
    }),
  },
  events: null,
};
