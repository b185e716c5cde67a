/**
 * Decides the change that a report of another server or of a provider causes to a message. `decideAttemptChange`
 * (message.ts) decides the change that an attempt causes. Pure.
 *
 * Guarantees: a report does not change the state of a message that is in `sending` or was never sent. A report changes
 * a state only as `TRANSITIONS` allows. A report suppresses only the recipient of its message. A report that does not
 * prove a final result, such as a delay, changes no state and is added to the history.
 */
import { parseAddress, toCanonicalAddress } from './address.ts';
import type { EvidenceKind } from './evidence.ts';
import { type Failure, MAX_DIAGNOSTIC_LENGTH, type RecordedFailure } from './failure.ts';
import { isAllowedTransition, type State } from './message.ts';

/** The properties of the reported message that the decision needs. */
interface ReportedMessage {
  readonly state: State;
  readonly to: string;
  /** True for a test message of `doctor --loop`. Its recipient is not a person. */
  readonly isTest: boolean;
  /**
   * True if an earlier attempt may have sent the message although no reply is recorded: the attempt was unanswered, or
   * its lease was lost.
   */
  readonly mayHaveBeenSent: boolean;
  /** True if an earlier report confirmed the delivery. */
  readonly isConfirmed: boolean;
  /** True if an earlier attempt or report failed with the class `hard`, so that it suppressed the recipient. */
  readonly hasHardFailure: boolean;
  /**
   * True if an earlier report changed the state to `bounced`, or stated that the recipient is on the provider's
   * suppression list.
   */
  readonly hasReportedBounce: boolean;
}

type FeedbackChange =
  /**
   * A change of state. `suppress` is the reason for which the recipient is suppressed, or null if the recipient is not
   * suppressed.
   */
  | {
      readonly kind: 'change';
      readonly to: 'bounced' | 'complained';
      /** The type of the history entry of a report with the same content that changes no state. */
      readonly verb: ReportEntryType;
      readonly suppress: FeedbackSuppression | null;
      /** False if the report never counts towards the account's reputation. */
      readonly countsForReputation: boolean;
      /** What the report proves about the account if it is authenticated, whatever the state of the message. */
      readonly evidence: EvidenceKind | null;
      readonly detail: string;
      /** The failure of a bounce, or null. */
      readonly failure: RecordedFailure | null;
    }
  /** The provider has delivered the message. `to` is set if the state changes to `delivered` as well. */
  | { readonly kind: 'confirm'; readonly to: 'delivered' | null; readonly detail: string }
  /**
   * An entry in the history without a change of state. `suppress` is the reason for which the recipient is suppressed,
   * or null.
   */
  | {
      readonly kind: 'history-entry';
      readonly verb: ReportEntryType;
      readonly detail: string;
      /** The failure of a bounce or of a delay, or null. */
      readonly failure: RecordedFailure | null;
      readonly suppress: FeedbackSuppression | null;
      /** False if the report never counts towards the account's reputation. */
      readonly countsForReputation: boolean;
      readonly evidence: EvidenceKind | null;
    }
  /** A provider event about an address that is not the recipient of the message. It changes nothing. */
  | { readonly kind: 'other-recipient' }
  /** The message is in `sending`, or is queued and was never sent. The report must be applied later. */
  | { readonly kind: 'wait' }
  /** The report was not understood. It is stored for the operator. */
  | { readonly kind: 'not-understood'; readonly reason: string };

/**
 * The reasons for which a report suppresses a recipient. `provider`: the address is on the provider's suppression
 * list.
 */
export type FeedbackSuppression = 'bounce' | 'complaint' | 'unsubscribed' | 'provider';

/** The types of the history entries of reports that changed no state. */
export type ReportEntryType =
  | 'bounce-reported'
  | 'soft-bounced'
  | 'complaint-reported'
  | 'delay-reported'
  | 'delivery-reported'
  | 'auto-replied'
  | 'confirmed'
  | 'provider-suppression-reported'
  | 'unsubscribed'
  | 'reactivated';

type RecipientEvent = Exclude<FeedbackEvent, { kind: 'auto-reply' | 'unknown' }>;

/**
 * The feedback types that count as a complaint (RFC 5965 section 7.3). `opt-out` occurs only in drafts of the RFC, but
 * is still in use.
 */
const COMPLAINT_TYPES: readonly string[] = ['abuse', 'fraud', 'virus', 'opt-out', 'opt-out-list'];

/** The domains of providers' mailbox simulators. The recipients in these domains are not persons. */
const PROVIDER_SIMULATOR_DOMAINS: readonly string[] = ['simulator.amazonses.com'];

const MAX_DETAIL_LENGTH = 1_500;

/**
 * Returns true for an address of a provider's mailbox simulator. A report about a message to such an address changes
 * the state of the message, but it suppresses no recipient and does not count towards the account's reputation.
 */
export function isProviderSimulator(address: string): boolean {
  return PROVIDER_SIMULATOR_DOMAINS.includes(address.slice(address.lastIndexOf('@') + 1).toLowerCase());
}

/**
 * Returns the change that the events of one report cause to the reported message. A provider event names the recipient
 * that Postrider passed to the provider, or no recipient. Therefore a provider event that names a recipient different
 * from the recipient of the message changes nothing.
 */
export function decideFeedbackChange(
  message: ReportedMessage,
  events: readonly FeedbackEvent[],
  isProviderEvent: boolean = false,
): FeedbackChange {
  const recipientEvents = events.filter((event) => event.kind !== 'auto-reply' && event.kind !== 'unknown');
  const eventsAboutRecipient = recipientEvents.filter((event) => isAboutRecipient(event, message.to));
  if (isProviderEvent && eventsAboutRecipient.length === 0) return { kind: 'other-recipient' };
  const highestRankedEvent = findHighestRankedEvent(
    eventsAboutRecipient.length > 0 ? eventsAboutRecipient : recipientEvents,
  );
  if (highestRankedEvent === null) return decideWithoutRecipientEvent(events);
  if (
    eventsAboutRecipient.length === 0 &&
    highestRankedEvent.kind === 'bounce' &&
    !recipientEvents.every(isPermanentBounce)
  ) {
    // The message was forwarded from the recipient's mailbox to several addresses, and at least one of these addresses
    // has no permanent bounce.
    return createHistoryEntry(
      'bounce-reported',
      formatDetail(highestRankedEvent, message.to),
      findFailure(highestRankedEvent),
    );
  }
  return decideEventChange(message, highestRankedEvent, eventsAboutRecipient.length > 0);
}

function decideEventChange(
  message: ReportedMessage,
  event: RecipientEvent,
  concernsRecipient: boolean,
): FeedbackChange {
  const detail = formatDetail(event, message.to);
  const failure = findFailure(event);
  switch (event.kind) {
    case 'bounce':
      if (!event.permanent) return createHistoryEntry('soft-bounced', detail, failure);
      return decideStateChange(
        message,
        'bounced',
        concernsRecipient && event.failure.class === 'hard' && !isForwarded(event, message.to) ? 'bounce' : null,
        'bounce-reported',
        detail,
        failure,
      );
    case 'complaint':
      if (!COMPLAINT_TYPES.includes(event.feedbackType)) return createHistoryEntry('complaint-reported', detail, null);
      return decideStateChange(
        message,
        'complained',
        concernsRecipient ? 'complaint' : null,
        'complaint-reported',
        detail,
        null,
      );
    case 'delayed':
      return createHistoryEntry('delay-reported', detail, failure);
    case 'delivered':
      return createHistoryEntry('delivery-reported', detail, null);
    case 'confirmed':
      return decideConfirmation(message, detail);
    case 'provider-suppressed':
      return decideStateChange(message, 'bounced', 'provider', 'provider-suppression-reported', detail, failure);
    case 'unsubscribed':
      return createHistoryEntry('unsubscribed', detail, null, decideSuppression(message, 'unsubscribed'));
    case 'reactivated':
      return createHistoryEntry('reactivated', detail, null);
  }
}

/**
 * Decides the change after the provider has delivered the message. A message that is uncertain, or is queued after an
 * attempt without a reply, changes to `delivered`.
 */
function decideConfirmation({ state, mayHaveBeenSent, isConfirmed }: ReportedMessage, detail: string): FeedbackChange {
  if (state === 'sending') return { kind: 'wait' };
  if (state === 'uncertain' || (state === 'queued' && mayHaveBeenSent))
    return { kind: 'confirm', to: 'delivered', detail };
  if ((state === 'delivered' || state === 'complained') && !isConfirmed) return { kind: 'confirm', to: null, detail };
  return createHistoryEntry('delivery-reported', detail, null);
}

function decideStateChange(
  message: ReportedMessage,
  to: 'bounced' | 'complained',
  suppress: FeedbackSuppression | null,
  verb: ReportEntryType,
  detail: string,
  failure: RecordedFailure | null,
): FeedbackChange {
  const { state, mayHaveBeenSent } = message;
  if (state === 'sending' || (state === 'queued' && !mayHaveBeenSent)) return { kind: 'wait' };
  const applicableSuppression = decideSuppression(message, suppress);
  // The provider's suppression list contains recipients of other programs too, so an entry in this list does not count
  // towards the account's reputation.
  const countsForReputation = suppress !== 'provider';
  const evidence = to === 'complained' ? 'complaint' : suppress === 'bounce' ? 'bounce' : null;
  if (isAllowedTransition(state, to, 'feedback'))
    return {
      kind: 'change',
      to,
      verb,
      suppress: applicableSuppression,
      countsForReputation,
      evidence,
      detail,
      failure,
    };
  const suppresses =
    SUPPRESSING_STATES[to].includes(state) || (to === 'bounced' && suppressesBouncedRecipient(message, suppress));
  const entry = createHistoryEntry(verb, detail, failure, suppresses ? applicableSuppression : null);
  return { ...entry, countsForReputation, evidence };
}

/**
 * Returns true if a report about a message that is already `bounced` suppresses the recipient. The report suppresses
 * the recipient only if the earlier bounce did not. A second report about the same bounce suppresses no recipient,
 * because an operator may have removed the suppression.
 */
function suppressesBouncedRecipient(
  { state, hasHardFailure, hasReportedBounce }: ReportedMessage,
  suppress: FeedbackSuppression | null,
): boolean {
  return state === 'bounced' && !hasHardFailure && (suppress === 'bounce' || !hasReportedBounce);
}

/**
 * Returns the reason for the suppression, or null for a test message and for a message to a provider's mailbox
 * simulator.
 */
function decideSuppression(
  { to, isTest }: ReportedMessage,
  suppress: FeedbackSuppression | null,
): FeedbackSuppression | null {
  return isTest || isProviderSimulator(to) ? null : suppress;
}

/**
 * The states in which a report causes no transition, but suppresses the recipient, because a copy of the message may
 * have been sent.
 */
const SUPPRESSING_STATES: Readonly<Record<'bounced' | 'complained', readonly State[]>> = {
  bounced: ['expired', 'cancelled'],
  complained: ['bounced', 'expired', 'cancelled'],
};

function createHistoryEntry(
  verb: ReportEntryType,
  detail: string,
  failure: RecordedFailure | null,
  suppress: FeedbackSuppression | null = null,
): Extract<FeedbackChange, { kind: 'history-entry' }> {
  return { kind: 'history-entry', verb, detail, failure, suppress, countsForReputation: false, evidence: null };
}

function decideWithoutRecipientEvent(events: readonly FeedbackEvent[]): FeedbackChange {
  for (const event of events) {
    if (event.kind === 'auto-reply')
      return createHistoryEntry('auto-replied', formatEvidence(event.evidence, 'an automatic reply'), null);
  }
  const unknownEvent = events.find((event) => event.kind === 'unknown');
  return {
    kind: 'not-understood',
    reason: unknownEvent?.reason ?? 'the report names no recipient and no delivery result',
  };
}

function isPermanentBounce(event: FeedbackEvent): boolean {
  return event.kind === 'bounce' && event.permanent;
}

/**
 * Returns the event with the greatest effect (`getEffectRank`). Of several events with the same effect, returns the
 * first. Returns null if there is no event.
 */
function findHighestRankedEvent(events: readonly RecipientEvent[]): RecipientEvent | null {
  let highestRankedEvent: RecipientEvent | null = null;
  for (const event of events) {
    if (highestRankedEvent === null || getEffectRank(event) > getEffectRank(highestRankedEvent))
      highestRankedEvent = event;
  }
  return highestRankedEvent;
}

/** Returns the rank of the effect of an event. An event with a higher rank takes precedence. */
function getEffectRank(event: RecipientEvent): number {
  switch (event.kind) {
    case 'complaint':
      return 9;
    case 'bounce':
      return event.permanent ? (event.failure.class === 'hard' ? 8 : 6) : 4;
    case 'provider-suppressed':
      return 7;
    case 'unsubscribed':
      return 5;
    case 'delayed':
      return 3;
    case 'confirmed':
      return 2;
    case 'reactivated':
      return 1;
    case 'delivered':
      return 0;
  }
}

/** Returns true if the event names the recipient of the message, or no recipient. A message has one recipient. */
function isAboutRecipient({ recipient, alias }: RecipientEvent, to: string): boolean {
  if (recipient === null && alias === null) return true;
  return [recipient, alias].some((address) => address !== null && isSameMailbox(address, to));
}

/**
 * Returns true if the failed address is one in another domain, to which the recipient forwards. A server can rewrite an
 * address within its own domains, and then the failure is that of the recipient.
 */
function isForwarded({ alias }: RecipientEvent, to: string): boolean {
  if (alias === null || isSameMailbox(alias, to)) return false;
  const [failedDomain, domain] = [getDomain(alias), getDomain(to)];
  return failedDomain !== domain && !failedDomain.endsWith(`.${domain}`) && !domain.endsWith(`.${failedDomain}`);
}

function getDomain(address: string): string {
  return parseAddress(address)?.domain ?? address.slice(address.lastIndexOf('@') + 1).toLowerCase();
}

function isSameMailbox(reportedAddress: string, to: string): boolean {
  if (reportedAddress === to) return true;
  const reportedMailbox = parseAddress(reportedAddress);
  const messageMailbox = parseAddress(to);
  if (reportedMailbox === null || messageMailbox === null) return reportedAddress.toLowerCase() === to.toLowerCase();
  if (toCanonicalAddress(reportedMailbox) === toCanonicalAddress(messageMailbox)) return true;
  // Feedback loops redact the address of the complainant (RFC 6590). The report still identifies the message, which has
  // one recipient.
  return reportedMailbox.domain === messageMailbox.domain && reportedMailbox.localPart.toLowerCase().includes('redact');
}

function formatDetail(event: RecipientEvent, to: string): string {
  const reportedAddresses = [event.recipient, event.alias].filter((address) => address !== null);
  const otherAddressText =
    reportedAddresses.length > 0 && !isAboutRecipient(event, to) ? `about ${reportedAddresses.join(', ')}` : null;
  const type = event.kind === 'complaint' ? event.feedbackType : null;
  return formatEvidence(event.evidence, [type, otherAddressText].filter((part) => part !== null).join(', '));
}

/**
 * The failure of a message that the provider did not send, because the recipient is on the provider's suppression list.
 */
const PROVIDER_SUPPRESSION: Failure = { class: 'block', category: 'policy' };

/** Returns the failure that the event reports, or null. */
function findFailure(event: RecipientEvent): RecordedFailure | null {
  const { status } = event.evidence;
  const diagnostic = event.evidence.diagnostic?.slice(0, MAX_DIAGNOSTIC_LENGTH) ?? null;
  switch (event.kind) {
    case 'bounce':
    case 'delayed':
      return { ...event.failure, status, diagnostic };
    case 'provider-suppressed':
      return { ...PROVIDER_SUPPRESSION, status, diagnostic };
    case 'complaint':
    case 'delivered':
    case 'confirmed':
    case 'unsubscribed':
    case 'reactivated':
      return null;
  }
}

/**
 * Formats the evidence of an event on one line, for example `5.1.1 550 no such user (reported by mx.example.com; about
 * bob@example.net)`.
 */
function formatEvidence({ status, diagnostic, reportingHost }: Evidence, extraText: string): string {
  const diagnosticParts =
    diagnostic !== null && status !== null && diagnostic.includes(status) ? [diagnostic] : [status, diagnostic];
  const reportedBy = reportingHost === null ? '' : `reported by ${reportingHost}`;
  const annotation = [extraText, reportedBy].filter((part) => part !== '').join('; ');
  const text = diagnosticParts.filter((part) => part !== null && part !== '').join(' ');
  const line = annotation === '' ? text : text === '' ? annotation : `${text} (${annotation})`;
  return (line === '' ? 'no reason was given' : line).slice(0, MAX_DETAIL_LENGTH);
}

// The reported events of messages are one tagged union for all sources (a bounce message over SMTP, a complaint of a
// mailbox provider, a provider event). src/feedback converts each report into these events. `decideFeedbackChange`
// decides the change that an event causes.

/**
 * The name of the tag that contains the message id and is sent to a provider. Provider events repeat the tag, so they
 * identify the message.
 */
export const MESSAGE_ID_TAG = 'postrider-id';

/** The evidence of the event as shown to operators. Each member is one line without control characters. */
export interface Evidence {
  /** Enhanced status code such as `5.1.1` (RFC 3463), or null. */
  readonly status: string | null;
  /** The diagnostic text of the remote server, at most `MAX_DIAGNOSTIC_LENGTH` characters, or null. */
  readonly diagnostic: string | null;
  /**
   * The name of the server that created the report (RFC 3464 section 2.2.2, RFC 5965 section 3.2), at most 255
   * characters, or null.
   */
  readonly reportingHost: string | null;
}

interface RecipientMembers {
  /**
   * The recipient as written in the report, without angle brackets. If the report names an original and a final
   * recipient, this is the original recipient. Null if the report names no recipient.
   */
  readonly recipient: string | null;
  /**
   * The final recipient (the address after forwarding), if the report names an original recipient and the two addresses
   * differ. Otherwise null.
   */
  readonly alias: string | null;
  readonly evidence: Evidence;
}

export type FeedbackEvent =
  /**
   * The message was not delivered. The class of `failure` is `hard` only if the mailbox is known not to exist. A bounce
   * with this class is permanent, and only such a bounce suppresses the recipient.
   */
  | (RecipientMembers & {
      readonly kind: 'bounce';
      readonly permanent: boolean;
      readonly failure: Failure;
    })
  /**
   * A complaint. `feedbackType` is a registered type (RFC 5965 section 7.3), such as `abuse`, `fraud`, `virus`,
   * `other`, `not-spam` or `opt-out`.
   */
  | (RecipientMembers & { readonly kind: 'complaint'; readonly feedbackType: string })
  /**
   * A server that accepted the message still tries to deliver it. `failure` is the failure of the server's last
   * attempt. The class of `failure` is never `hard`.
   */
  | (RecipientMembers & { readonly kind: 'delayed'; readonly failure: Failure })
  /** A server that accepted the message has delivered it, relayed it, or expanded it to several recipients. */
  | (RecipientMembers & { readonly kind: 'delivered' })
  /** A provider has delivered the message to the recipient's mail server. */
  | (RecipientMembers & { readonly kind: 'confirmed' })
  /** A provider did not send the message, because the recipient is on the provider's suppression list. */
  | (RecipientMembers & { readonly kind: 'provider-suppressed' })
  /** The recipient does not want further messages. */
  | (RecipientMembers & { readonly kind: 'unsubscribed' })
  /** The recipient was removed from the provider's suppression list. */
  | (RecipientMembers & { readonly kind: 'reactivated' })
  /** An automatic reply: out of office, confirmation of receipt, challenge. */
  | { readonly kind: 'auto-reply'; readonly evidence: Evidence }
  /**
   * The report was not understood. `reason` is one line for the operator. It names the expected content that was not
   * found.
   */
  | { readonly kind: 'unknown'; readonly reason: string };

// The types of feedback reports to be stored, and of the results of storing them.

/** The managed providers with an endpoint for events. A test checks that src/providers has the same providers. */
export const EVENT_PROVIDERS = [
  'postmark',
  'sendgrid',
  'mailgun',
  'resend',
  'brevo',
  'mailjet',
  'sparkpost',
  'mandrill',
  'mailersend',
  'mailtrap',
  'postal',
] as const;

/**
 * The prefix of the member `by` of a history entry that a report caused. The name of the report's channel follows this
 * prefix.
 */
export const FEEDBACK_PREFIX = 'feedback:';

/** The channels over which reports arrive. The channel of a provider event has the name of the provider. */
export const FEEDBACK_SOURCES = ['smtp', 'sns', 'sqs', ...EVENT_PROVIDERS] as const;
export type FeedbackSource = (typeof FEEDBACK_SOURCES)[number];

/** The time of the last report from one source. */
export interface LastFeedback {
  readonly source: FeedbackSource;
  readonly at: number;
}

/** A feedback report to be stored. */
export interface FeedbackReport {
  /**
   * The reported message. `id`: a signed token, the metadata of a provider event or the Message-ID contained the id of
   * the message. `reference`: the id that the provider assigned. Null if the report identifies no message.
   */
  readonly messageRef: { readonly id: string } | { readonly reference: string } | null;
  readonly events: readonly FeedbackEvent[];
  readonly source: FeedbackSource;
  /** The SHA-256 of the report in hexadecimal. A repeated report has the same digest, so it changes nothing. */
  readonly digest: string;
  readonly at: number;
  /**
   * The domain of POSTRIDER_FEEDBACK_LOOPS that signed the report. Of the reports over SMTP, only complaints with such a
   * signature count towards a lock, because anyone can send the others.
   */
  readonly feedbackLoop?: string;
  /** One line for the operator: the sender and the subject of the report. */
  readonly summary: string;
  /** The received content, truncated to the size that is stored for a report that is not understood. */
  readonly raw: Uint8Array;
  /**
   * True if the sender will not repeat the report. If such a report cannot be applied yet, it is stored for the
   * operator.
   */
  readonly isFinal: boolean;
  /**
   * True if the report may be about a message of another program that uses the same provider account. Such a report is
   * ignored if no message matches.
   */
  readonly mayBeOtherProgram?: boolean;
  /**
   * True for a provider event. A provider event is ignored if its message or its recipient is unknown to this
   * installation. If its message is not settled, the event is stored and is applied later (`applyPendingReports`). If
   * the report contains no events, only its digest is recorded.
   */
  readonly isProviderEvent?: boolean;
  /**
   * True for a provider event whose signature covers the digest, but not the event. The store then records the digest
   * even if the event is ignored or stored for later processing, so that another event with the same signature changes
   * nothing.
   */
  readonly recordsDigestAlways?: boolean;
}

export type FeedbackResult =
  /** The state of the message changed. */
  | {
      readonly kind: 'applied';
      readonly id: string;
      readonly accountId: number;
      readonly to: 'delivered' | 'bounced' | 'complained';
      readonly recipient: string;
      readonly sender: string;
      readonly suppressed: boolean;
      readonly detail: string;
      /** The failure of a bounce, or null. */
      readonly failure: RecordedFailure | null;
    }
  /** The provider has delivered a message that was already `delivered`. */
  | {
      readonly kind: 'confirmed';
      readonly id: string;
      readonly accountId: number;
      readonly recipient: string;
      readonly sender: string;
      readonly detail: string;
    }
  /** The report was added to the message's history and changed no state. */
  | {
      readonly kind: 'recorded';
      readonly id: string;
      readonly verb: ReportEntryType;
      readonly suppressed: boolean;
      /** The failure of a bounce or of a delay, or null. */
      readonly failure: RecordedFailure | null;
    }
  /** The report was already recorded. */
  | { readonly kind: 'repeated' }
  /** The report was not understood, or is about an unknown message. It is stored with the number `feedbackId`. */
  | { readonly kind: 'stored'; readonly feedbackId: number; readonly reason: string }
  /**
   * The report is about a message or a recipient that is unknown to this installation, or contains no event. The store
   * wrote the digest of the report, or nothing (`recordsDigestAlways`, `isProviderEvent`).
   */
  | { readonly kind: 'unrelated' }
  /**
   * The message is not settled yet, or its provider id is not stored yet. The report is stored and is applied later.
   */
  | { readonly kind: 'pending' }
  /** The message is not settled yet, or its provider id is not stored yet. Nothing was written. */
  | { readonly kind: 'not-yet' };

/** A pending report that was applied, or that was removed as unrelated. */
export interface AppliedReport {
  readonly report: FeedbackReport;
  readonly result: FeedbackResult;
}

export interface AppliedReports {
  readonly reports: readonly AppliedReport[];
  /** The time when the next pending report is due; null if there is none. */
  readonly nextDueAt: number | null;
}

/** A report that is stored for the operator because it was not understood. */
export interface UnprocessedReport {
  readonly id: number;
  readonly at: number;
  readonly source: FeedbackSource;
  /** The reported message, or null if unknown. */
  readonly messageId: string | null;
  /** The reason why the report was not understood. */
  readonly reason: string;
  readonly summary: string;
}
