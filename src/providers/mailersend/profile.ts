/** The relay of MailerSend. */
import { toId } from '../json.ts';
import type { RelayProfile } from '../provider.ts';
import { MAILERSEND_REPLIES } from './replies.ts';

const REPLY_PREFIX = 'message queued as ';

export const MAILERSEND_RELAY: RelayProfile = {
  hosts: ['smtp.mailersend.net'],
  parameters: [],
  // The events of MailerSend contain no header field of the message. Postrider matches an event to a message by the id
  // in the reply of the relay.
  metadata: () => [],
  rewrittenFields: [],
  keepsEnvelopeSender: null,
  maxMessageBytes: null,
  spf: 'v=spf1 include:_spf.mailersend.net ~all',
  connections: null,
  messagesPerConnection: 5,
  replies: MAILERSEND_REPLIES,
  findReference: findMessageId,
  sources: [
    'https://developers.mailersend.com/smtp-relay.html',
    'https://www.mailersend.com/help/how-to-verify-and-authenticate-a-sending-domain',
    'https://www.mailersend.com/help/smtp-configuration-421-error',
  ],
};

/**
 * Returns the provider's id of the message in a reply such as `250 Message queued as 61eec2dc16ae8b627a4b87e7`. The
 * reply code can be absent. Returns null if the reply contains no id.
 */
function findMessageId(text: string): string | null {
  const startIndex = text.toLowerCase().indexOf(REPLY_PREFIX);
  if (startIndex < 0) return null;
  const [id] = text
    .slice(startIndex + REPLY_PREFIX.length)
    .trim()
    .split(' ', 1);
  return toId(id);
}
