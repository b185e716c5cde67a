/** Interprets the reply codes in the events of Mailgun. */
import type { ProviderListReason } from '../event.ts';
import { toNumber } from '../json.ts';

/** The codes for a recipient on a suppression list of Mailgun. The codes occur in events and are not documented. */
const LIST_REASONS = new Map<number, ProviderListReason>([
  [605, 'bounce'],
  [606, 'unsubscribe'],
  [607, 'complaint'],
]);

/** The code for a message that was not delivered within the retry period of Mailgun. The code is not documented. */
const TOO_OLD_CODE = 602;

/**
 * Returns the reason for the entry on a suppression list, or undefined if the code does not mean that the recipient is
 * on a list.
 */
export function findListReasonByCode(code: unknown): ProviderListReason | undefined {
  return LIST_REASONS.get(toNumber(code) ?? 0);
}

export function isTooOld(code: unknown): boolean {
  return toNumber(code) === TOO_OLD_CODE;
}

/** Returns the reply text, preceded by its SMTP reply code. A code that is not an SMTP reply code is omitted. */
export function formatReply(code: unknown, text: string | null): string | null {
  const replyCode = toNumber(code);
  const isSmtpCode = replyCode !== null && Number.isInteger(replyCode) && replyCode >= 200 && replyCode < 600;
  if (text === null || !isSmtpCode || text.startsWith(String(replyCode))) return text;
  return `${replyCode} ${text}`;
}
