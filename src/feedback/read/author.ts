import { containsPhrase } from '../../classify/text.ts';
import { decodeHeaderValue } from './decode.ts';
import { type Entity, findFieldValue, isDeliveryStatus, listLeafParts } from './entity.ts';
import {
  AUTO_REPLY_FIELDS,
  AUTO_REPLY_PRECEDENCE,
  AUTO_REPLY_SUBJECTS,
  DAEMON_MAILBOXES,
  DELAY_PHRASES,
  FAILURE_PHRASES,
  REPLY_PREFIXES,
  SERVER_SENDERS,
} from './phrases.ts';

export type AuthorKind = 'server' | 'machine' | 'person';

/** By its subject, or by a field that names the other message. */
export function isReply({ fields }: Entity, subject: string): boolean {
  return (
    REPLY_PREFIXES.some((prefix) => subject.startsWith(prefix)) ||
    findFieldValue(fields, 'in-reply-to') !== null ||
    findFieldValue(fields, 'references') !== null
  );
}

/** An answer repeats the subject that it answers, and the name of its sender proves nothing: fields decide. */
export function detectAuthor(message: Entity, subject: string): AuthorKind {
  const parts = listLeafParts(message);
  // RFC 8098: the mail client of the recipient reports that the message was displayed or deleted.
  if (parts.some(({ type }) => type === 'message/disposition-notification')) return 'machine';
  if (hasField(message, AUTO_REPLY_FIELDS)) return 'machine';
  if (parts.some(isDeliveryStatus) || isFailureReport(message)) return 'server';
  const isAnswer = isReply(message, subject);
  if (isFromDaemon(message) && !(isAnswer && isAutomatic(message))) return 'server';
  if (isAutomatic(message) || beginsLikeAutoReply(subject)) return 'machine';
  // RFC 5321 section 4.5.5: bounces and most automatic replies have the null return path, a person's answer has not.
  const returnPath = findFieldValue(message.fields, 'return-path');
  if (isAnswer) return returnPath === '<>' ? 'machine' : 'person';
  const isBounce = containsPhrase(subject, FAILURE_PHRASES) || containsPhrase(subject, DELAY_PHRASES);
  if (containsPhrase(subject, AUTO_REPLY_SUBJECTS) && !isBounce) return 'machine';
  if (returnPath !== null && returnPath !== '<>') return 'person';
  const fromField = findFieldValue(message.fields, 'from')?.toLowerCase() ?? '';
  const hasServerName = SERVER_SENDERS.some((name) => fromField.includes(name));
  return hasServerName || isBounce || returnPath === '<>' ? 'server' : 'person';
}

function isFailureReport(message: Entity): boolean {
  return (
    message.parameters.get('report-type')?.toLowerCase() === 'delivery-status' ||
    findFieldValue(message.fields, 'x-failed-recipients') !== null
  );
}

/** Some servers send bounces without an author. */
function isFromDaemon({ fields }: Entity): boolean {
  const from = decodeHeaderValue(findFieldValue(fields, 'from') ?? '').toLowerCase();
  const address = from.slice(from.lastIndexOf('<') + 1).trim();
  return address === '' || address.startsWith('>') || DAEMON_MAILBOXES.some((name) => address.startsWith(name));
}

/** RFC 3834 section 5. Microsoft writes `auto-generated`. Mail servers use both values in bounces too. */
function isAutomatic(message: Entity): boolean {
  const autoSubmitted = findFieldValue(message.fields, 'auto-submitted')?.toLowerCase() ?? '';
  if (autoSubmitted.startsWith('auto-replied')) return true;
  if (autoSubmitted.startsWith('auto-generated') && hasField(message, ANSWER_FIELDS)) return true;
  return AUTO_REPLY_PRECEDENCE.includes(findFieldValue(message.fields, 'precedence')?.toLowerCase() ?? '');
}

const ANSWER_FIELDS: readonly string[] = ['x-auto-response-suppress', 'in-reply-to', 'references'];

function hasField({ fields }: Entity, names: readonly string[]): boolean {
  return names.some((name) => findFieldValue(fields, name) !== null);
}

/** `Automatic reply: …`: what follows the colon is the subject of another message. */
function beginsLikeAutoReply(subject: string): boolean {
  const colonIndex = subject.replaceAll('：', ':').indexOf(':');
  return colonIndex > 0 && containsPhrase(subject.slice(0, colonIndex + 1), AUTO_REPLY_SUBJECTS);
}
