/**
 * What a notice changes: pure, and beside `afterAttempt` the other half of what may happen to a mail request. Only a
 * settled one changes, only by the table of states.ts, and only its own recipient is ever suppressed. Whatever is not
 * certain is written into the history and changes nothing.
 */
import { canonicalAddress, parseAddress } from './address.ts';
import type { Evidence, Notice } from './notice.ts';
import { allowed, type State } from './state-machine.ts';

/** What has to be known of the mail request that a notice is about. */
export interface Noticed {
  readonly state: State;
  readonly to: string;
  /** Sent by `doctor --loop`: nobody is behind it. */
  readonly trial: boolean;
}

export type FeedbackChange =
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
      readonly verb: NoteVerb;
      readonly detail: string;
      readonly suppress: 'bounce' | 'complaint' | null;
    }
  /** The mail request is still on its way (the notice was quicker than the settlement): ask again later. */
  | { readonly kind: 'wait' }
  /** Not understood: kept for the operator. */
  | { readonly kind: 'keep'; readonly reason: string };

/** History's words for what came back and changed nothing. */
export type NoteVerb =
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
export function afterNotices(mail: Noticed, notices: readonly Notice[]): FeedbackChange {
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
  verb: NoteVerb,
  detail: string,
): FeedbackChange {
  if (state === 'queued' || state === 'sending') return { kind: 'wait' };
  const meant = trial || isProviderSimulator(recipient) ? null : suppress;
  if (allowed(state, to, 'feedback')) return { kind: 'change', to, suppress: meant, detail };
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

function note(verb: NoteVerb, detail: string, suppress: 'bounce' | 'complaint' | null = null): FeedbackChange {
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
