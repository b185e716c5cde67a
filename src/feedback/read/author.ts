/** Who wrote what came back: a mail server, or a machine that answers for a person. */
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

/** Whether a person answers to something: to be told from a server that has no server's name. */
export function isReply(message: Entity, subject: string): boolean {
  return subject.startsWith('re:') || fieldValue(message.fields, 'in-reply-to') !== null;
}

/** By header fields and the subject in `normalizeText`; `person` is whoever gives no sign of being anything else. */
export function detectAuthor(message: Entity, subject: string): AuthorKind {
  // RFC 8098: a reader's program tells that the message was displayed or deleted.
  if (leafParts(message).some(({ type }) => type === 'message/disposition-notification')) return 'machine';
  if (AUTO_REPLY_FIELDS.some((name) => fieldValue(message.fields, name) !== null)) return 'machine';
  const reports = containsPhrase(subject, FAILURE_PHRASES) || containsPhrase(subject, DELAY_PHRASES);
  const answers = containsPhrase(subject, AUTO_REPLY_SUBJECTS);
  if (answers && !reports) return 'machine';
  if (isServer(message)) return 'server';
  const precedence = fieldValue(message.fields, 'precedence')?.toLowerCase() ?? '';
  // RFC 3834 section 5.2. Mail servers write it of their own notices too, hence after them.
  const automatic = fieldValue(message.fields, 'auto-submitted')?.toLowerCase().startsWith('auto-replied') === true;
  if ((automatic || AUTO_REPLY_PRECEDENCE.includes(precedence)) && !reports) return 'machine';
  // RFC 5321 section 4.5.5: notices have the null return path.
  return reports || fieldValue(message.fields, 'return-path') === '<>' ? 'server' : 'person';
}

function isServer(message: Entity): boolean {
  if (message.parameters.get('report-type')?.toLowerCase() === 'delivery-status') return true;
  if (fieldValue(message.fields, 'x-failed-recipients') !== null) return true;
  const from = fieldValue(message.fields, 'from')?.toLowerCase() ?? '';
  // Some servers that send with the null return path name no author either.
  if (from === '' || from.includes('<>')) return true;
  return SERVER_SENDERS.some((name) => from.includes(name));
}
