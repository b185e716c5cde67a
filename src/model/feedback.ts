/**
 * What other servers and providers report about a message later, and what that changes: beside `afterAttempt` the other half of
 * what may happen to it. Pure.
 *
 * Guarantees: only a settled message changes, only by `TRANSITIONS`, and only its own recipient is ever suppressed. What is not
 * certain is written into the history and changes nothing.
 */
import { canonicalAddress, parseAddress } from './address.ts';
import { isAllowedTransition, type State } from './message.ts';

/** What has to be known of the mail request that a notice is about. */
interface Noticed {
  readonly state: State;
  readonly to: string;
  /** Sent by `doctor --loop`: nobody is behind it. */
  readonly trial: boolean;
}

type FeedbackChange =
  /** A change of state by feedback, with suppression where the recipient itself is meant. */
  | {
      readonly kind: 'change';
      readonly to: 'bounced' | 'complained';
      readonly suppress: 'bounce' | 'complaint' | null;
      readonly detail: string;
    }
  /** One more line of history, and no change of state; the recipient is suppressed all the same where it says to. */
  | {
      readonly kind: 'note';
      readonly verb: ReportEntryType;
      readonly detail: string;
      readonly suppress: 'bounce' | 'complaint' | null;
    }
  /** The mail request is still on its way (the notice was quicker than the settlement): ask again later. */
  | { readonly kind: 'wait' }
  /** Not understood: kept for the operator. */
  | { readonly kind: 'keep'; readonly reason: string };

/** History's words for what came back and changed nothing. */
export type ReportEntryType =
  | 'bounce-reported'
  | 'soft-bounced'
  | 'complaint-reported'
  | 'delay-reported'
  | 'delivery-reported'
  | 'auto-replied';

type Addressed = Exclude<Notice, { kind: 'auto-reply' | 'unknown' }>;

/** Feedback types that say the recipient does not want this mail (RFC 5965 section 7.3; `opt-out` of its drafts is still sent). */
const UNWANTED: readonly string[] = ['abuse', 'fraud', 'virus', 'opt-out', 'opt-out-list'];

/** Mailboxes of providers that answer as told, for trying a loop: nobody is behind them. */
const SIMULATORS: readonly string[] = ['simulator.amazonses.com'];

const LONGEST_DETAIL = 1_500;

/** True where nobody is behind the address: its notices change the state, and neither suppress nor count. */
export function isProviderSimulator(address: string): boolean {
  return SIMULATORS.includes(address.slice(address.lastIndexOf('@') + 1).toLowerCase());
}

/** The one thing that the notices of one report do to the mail request that they are about. */
export function decideFeedbackChange(mail: Noticed, notices: readonly Notice[]): FeedbackChange {
  const addressed = notices.filter((notice) => notice.kind !== 'auto-reply' && notice.kind !== 'unknown');
  const own = addressed.filter((notice) => isAbout(notice, mail.to));
  const strongest = strongestOf(own.length > 0 ? own : addressed);
  if (strongest === null) return withoutRecipient(notices);
  if (own.length === 0 && strongest.kind === 'bounce' && !addressed.every(isPermanent)) {
    // Of several others some have it: the message went on from the recipient's mailbox, and not all of its ways failed.
    return note('bounce-reported', detailOf(strongest, mail.to));
  }
  return afterOne(mail, strongest, own.length > 0);
}

function afterOne(mail: Noticed, notice: Addressed, own: boolean): FeedbackChange {
  const detail = detailOf(notice, mail.to);
  switch (notice.kind) {
    case 'bounce':
      if (!notice.permanent) return note('soft-bounced', detail);
      return changed(mail, 'bounced', own && notice.mailboxMissing ? 'bounce' : null, 'bounce-reported', detail);
    case 'complaint':
      if (!UNWANTED.includes(notice.feedbackType)) return note('complaint-reported', detail);
      return changed(mail, 'complained', own ? 'complaint' : null, 'complaint-reported', detail);
    case 'delayed':
      return note('delay-reported', detail);
    case 'delivered':
      return note('delivery-reported', detail);
  }
}

function changed(
  { state, to: recipient, trial }: Noticed,
  to: 'bounced' | 'complained',
  suppress: 'bounce' | 'complaint' | null,
  verb: ReportEntryType,
  detail: string,
): FeedbackChange {
  if (state === 'queued' || state === 'sending') return { kind: 'wait' };
  const meant = trial || isProviderSimulator(recipient) ? null : suppress;
  if (isAllowedTransition(state, to, 'feedback')) return { kind: 'change', to, suppress: meant, detail };
  return note(verb, detail, LATE[to].includes(state) ? meant : null);
}

/**
 * Ends that the table lets nothing follow, and after which the recipient must not be written to again all the same: an
 * earlier copy arrived, or it was forwarded and only that failed. What is said of mail that never left means nothing.
 */
const LATE: Readonly<Record<'bounced' | 'complained', readonly State[]>> = {
  bounced: ['expired', 'cancelled'],
  complained: ['bounced', 'expired', 'cancelled'],
};

function note(verb: ReportEntryType, detail: string, suppress: 'bounce' | 'complaint' | null = null): FeedbackChange {
  return { kind: 'note', verb, detail, suppress };
}

function withoutRecipient(notices: readonly Notice[]): FeedbackChange {
  for (const notice of notices) {
    if (notice.kind === 'auto-reply') return note('auto-replied', shown(notice.evidence, 'an automatic reply'));
  }
  const unknown = notices.find((notice) => notice.kind === 'unknown');
  return { kind: 'keep', reason: unknown?.reason ?? 'it says nothing about any recipient' };
}

function isPermanent(notice: Notice): boolean {
  return notice.kind === 'bounce' && notice.permanent;
}

/** A complaint over a bounce, a permanent one over the rest: what ends the matter. */
function strongestOf(notices: readonly Addressed[]): Addressed | null {
  let strongest: Addressed | null = null;
  for (const notice of notices) {
    if (strongest === null || weightOf(notice) > weightOf(strongest)) strongest = notice;
  }
  return strongest;
}

function weightOf(notice: Addressed): number {
  switch (notice.kind) {
    case 'complaint':
      return 5;
    case 'bounce':
      return notice.permanent ? (notice.mailboxMissing ? 4 : 3) : 2;
    case 'delayed':
      return 1;
    case 'delivered':
      return 0;
  }
}

/** True where the notice names the mail request's own recipient, or none at all: it has only the one. */
function isAbout({ recipient, alias }: Addressed, to: string): boolean {
  if (recipient === null && alias === null) return true;
  return [recipient, alias].some((named) => named !== null && sameMailbox(named, to));
}

function sameMailbox(named: string, to: string): boolean {
  const one = parseAddress(named);
  const other = parseAddress(to);
  if (one === null || other === null) return named.toLowerCase() === to.toLowerCase();
  if (canonicalAddress(one) === canonicalAddress(other)) return true;
  // Feedback loops hide who complained (RFC 6590); the token says which message it was, and that had one recipient.
  return one.domain === other.domain && one.local.toLowerCase().includes('redact');
}

function detailOf(notice: Addressed, to: string): string {
  const named = [notice.recipient, notice.alias].filter((name) => name !== null);
  const other = named.length > 0 && !isAbout(notice, to) ? `about ${named.join(', ')}` : null;
  const type = notice.kind === 'complaint' ? notice.feedbackType : null;
  return shown(notice.evidence, [type, other].filter((part) => part !== null).join(', '));
}

/** `5.1.1 550 no such user (reported by mx.example.com; about bob@example.net)`. */
function shown({ status, diagnostic, reportingHost }: Evidence, more: string): string {
  const said =
    diagnostic !== null && status !== null && diagnostic.includes(status) ? [diagnostic] : [status, diagnostic];
  const reported = reportingHost === null ? '' : `reported by ${reportingHost}`;
  const aside = [more, reported].filter((part) => part !== '').join('; ');
  const text = said.filter((part) => part !== null && part !== '').join(' ');
  const whole = aside === '' ? text : text === '' ? aside : `${text} (${aside})`;
  return (whole === '' ? 'no reason was given' : whole).slice(0, LONGEST_DETAIL);
}

// What came back about a mail request: one tagged union, whoever sent it (a mail server's bounce over SMTP, a mailbox
// provider's complaint, the provider's event). Reading makes it; `decideFeedbackChange` says what it changes.

/** The tag by which a message handed to a provider names its mail request in what the provider tells of it later. */
export const MESSAGE_ID_TAG = 'postrider-id';

/** What the notice says for itself, as an operator reads it. Each is one line, control characters removed. */
export interface Evidence {
  /** Enhanced status code such as `5.1.1` (RFC 3463), or null. */
  readonly status: string | null;
  /** The remote server's words, at most 1,000 characters, or null. */
  readonly diagnostic: string | null;
  /** The server that reports (RFC 3464 section 2.2.2, RFC 5965 section 3.2), at most 255 characters, or null. */
  readonly reportingHost: string | null;
}

interface AboutRecipient {
  /**
   * The recipient that it names, as written and without brackets; the original one where it names both. Null where it
   * names none.
   */
  readonly recipient: string | null;
  /** Other names that it gives the same recipient (the final one of a forwarded message). */
  readonly alias: string | null;
  readonly evidence: Evidence;
}

export type Notice =
  /** Not delivered. `mailboxMissing` only where the mailbox itself is known not to exist: that alone suppresses. */
  | (AboutRecipient & { readonly kind: 'bounce'; readonly permanent: boolean; readonly mailboxMissing: boolean })
  /** `feedbackType` as registered (RFC 5965 section 7.3): `abuse`, `fraud`, `virus`, `other`, `not-spam`, `opt-out` … */
  | (AboutRecipient & { readonly kind: 'complaint'; readonly feedbackType: string })
  /** Still being tried by somebody else. */
  | (AboutRecipient & { readonly kind: 'delayed' })
  /** Delivered, relayed or expanded further on. */
  | (AboutRecipient & { readonly kind: 'delivered' })
  /** A person's machine answered: out of office, received with thanks, challenge. */
  | { readonly kind: 'auto-reply'; readonly evidence: Evidence }
  /** `reason` is one line for the operator: what was looked for and not found. */
  | { readonly kind: 'unknown'; readonly reason: string };

// Reports of what became of messages after they were handed over, on their way into the store, and what each came to.

/** Where a report came in. */
export type FeedbackSource = 'smtp' | 'sns' | 'sqs';

/** One report on its way into the store. */
export interface FeedbackReport {
  /** Which mail request it is about: by the id in a signed token, by the provider's own id, or none. */
  readonly about: { readonly id: string } | { readonly reference: string } | null;
  readonly notices: readonly Notice[];
  readonly source: FeedbackSource;
  /** SHA-256, hexadecimal: the same report again has the same digest, and changes nothing. */
  readonly digest: string;
  readonly at: number;
  /** One line for the operator's list: who sent it and what it calls itself. */
  readonly summary: string;
  /** What came, cut to what is kept where it is not understood. */
  readonly raw: Uint8Array;
  /** True where the sender will not ask again: what cannot be applied yet is kept instead of being put off. */
  readonly isFinal: boolean;
  /** True where another program of the same provider's account may be meant: of no known message it is nothing to us. */
  readonly mayBeOtherProgram?: boolean;
}

export type FeedbackResult =
  /** The mail request's state changed. */
  | {
      readonly kind: 'applied';
      readonly id: string;
      readonly accountId: number;
      readonly to: 'bounced' | 'complained';
      readonly recipient: string;
      readonly suppressed: boolean;
      readonly detail: string;
    }
  /** It is in the mail request's history, and changed nothing. */
  | { readonly kind: 'noted'; readonly id: string; readonly verb: ReportEntryType; readonly suppressed: boolean }
  /** It was there before. */
  | { readonly kind: 'repeated' }
  /** Not understood, or about nothing that is known: kept under this number. */
  | { readonly kind: 'kept'; readonly feedbackId: number; readonly reason: string }
  /** Another program's: nothing was written. */
  | { readonly kind: 'foreign' }
  /** The mail request is not settled yet, or not known yet by the provider's id. Nothing was written. */
  | { readonly kind: 'not-yet' };

/** A report kept for the operator. */
export interface UnprocessedReport {
  readonly id: number;
  readonly at: number;
  readonly source: FeedbackSource;
  /** The mail request that it is about, where that is known. */
  readonly messageId: string | null;
  /** Why it is kept: what was not understood. */
  readonly reason: string;
  readonly summary: string;
}
