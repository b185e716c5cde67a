/**
 * Reports of other servers and providers about a message, and the change that they cause. `afterAttempt` decides the changes that an
 * attempt causes. Pure.
 *
 * Guarantees: only a settled message changes, only as `TRANSITIONS` allows, and only its own recipient is suppressed. A report that
 * is not conclusive is added to the history and changes nothing.
 */
import { canonicalAddress, parseAddress } from './address.ts';
import { isAllowedTransition, type State } from './message.ts';

/** The properties of the reported message that the decision needs. */
interface Noticed {
  readonly state: State;
  readonly to: string;
  /** True for a test message of `doctor --loop`, whose recipient is not a person. */
  readonly trial: boolean;
}

type FeedbackChange =
  /** A change of state, with a suppression if the report is about the recipient itself. */
  | {
      readonly kind: 'change';
      readonly to: 'bounced' | 'complained';
      readonly suppress: 'bounce' | 'complaint' | null;
      readonly detail: string;
    }
  /** An entry in the history and no change of state. `suppress` can still suppress the recipient. */
  | {
      readonly kind: 'note';
      readonly verb: ReportEntryType;
      readonly detail: string;
      readonly suppress: 'bounce' | 'complaint' | null;
    }
  /** The message is not settled yet: the report arrived before its attempt was recorded. To be repeated later. */
  | { readonly kind: 'wait' }
  /** Not understood: stored for the operator. */
  | { readonly kind: 'keep'; readonly reason: string };

/** History entries of reports that changed no state. */
export type ReportEntryType =
  | 'bounce-reported'
  | 'soft-bounced'
  | 'complaint-reported'
  | 'delay-reported'
  | 'delivery-reported'
  | 'auto-replied';

type Addressed = Exclude<Notice, { kind: 'auto-reply' | 'unknown' }>;

/** Feedback types that count as a complaint (RFC 5965 section 7.3; `opt-out` of its drafts is still in use). */
const UNWANTED: readonly string[] = ['abuse', 'fraud', 'virus', 'opt-out', 'opt-out-list'];

/** Domains of providers' mailbox simulators. Their recipients are not persons. */
const SIMULATORS: readonly string[] = ['simulator.amazonses.com'];

const LONGEST_DETAIL = 1_500;

/** True for an address of a provider's mailbox simulator. Its reports change the state, suppress nothing and count in no reputation. */
export function isProviderSimulator(address: string): boolean {
  return SIMULATORS.includes(address.slice(address.lastIndexOf('@') + 1).toLowerCase());
}

/** Decides the change that the notices of one report cause to the message that they are about. */
export function decideFeedbackChange(mail: Noticed, notices: readonly Notice[]): FeedbackChange {
  const addressed = notices.filter((notice) => notice.kind !== 'auto-reply' && notice.kind !== 'unknown');
  const own = addressed.filter((notice) => isAbout(notice, mail.to));
  const strongest = strongestOf(own.length > 0 ? own : addressed);
  if (strongest === null) return withoutRecipient(notices);
  if (own.length === 0 && strongest.kind === 'bounce' && !addressed.every(isPermanent)) {
    // The message was forwarded from the recipient's mailbox to several addresses, and it did not fail for all of them.
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
 * Terminal states that allow no transition, but after which a report still suppresses the recipient: an earlier copy arrived, or
 * only the forwarding failed. A report about a message that was never sent has no effect.
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

/** The notice with the greatest effect: a complaint before a bounce, a permanent bounce before any other notice. */
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

/** True if the notice names the recipient of the message, or no recipient: a message has only one. */
function isAbout({ recipient, alias }: Addressed, to: string): boolean {
  if (recipient === null && alias === null) return true;
  return [recipient, alias].some((named) => named !== null && sameMailbox(named, to));
}

function sameMailbox(named: string, to: string): boolean {
  const one = parseAddress(named);
  const other = parseAddress(to);
  if (one === null || other === null) return named.toLowerCase() === to.toLowerCase();
  if (canonicalAddress(one) === canonicalAddress(other)) return true;
  // Feedback loops redact the complainant (RFC 6590). The token identifies the message, which has one recipient.
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

// A reported fact about a message: one tagged union for all senders (a bounce message over SMTP, a complaint of a mailbox provider, a
// provider event). src/feedback parses it; `decideFeedbackChange` decides what it changes.

/** The tag of a message sent through a provider. Provider events repeat it, which identifies the message. */
export const MESSAGE_ID_TAG = 'postrider-id';

/** The content of the notice as shown to operators. Each member is one line without control characters. */
export interface Evidence {
  /** Enhanced status code such as `5.1.1` (RFC 3463), or null. */
  readonly status: string | null;
  /** The diagnostic text of the remote server, at most 1,000 characters, or null. */
  readonly diagnostic: string | null;
  /** The server that reports (RFC 3464 section 2.2.2, RFC 5965 section 3.2), at most 255 characters, or null. */
  readonly reportingHost: string | null;
}

interface AboutRecipient {
  /**
   * The recipient in the notice, as written and without brackets; the original recipient if the notice names both. Null if it names
   * none.
   */
  readonly recipient: string | null;
  /** Another address of the same recipient in the notice (the final recipient of a forwarded message), or null. */
  readonly alias: string | null;
  readonly evidence: Evidence;
}

export type Notice =
  /** Not delivered. `mailboxMissing` is true only if the mailbox is known not to exist; only this suppresses. */
  | (AboutRecipient & { readonly kind: 'bounce'; readonly permanent: boolean; readonly mailboxMissing: boolean })
  /** `feedbackType` as registered (RFC 5965 section 7.3): `abuse`, `fraud`, `virus`, `other`, `not-spam`, `opt-out` … */
  | (AboutRecipient & { readonly kind: 'complaint'; readonly feedbackType: string })
  /** Another server still tries to deliver it. */
  | (AboutRecipient & { readonly kind: 'delayed' })
  /** Delivered, relayed or expanded by another server. */
  | (AboutRecipient & { readonly kind: 'delivered' })
  /** An automatic reply: out of office, confirmation of receipt, challenge. */
  | { readonly kind: 'auto-reply'; readonly evidence: Evidence }
  /** `reason` is one line for the operator: what was expected and not found. */
  | { readonly kind: 'unknown'; readonly reason: string };

// Feedback reports to be stored, and the results of storing them.

/** The channel over which a report arrived. */
export type FeedbackSource = 'smtp' | 'sns' | 'sqs';

/** A feedback report to be stored. */
export interface FeedbackReport {
  /** The message it is about: by the id in a signed token, or by the provider's id; null if unknown. */
  readonly about: { readonly id: string } | { readonly reference: string } | null;
  readonly notices: readonly Notice[];
  readonly source: FeedbackSource;
  /** SHA-256, hexadecimal. A repeated report has the same digest and changes nothing. */
  readonly digest: string;
  readonly at: number;
  /** One line for the operator: the sender and the subject of the report. */
  readonly summary: string;
  /** The received content, truncated to the size that is stored for a report that is not understood. */
  readonly raw: Uint8Array;
  /** True if the sender will not repeat the report. A report that cannot be applied yet is then stored for the operator. */
  readonly isFinal: boolean;
  /** True if the report may be about a message of another program with the same provider account. It is ignored if no message matches. */
  readonly mayBeOtherProgram?: boolean;
}

export type FeedbackResult =
  /** The state of the message changed. */
  | {
      readonly kind: 'applied';
      readonly id: string;
      readonly accountId: number;
      readonly to: 'bounced' | 'complained';
      readonly recipient: string;
      readonly suppressed: boolean;
      readonly detail: string;
    }
  /** It was added to the message's history and changed no state. */
  | { readonly kind: 'noted'; readonly id: string; readonly verb: ReportEntryType; readonly suppressed: boolean }
  /** The same report was recorded before. */
  | { readonly kind: 'repeated' }
  /** Not understood, or about an unknown message: stored with this number. */
  | { readonly kind: 'kept'; readonly feedbackId: number; readonly reason: string }
  /** About a message of another program: nothing was written. */
  | { readonly kind: 'foreign' }
  /** The message is not settled yet, or its provider id is not recorded yet. Nothing was written. */
  | { readonly kind: 'not-yet' };

/** A report that is stored for the operator because it was not understood. */
export interface UnprocessedReport {
  readonly id: number;
  readonly at: number;
  readonly source: FeedbackSource;
  /** The message that it is about, or null if unknown. */
  readonly messageId: string | null;
  /** What was not understood. */
  readonly reason: string;
  readonly summary: string;
}
