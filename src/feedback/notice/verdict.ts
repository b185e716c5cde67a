/**
 * Whether what a report says of one recipient is final, and whether the mailbox is known not to exist. What servers' replies
 * mean is asked of `classify`; here is what a report adds to a reply: that somebody has given up.
 */
import { classify, ruleFor } from '../../classify/classify.ts';
import type { Outcome, Reason, Reply } from '../../deliver/outcome.ts';
import { EXPIRED, FULL, GONE, JUDGED } from './words.ts';

export interface Verdict {
  readonly permanent: boolean;
  readonly mailboxMissing: boolean;
}

/** `certain` is false where nothing in it was known. */
export type Judgement = Verdict & { readonly certain: boolean };

/** Given up on, and yet not for good: another time may do. */
const PASSING: readonly Reason[] = ['mailbox-full', 'greylisted', 'throttled', 'unavailable', 'connection'];
/** Mailbox full, expired after retries; whatever their class, and whatever the text. */
const PASSING_CODES: readonly string[] = ['2.2', '4.5', '4.7', '4.300', '4.316', '4.317'];

const SOFT: Judgement = { permanent: false, mailboxMissing: false, certain: true };
const HARD: Judgement = { permanent: true, mailboxMissing: false, certain: true };
const MISSING: Judgement = { permanent: true, mailboxMissing: true, certain: true };

/**
 * Judges the words of a server, with the status that the report gives it (RFC 3463) or null. A reply code and a status in
 * the words themselves count more than the report's: gateways make theirs up.
 */
export function judge(words: string, status: string | null): Judgement {
  const code = replyCodeIn(words);
  const enhanced = statusIn(words) ?? (status?.endsWith('.0.0') ? null : status);
  const text = words.toLowerCase();
  if (has(text, FULL)) return SOFT;
  if (enhanced !== null && PASSING_CODES.includes(enhanced.slice(2))) return SOFT;
  const final = code === null ? (enhanced ?? status ?? '5').startsWith('5') : code >= 500;
  if (!final) return SOFT;
  const reply: Reply = {
    stage: 'rcpt',
    code: code ?? 550,
    enhanced: withClass5(enhanced),
    text: words.slice(0, 1_000),
  };
  const judged = has(text, JUDGED);
  const gone = has(text, GONE) && !judged;
  // Prose says it plainly, in a text too long for the rules that read one reply.
  if (gone && code === null && enhanced === null) return MISSING;
  if (ruleFor(reply) !== null) return fromOutcome(classify(reply));
  if (gone) return { ...MISSING, mailboxMissing: enhanced?.startsWith('5.7.') !== true };
  if (code === null && has(text, EXPIRED)) return SOFT;
  return { ...HARD, certain: code !== null || enhanced !== null || status !== null || judged };
}

function fromOutcome(outcome: Outcome): Judgement {
  switch (outcome.kind) {
    case 'bounced':
      return PASSING.includes(outcome.reason) ? SOFT : { ...HARD, mailboxMissing: outcome.suppress };
    case 'deferred':
      return PASSING.includes(outcome.reason) ? SOFT : HARD;
    case 'delivered':
    case 'unanswered':
      return { ...HARD, certain: false };
  }
}

/** The reply's own class is final here, so that the report's status must not contradict it. */
function withClass5(status: string | null): string | null {
  return status === null ? null : `5${status.slice(1)}`;
}

export function has(text: string, words: readonly string[]): boolean {
  return words.some((word) => text.includes(word));
}

/** The first SMTP reply code of class 4 or 5 that stands alone, or null. */
function replyCodeIn(text: string): number | null {
  const match = /(?:^|[\s("'<:=])([45][0-5][0-9])(?=[ :]|-[^0-9]|-[45]\.|$)/.exec(text.slice(0, 2_000));
  return match?.[1] === undefined ? null : Number(match[1]);
}

/** The first enhanced status code of class 4 or 5 that is no part of an address, or null. */
export function statusIn(text: string): string | null {
  const match = /(?:^|[^0-9.])([45]\.[0-9]{1,3}\.[0-9]{1,3})(?![0-9.]*[0-9])/.exec(text.slice(0, 2_000));
  return match?.[1] ?? null;
}
