/**
 * Decides what a report of another server or of a provider changes. It suppresses only the recipient of its message,
 * changes a state only as `TRANSITIONS` allows, and never that of a message that is in `sending` or was never sent.
 * Pure.
 */
import { type EvidenceKind, getDomain, parseAddress, toCanonicalAddress } from './address.ts';
import { type Failure, MAX_DIAGNOSTIC_LENGTH, type RecordedFailure } from './failure.ts';
import { isAllowedTransition, type State } from './message.ts';

/** What the history of a message says to a report about it. */
export interface HistoryFacts {
  /** An earlier attempt was unanswered, or its lease was lost. */
  readonly mayHaveBeenSent: boolean;
  readonly isConfirmed: boolean;
  /** An earlier failure of the class `hard` suppressed the recipient. */
  readonly hasHardFailure: boolean;
  /** An earlier report bounced the message, or named the provider's suppression list. */
  readonly hasReportedBounce: boolean;
}

interface MessageFacts extends HistoryFacts {
  readonly state: State;
  readonly to: string;
  /** A test message of `doctor --loop`. */
  readonly isTest: boolean;
}

type FeedbackChange =
  | {
      readonly kind: 'change';
      readonly to: 'bounced' | 'complained';
      /** The type of the entry if the same report changes no state. */
      readonly verb: ReportEntryType;
      readonly suppress: FeedbackSuppression | null;
      readonly countsForReputation: boolean;
      /** What the report proves about the account if it is authenticated, whatever the state of the message. */
      readonly evidence: EvidenceKind | null;
      readonly detail: string;
      readonly failure: RecordedFailure | null;
    }
  /** `to`: the state changes too. */
  | { readonly kind: 'confirm'; readonly to: 'delivered' | null; readonly detail: string }
  | {
      readonly kind: 'history-entry';
      readonly verb: ReportEntryType;
      readonly detail: string;
      readonly failure: RecordedFailure | null;
      readonly suppress: FeedbackSuppression | null;
      readonly countsForReputation: boolean;
      readonly evidence: EvidenceKind | null;
    }
  /** The address is not the recipient of the message. */
  | { readonly kind: 'other-recipient' }
  /** The message is in `sending` or was never sent, so the report must be applied later. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'not-understood'; readonly reason: string };

/** `provider`: the address is on the provider's suppression list. */
export type FeedbackSuppression = 'bounce' | 'complaint' | 'unsubscribed' | 'provider';

/** The history entries of reports that changed no state. */
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

/** RFC 5965 section 7.3. `opt-out` occurs only in drafts of the RFC, but is still in use. */
const COMPLAINT_TYPES: readonly string[] = ['abuse', 'fraud', 'virus', 'opt-out', 'opt-out-list'];

const PROVIDER_SIMULATOR_DOMAINS: readonly string[] = ['simulator.amazonses.com'];

const MAX_DETAIL_LENGTH = 1_500;

/** A report about such a message changes its state, but suppresses nobody and does not count towards the reputation. */
export function isProviderSimulator(address: string): boolean {
  return PROVIDER_SIMULATOR_DOMAINS.includes(address.slice(address.lastIndexOf('@') + 1).toLowerCase());
}

/** A provider event names the recipient of the message, or none. With another recipient it changes nothing. */
export function decideFeedbackChange(
  message: MessageFacts,
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
    // The message was forwarded to several addresses, and at least one of them has no permanent bounce.
    return createHistoryEntry(
      'bounce-reported',
      formatDetail(highestRankedEvent, message.to),
      findFailure(highestRankedEvent),
    );
  }
  return decideEventChange(message, highestRankedEvent, eventsAboutRecipient.length > 0);
}

function decideEventChange(message: MessageFacts, event: RecipientEvent, concernsRecipient: boolean): FeedbackChange {
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

/** A message that is uncertain, or queued after an attempt without a reply, becomes `delivered`. */
function decideConfirmation({ state, mayHaveBeenSent, isConfirmed }: MessageFacts, detail: string): FeedbackChange {
  if (state === 'sending') return { kind: 'wait' };
  if (state === 'uncertain' || (state === 'queued' && mayHaveBeenSent))
    return { kind: 'confirm', to: 'delivered', detail };
  if ((state === 'delivered' || state === 'complained') && !isConfirmed) return { kind: 'confirm', to: null, detail };
  return createHistoryEntry('delivery-reported', detail, null);
}

function decideStateChange(
  message: MessageFacts,
  to: 'bounced' | 'complained',
  suppress: FeedbackSuppression | null,
  verb: ReportEntryType,
  detail: string,
  failure: RecordedFailure | null,
): FeedbackChange {
  const { state, mayHaveBeenSent } = message;
  if (state === 'sending' || (state === 'queued' && !mayHaveBeenSent)) return { kind: 'wait' };
  const applicableSuppression = decideSuppression(message, suppress);
  // The list contains recipients of other programs too.
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

/** Suppresses only if the earlier bounce did not: an operator may have removed the suppression since. */
function suppressesBouncedRecipient(
  { state, hasHardFailure, hasReportedBounce }: MessageFacts,
  suppress: FeedbackSuppression | null,
): boolean {
  return state === 'bounced' && !hasHardFailure && (suppress === 'bounce' || !hasReportedBounce);
}

function decideSuppression(
  { to, isTest }: MessageFacts,
  suppress: FeedbackSuppression | null,
): FeedbackSuppression | null {
  return isTest || isProviderSimulator(to) ? null : suppress;
}

/** No transition, but the recipient is suppressed, because a copy of the message may have been sent. */
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

function findHighestRankedEvent(events: readonly RecipientEvent[]): RecipientEvent | null {
  let highestRankedEvent: RecipientEvent | null = null;
  for (const event of events) {
    if (highestRankedEvent === null || getEffectRank(event) > getEffectRank(highestRankedEvent))
      highestRankedEvent = event;
  }
  return highestRankedEvent;
}

/** An event with a higher rank takes precedence. */
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

/** A message has one recipient. */
function isAboutRecipient({ recipient, alias }: RecipientEvent, to: string): boolean {
  if (recipient === null && alias === null) return true;
  return [recipient, alias].some((address) => address !== null && isSameMailbox(address, to));
}

/** A server can rewrite an address within its own domains, and then the failure is that of the recipient. */
function isForwarded({ alias }: RecipientEvent, to: string): boolean {
  if (alias === null || isSameMailbox(alias, to)) return false;
  const [failedDomain, domain] = [getDomain(alias), getDomain(to)];
  return failedDomain !== domain && !failedDomain.endsWith(`.${domain}`) && !domain.endsWith(`.${failedDomain}`);
}

function isSameMailbox(reportedAddress: string, to: string): boolean {
  if (reportedAddress === to) return true;
  const reportedMailbox = parseAddress(reportedAddress);
  const messageMailbox = parseAddress(to);
  if (reportedMailbox === null || messageMailbox === null) return reportedAddress.toLowerCase() === to.toLowerCase();
  if (toCanonicalAddress(reportedMailbox) === toCanonicalAddress(messageMailbox)) return true;
  // Feedback loops redact the address of the complainant (RFC 6590), and the message has one recipient.
  return reportedMailbox.domain === messageMailbox.domain && reportedMailbox.localPart.toLowerCase().includes('redact');
}

function formatDetail(event: RecipientEvent, to: string): string {
  const reportedAddresses = [event.recipient, event.alias].filter((address) => address !== null);
  const otherAddressText =
    reportedAddresses.length > 0 && !isAboutRecipient(event, to) ? `about ${reportedAddresses.join(', ')}` : null;
  const type = event.kind === 'complaint' ? event.feedbackType : null;
  return formatEvidence(event.evidence, [type, otherAddressText].filter((part) => part !== null).join(', '));
}

const PROVIDER_SUPPRESSION: Failure = { class: 'block', category: 'policy' };

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

/** For example `5.1.1 550 no such user (reported by mx.example.com; about bob@example.net)`. */
function formatEvidence({ status, diagnostic, reportingHost }: Evidence, extraText: string): string {
  const diagnosticParts =
    diagnostic !== null && status !== null && diagnostic.includes(status) ? [diagnostic] : [status, diagnostic];
  const reportedBy = reportingHost === null ? '' : `reported by ${reportingHost}`;
  const annotation = [extraText, reportedBy].filter((part) => part !== '').join('; ');
  const text = diagnosticParts.filter((part) => part !== null && part !== '').join(' ');
  const line = annotation === '' ? text : text === '' ? annotation : `${text} (${annotation})`;
  return (line === '' ? 'no reason was given' : line).slice(0, MAX_DETAIL_LENGTH);
}

/** The tag of a sent message that provider events repeat. */
export const MESSAGE_ID_TAG = 'postrider-id';

/** One line each, without control characters. */
export interface Evidence {
  /** Enhanced status code such as `5.1.1` (RFC 3463). */
  readonly status: string | null;
  /** At most `MAX_DIAGNOSTIC_LENGTH` characters. */
  readonly diagnostic: string | null;
  /** The creator of the report (RFC 3464 section 2.2.2, RFC 5965 section 3.2), at most 255 characters. */
  readonly reportingHost: string | null;
}

interface RecipientMembers {
  /** As written in the report: the original recipient if there is one. Null if the report names no recipient. */
  readonly recipient: string | null;
  /** The final recipient after forwarding, if it differs from the original one. */
  readonly alias: string | null;
  readonly evidence: Evidence;
}

export type FeedbackEvent =
  /** Only a failure of the class `hard` suppresses the recipient. Such a bounce is permanent. */
  | (RecipientMembers & {
      readonly kind: 'bounce';
      readonly permanent: boolean;
      readonly failure: Failure;
    })
  /** `feedbackType`: RFC 5965 section 7.3, such as `abuse` or `not-spam`. */
  | (RecipientMembers & { readonly kind: 'complaint'; readonly feedbackType: string })
  /** The server that accepted the message still tries. The class is never `hard`. */
  | (RecipientMembers & { readonly kind: 'delayed'; readonly failure: Failure })
  /** By the server that accepted the message: delivered, relayed or expanded. */
  | (RecipientMembers & { readonly kind: 'delivered' })
  /** By the provider to the recipient's mail server. */
  | (RecipientMembers & { readonly kind: 'confirmed' })
  /** Not sent, because the recipient is on the provider's suppression list. */
  | (RecipientMembers & { readonly kind: 'provider-suppressed' })
  | (RecipientMembers & { readonly kind: 'unsubscribed' })
  /** The recipient was removed from the provider's suppression list. */
  | (RecipientMembers & { readonly kind: 'reactivated' })
  | { readonly kind: 'auto-reply'; readonly evidence: Evidence }
  /** `reason`: one line that names the expected content. */
  | { readonly kind: 'unknown'; readonly reason: string };

/** A test checks that src/providers has the same providers. */
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

/** Precedes the channel in the member `by` of a history entry. */
export const FEEDBACK_PREFIX = 'feedback:';

/** The channel of a provider event has the name of the provider. */
export const FEEDBACK_SOURCES = ['smtp', 'sns', 'sqs', ...EVENT_PROVIDERS] as const;
export type FeedbackSource = (typeof FEEDBACK_SOURCES)[number];

export interface LastFeedback {
  readonly source: FeedbackSource;
  readonly at: number;
}

export interface FeedbackReport {
  /** `id`: from a signed token, metadata or the Message-ID. `reference`: the id that the provider assigned. */
  readonly messageRef: { readonly id: string } | { readonly reference: string } | null;
  readonly events: readonly FeedbackEvent[];
  readonly source: FeedbackSource;
  /** SHA-256 in hexadecimal. A repeated report has the same digest and changes nothing. */
  readonly digest: string;
  readonly at: number;
  /**
   * The domain of POSTRIDER_FEEDBACK_LOOPS that signed the report. Without it a complaint over SMTP cannot lock an
   * account, because anyone can send it.
   */
  readonly feedbackLoop?: string;
  /** One line: the sender and the subject. */
  readonly summary: string;
  /** Truncated to the size that is stored. */
  readonly raw: Uint8Array;
  /** The sender will not repeat the report, so it is stored for the operator if it cannot be applied yet. */
  readonly isFinal: boolean;
  /** The message is so old that its absence means that it was purged. */
  readonly mayBePurged?: boolean;
  /** The report may concern another program with the same provider account. It is ignored if no message matches. */
  readonly mayBeOtherProgram?: boolean;
  /**
   * Ignored if its message or recipient is unknown; stored and applied later if the message is not settled
   * (`applyPendingReports`). Without events only the digest is recorded.
   */
  readonly isProviderEvent?: boolean;
  /**
   * The signature covers the digest but not the event, so the digest is always recorded: another event with the same
   * signature changes nothing.
   */
  readonly recordsDigestAlways?: boolean;
  /** The report is not about a message that one of these routes handed over: they have another provider. */
  readonly otherRoutes?: readonly string[];
}

export type FeedbackResult =
  | {
      readonly kind: 'applied';
      readonly id: string;
      readonly accountId: number;
      readonly to: 'delivered' | 'bounced' | 'complained';
      readonly recipient: string;
      readonly sender: string;
      /** Null: the installation had one route. */
      readonly route: string | null;
      readonly suppressed: boolean;
      readonly detail: string;
      readonly failure: RecordedFailure | null;
    }
  | {
      readonly kind: 'confirmed';
      readonly id: string;
      readonly accountId: number;
      readonly recipient: string;
      readonly sender: string;
      readonly detail: string;
    }
  | {
      readonly kind: 'recorded';
      readonly id: string;
      readonly verb: ReportEntryType;
      readonly suppressed: boolean;
      readonly failure: RecordedFailure | null;
    }
  | { readonly kind: 'repeated' }
  | { readonly kind: 'stored'; readonly feedbackId: number; readonly reason: string }
  /** The message or the recipient is unknown, or there is no event. At most the digest was written. */
  | { readonly kind: 'unrelated' }
  /** Stored and applied later: the message is not settled, or its provider id is not stored yet. */
  | { readonly kind: 'pending' }
  /** As `pending`, but nothing was written. */
  | { readonly kind: 'not-yet' };

export interface AppliedReport {
  readonly report: FeedbackReport;
  readonly result: FeedbackResult;
}

export interface AppliedReports {
  readonly reports: readonly AppliedReport[];
  /** The time when the next pending report is due; null if there is none. */
  readonly nextDueAt: number | null;
}

export interface UnprocessedReport {
  readonly id: number;
  readonly at: number;
  readonly source: FeedbackSource;
  readonly messageId: string | null;
  readonly reason: string;
  readonly summary: string;
}

// The reports of provider events as one text: copying a text between threads takes a fraction of the time of copying
// objects (docs/decisions/provider-events.md).

export interface PackedReports {
  readonly count: number;
  readonly text: string;
  readonly otherRoutes?: FeedbackReport['otherRoutes'];
}

const COMMON_MEMBERS = { raw: new Uint8Array(), isFinal: false, isProviderEvent: true } as const;

export function packReports(reports: readonly FeedbackReport[]): PackedReports {
  const text = JSON.stringify(
    reports.map(({ messageRef, events, source, digest, at, summary, recordsDigestAlways, otherRoutes }) => {
      return { messageRef, events, source, digest, at, summary, recordsDigestAlways, otherRoutes };
    }),
  );
  return { count: reports.length, text };
}

export function unpackReports({ text, otherRoutes }: PackedReports): readonly FeedbackReport[] {
  const reports = JSON.parse(text) as readonly Omit<FeedbackReport, keyof typeof COMMON_MEMBERS>[];
  return reports.map((report) => ({
    ...report,
    ...COMMON_MEMBERS,
    ...(otherRoutes === undefined ? {} : { otherRoutes }),
  }));
}
