/** The relay of MailerSend. */
import { toId } from '../json.ts';
import type { RelayProfile } from '../provider.ts';

const REPLY_PREFIX = 'message queued as ';

export const MAILERSEND_RELAY: RelayProfile = {
  hosts: ['smtp.mailersend.net'],
  parameters: [],
  // MailerSend has no header field that its events return. Events are matched by the id in the reply.
  metadata: () => [],
  rewrittenFields: [],
  keepsEnvelopeSender: null,
  maxMessageBytes: null,
  spf: 'v=spf1 include:_spf.mailersend.net ~all',
  connections: null,
  referenceOfReply: findMessageId,
  sources: [
    'https://developers.mailersend.com/smtp-relay.html',
    'https://www.mailersend.com/help/how-to-verify-and-authenticate-a-sending-domain',
  ],
};

/** Returns the id in `250 Message queued as 61eec2dc16ae8b627a4b87e7`, with or without the code, or null. */
function findMessageId(text: string): string | null {
  const start = text.toLowerCase().indexOf(REPLY_PREFIX);
  if (start < 0) return null;
  const [id] = text
    .slice(start + REPLY_PREFIX.length)
    .trim()
    .split(' ', 1);
  return toId(id);
}
