/** Determines the author of a received message: a mail server, an automatic responder or a person. */
import { type Entity, leafParts } from './entity.ts';
import { fieldValue } from './fields.ts';
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
 * Returns true for a reply. A bounce is never a reply. A reply is therefore from a person, not from a server with an unusual
 * author name.
 */
export function isReply(message: Entity, subject: string): boolean {
  return subject.startsWith('re:') || fieldValue(message.fields, 'in-reply-to') !== null;
}

/**
 * Determines the author from the header fields and the normalized subject. Returns `person` when nothing indicates another
 * author.
 */
export function detectAuthor(message: Entity, subject: string): AuthorKind {
  // RFC 8098: the mail client of the recipient reports that the message was displayed or deleted.
  if (leafParts(message).some(({ type }) => type === 'message/disposition-notification')) return 'machine';
  if (AUTO_REPLY_FIELDS.some((name) => fieldValue(message.fields, name) !== null)) return 'machine';
  const isBounce = containsPhrase(subject, FAILURE_PHRASES) || containsPhrase(subject, DELAY_PHRASES);
  const isAutoReply = containsPhrase(subject, AUTO_REPLY_SUBJECTS);
  if (isAutoReply && !isBounce) return 'machine';
  if (isFromServer(message)) return 'server';
  const precedence = fieldValue(message.fields, 'precedence')?.toLowerCase() ?? '';
  // RFC 3834 section 5.2. Mail servers set the field in bounces too, so this check follows the server check.
  const isAutomatic = fieldValue(message.fields, 'auto-submitted')?.toLowerCase().startsWith('auto-replied') === true;
  if ((isAutomatic || AUTO_REPLY_PRECEDENCE.includes(precedence)) && !isBounce) return 'machine';
  // RFC 5321 section 4.5.5: bounces have the null return path.
  return isBounce || fieldValue(message.fields, 'return-path') === '<>' ? 'server' : 'person';
}

function isFromServer(message: Entity): boolean {
  if (message.parameters.get('report-type')?.toLowerCase() === 'delivery-status') return true;
  if (fieldValue(message.fields, 'x-failed-recipients') !== null) return true;
  const from = fieldValue(message.fields, 'from')?.toLowerCase() ?? '';
  // Some servers send bounces without an author.
  if (from === '' || from.includes('<>')) return true;
  return SERVER_SENDERS.some((name) => from.includes(name));
}
