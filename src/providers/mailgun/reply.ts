/** Interprets the reply codes in Mailgun's events. */
import type { ProviderListReason } from '../event.ts';
import { toNumber } from '../json.ts';

/** The codes of Mailgun for a recipient on one of its suppression lists. They occur in events and are not documented. */
const LIST_REASONS = new Map<number, ProviderListReason>([
  [605, 'bounce'],
  [606, 'unsubscribe'],
  [607, 'complaint'],
]);

/** The code of Mailgun for a message that was not delivered within the time of its retries. It is not documented. */
const TOO_OLD = 602;

/** Returns the reason of the suppression list, or null if the code is not one of a list. */
export function listReasonOfCode(code: unknown): ProviderListReason | null {
  return LIST_REASONS.get(toNumber(code) ?? 0) ?? null;
}

export function isTooOld(code: unknown): boolean {
  return toNumber(code) === TOO_OLD;
}

/** Returns the reply with its SMTP code in front. A code that is not one of SMTP is left out. */
export function formatReply(code: unknown, text: string | null): string | null {
  const number = toNumber(code);
  const isSmtpCode = number !== null && Number.isInteger(number) && number >= 200 && number < 600;
  if (text === null || !isSmtpCode || text.startsWith(String(number))) return text;
  return `${number} ${text}`;
}
