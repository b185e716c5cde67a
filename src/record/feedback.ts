/**
 * What a notice changes: pure, and beside `afterAttempt` the other half of what may happen to a mail request. Only a
 * settled one changes, only by the table of states.ts, and only its own recipient is ever suppressed. Whatever is not
 * certain is written into the history and changes nothing.
 */
import { canonicalAddress, parseAddress } from '../admit/address.ts';
import type { Evidence, Notice } from './notice.ts';
import { allowed, type State } from './states.ts';

/** What has to be known of the mail request that a notice is about. */
export interface Noticed {
  readonly state: State;
  readonly to: string;
}

export type FeedbackChange =
  /** A change of state by feedback, with suppression where the recipient itself is meant. */
  | {
      readonly kind: 'change';
      readonly to: 'bounced' | 'complained';
      readonly suppress: 'bounce' | 'complaint' | null;
      readonly detail: string;
    }
  /** One more line of history, and no change. */
  | { readonly kind: 'note'; readonly verb: NoteVerb; readonly detail: string }
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

/** Mailboxes of providers that answer as told, and the one that `doctor --loop` sends to: nobody is behind them. */
const SIMULATORS: readonly string[] = ['simulator.amazonses.com'];
const OWN_TRIAL = 'postrider-loop';

const LONGEST_DETAIL = 1_500;

/** True where nobody is behind the address: its notices change the state, and neither suppress nor count. */
export function isTrial(address: string): boolean {
  const at = address.lastIndexOf('@');
  return address.slice(0, at) === OWN_TRIAL || SIMULATORS.includes(address.slice(at + 1).toLowerCase());
}

/** The one thing that the notices of one report do to the mail request that they are about. */
export function afterNotices(mail: Noticed, notices: readonly Notice[]): FeedbackChange {
  const addressed = notices.filter((notice) => notice.kind !== 'auto-reply' && notice.kind !== 'unknown');
  const own = addressed.filter((notice) => isAbout(notice, mail.to));
  const strongest = strongestOf(own.length > 0 ? own : addressed);
  if (strongest === null) return withoutRecipient(notices);
  if (own.length === 0 && strongest.kind === 'bounce' && !addressed.every(isPermanent)) {
    // Of several others some have it: the message went on from the recipient's mailbox, and not all of its ways failed.
    return { kind: 'note', verb: 'bounce-reported', detail: detailOf(strongest, mail.to) };
  }
  return afterOne(mail, strongest, own.length > 0);
}

function afterOne(mail: Noticed, notice: Addressed, own: boolean): FeedbackChange {
  const detail = detailOf(notice, mail.to);
  switch (notice.kind) {
    case 'bounce':
      if (!notice.permanent) return { kind: 'note', verb: 'soft-bounced', detail };
      return changed(mail, 'bounced', own && notice.mailboxMissing ? 'bounce' : null, 'bounce-reported', detail);
    case 'complaint':
      if (!UNWANTED.includes(notice.feedbackType)) return { kind: 'note', verb: 'complaint-reported', detail };
      return changed(mail, 'complained', own ? 'complaint' : null, 'complaint-reported', detail);
    case 'delayed':
      return { kind: 'note', verb: 'delay-reported', detail };
    case 'delivered':
      return { kind: 'note', verb: 'delivery-reported', detail };
  }
}

function changed(
  { state, to: recipient }: Noticed,
  to: 'bounced' | 'complained',
  suppress: 'bounce' | 'complaint' | null,
  verb: NoteVerb,
  detail: string,
): FeedbackChange {
  if (state === 'queued' || state === 'sending') return { kind: 'wait' };
  if (!allowed(state, to, 'feedback')) return { kind: 'note', verb, detail };
  return { kind: 'change', to, suppress: isTrial(recipient) ? null : suppress, detail };
}

function withoutRecipient(notices: readonly Notice[]): FeedbackChange {
  for (const notice of notices) {
    if (notice.kind === 'auto-reply')
      return { kind: 'note', verb: 'auto-replied', detail: shown(notice.evidence, 'an automatic reply') };
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
