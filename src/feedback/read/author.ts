/** Determines the author of a received message: a mail server, an automatic responder or a person. */
import { type Entity, listLeafParts } from './entity.ts';
import { findFieldValue } from './fields.ts';
import {
  AUTO_REPLY_FIELDS,
  AUTO_REPLY_PRECEDENCE,
  AUTO_REPLY_SUBJECTS,
  DELAY_PHRASES,
  FAILURE_PHRASES,
  SERVER_SENDERS,
} from './kind-phrases.ts';
import { containsPhrase } from './phrases.ts';

export type AuthorKind = 'server' | 'machine' | 'person';

/**
 * Returns true if the message is a reply: its subject begins with `Re:`, or it has an In-Reply-To field. A bounce is
 * never a reply.
 */
export function isReply(message: Entity, subject: string): boolean {
  return subject.startsWith('re:') || findFieldValue(message.fields, 'in-reply-to') !== null;
}

/** Determines the author from the header fields and the normalized subject. The default is `person`. */
export function detectAuthor(message: Entity, subject: string): AuthorKind {
  // RFC 8098: in a disposition notification, the mail client of the recipient reports that the message was displayed or
  // deleted.
  if (listLeafParts(message).some(({ type }) => type === 'message/disposition-notification')) return 'machine';
  if (AUTO_REPLY_FIELDS.some((name) => findFieldValue(message.fields, name) !== null)) return 'machine';
  const isBounce = containsPhrase(subject, FAILURE_PHRASES) || containsPhrase(subject, DELAY_PHRASES);
  const isAutoReply = containsPhrase(subject, AUTO_REPLY_SUBJECTS);
  if (isAutoReply && !isBounce) return 'machine';
  if (isFromServer(message)) return 'server';
  const precedence = findFieldValue(message.fields, 'precedence')?.toLowerCase() ?? '';
  // RFC 3834 section 5.2 defines the value `auto-replied` for automatic replies. Mail servers use the value in bounces
  // too, so this check follows the check for servers.
  const isAutoReplied =
    findFieldValue(message.fields, 'auto-submitted')?.toLowerCase().startsWith('auto-replied') === true;
  if ((isAutoReplied || AUTO_REPLY_PRECEDENCE.includes(precedence)) && !isBounce) return 'machine';
  // RFC 5321 section 4.5.5: bounces have the null return path.
  return isBounce || findFieldValue(message.fields, 'return-path') === '<>' ? 'server' : 'person';
}

function isFromServer(message: Entity): boolean {
  if (message.parameters.get('report-type')?.toLowerCase() === 'delivery-status') return true;
  if (findFieldValue(message.fields, 'x-failed-recipients') !== null) return true;
  const fromField = findFieldValue(message.fields, 'from')?.toLowerCase() ?? '';
  // Some servers send bounces without an author.
  if (fromField === '' || fromField.includes('<>')) return true;
  return SERVER_SENDERS.some((name) => fromField.includes(name));
}
