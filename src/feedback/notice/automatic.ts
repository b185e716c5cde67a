/** Who speaks: a mail server, or a machine that answers for a person. */
import { field, leaves, type Part } from './parts.ts';
import { has } from './verdict.ts';
import { AUTO_REPLY_SUBJECTS, FAILED, SERVERS } from './words.ts';

/** Fields that machines which answer for people set, and mail servers do not. */
const ANSWERING: readonly string[] = [
  'x-autoreply',
  'x-autorespond',
  'x-autoresponder',
  'x-mail-autoreply',
  'x-autoreply-from',
];
const PRECEDENCES: readonly string[] = ['auto_reply', 'auto-reply', 'autoreply'];

/** True where a mail server speaks: its mailbox's name, an empty return path, or its subject. */
export function isFromServer(message: Part, subject: string): boolean {
  if (field(message, 'return-path') === '<>' || field(message, 'x-failed-recipients') !== null) return true;
  const from = (field(message, 'from') ?? '').toLowerCase();
  if (SERVERS.some((name) => from.includes(name)) || from.includes('mail delivery') || from.includes('mail system')) {
    return true;
  }
  const type = message.parameters.get('report-type')?.toLowerCase();
  return type === 'delivery-status' || has(subject.toLowerCase(), FAILED);
}

/** True for an out-of-office, a receipt, a challenge: a mailbox that took the message and answered. */
export function isAutoReply(message: Part, subject: string, fromServer: boolean): boolean {
  for (const part of leaves(message)) {
    // RFC 8098: a person's program tells that the message was displayed or deleted.
    if (part.type === 'message/disposition-notification') return true;
  }
  const lower = subject.toLowerCase();
  if (has(lower, FAILED)) return false;
  if (ANSWERING.some((name) => field(message, name) !== null)) return true;
  if (PRECEDENCES.includes((field(message, 'precedence') ?? '').toLowerCase())) return true;
  // A prefix before the original subject, and the whole of short ones.
  if (has(lower, AUTO_REPLY_SUBJECTS)) return true;
  // RFC 3834 section 5.2. Mail servers set it too, so their name goes first.
  return !fromServer && (field(message, 'auto-submitted') ?? '').toLowerCase().startsWith('auto-replied');
}
