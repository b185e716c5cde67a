/** Rules for reports: the entry, the new state, whether the recipient is suppressed and the reputation counts. Pure. */
import type { EvidenceKind } from '../../model/address.ts';
import type { RecordedFailure } from '../../model/failure.ts';
import {
  decideFeedbackChange,
  FEEDBACK_PREFIX,
  type FeedbackEvent,
  type FeedbackReport,
  type FeedbackResult,
  type FeedbackSuppression,
  type HistoryFacts,
  isProviderSimulator,
  type ReportEntryType,
} from '../../model/feedback.ts';
import {
  type EntryWithoutAttempt,
  type HistoryEntry,
  NOTIFICATION_KEY_ID,
  RECORDED_EVENTS,
  type State,
} from '../../model/message.ts';
import { requireTransition } from './messages.ts';

export interface ReportedMessage {
  readonly id: string;
  readonly accountId: number;
  /**
   * The id of the API key; 0 for a message of `doctor --loop`, `NOTIFICATION_KEY_ID` for a notification to operators.
   */
  readonly keyId: number;
  readonly state: State;
  readonly to: string;
  readonly sender: string;
  /** Of the last attempt; null if the installation had one route. */
  readonly route: string | null;
  readonly summary: HistorySummary;
}

/**
 * Columns of the message contain this, so that the cost of a decision does not depend on the number of earlier reports.
 */
export interface HistorySummary extends HistoryFacts {
  /** The kinds of evidence of authenticated reports. Each counts toward a lock once. */
  readonly provenKinds: readonly EvidenceKind[];
  readonly reports: readonly string[];
}

/**
 * Of further reports only those with an effect are recorded, and the others counted: everyone who received the message
 * can send any number.
 */
export const MAX_REPORTS = 20;

/** The bits of the column `facts` of a message. */
const FACTS = { mayHaveBeenSent: 1, isConfirmed: 2, hasHardFailure: 4, hasReportedBounce: 8 } as const;
const PROVEN_FACTS: readonly (readonly [EvidenceKind, number])[] = [
  ['bounce', 16],
  ['complaint', 32],
];

export function toHistorySummary(facts: number, reports: string | null): HistorySummary {
  return {
    mayHaveBeenSent: (facts & FACTS.mayHaveBeenSent) !== 0,
    isConfirmed: (facts & FACTS.isConfirmed) !== 0,
    hasHardFailure: (facts & FACTS.hasHardFailure) !== 0,
    hasReportedBounce: (facts & FACTS.hasReportedBounce) !== 0,
    provenKinds: PROVEN_FACTS.flatMap(([kind, bit]) => ((facts & bit) === 0 ? [] : kind)),
    reports: reports === null ? [] : reports.split('\n'),
  };
}

export interface AppendedEntry extends Omit<HistoryEntry, 'attempt'> {
  /** JSON, or null. */
  readonly attempt: string | null;
  /** True for an attempt after which it is unknown whether the message was sent. */
  readonly isUnanswered?: boolean;
  /** True for the failure of another address, such as one to which the recipient forwards. */
  readonly concernsOther?: boolean;
  /** Set for a report that counts toward a lock. */
  readonly evidence?: EvidenceKind | null;
}

/** A message may have been sent if an attempt was unanswered or uncertain, or if its lease was lost. */
export function getFacts({
  verb,
  failure,
  attempt,
  isUnanswered = false,
  concernsOther = false,
  evidence = null,
}: AppendedEntry): number {
  let facts = PROVEN_FACTS.find(([kind]) => kind === evidence)?.[1] ?? 0;
  if (isUnanswered || LOST_LEASE_VERBS.includes(verb)) facts |= FACTS.mayHaveBeenSent;
  if (verb === CONFIRMED_VERB) facts |= FACTS.isConfirmed;
  if (failure?.class === 'hard' && !concernsOther) facts |= FACTS.hasHardFailure;
  if (verb === PROVIDER_LIST_VERB || (verb === BOUNCED_VERB && attempt === null)) facts |= FACTS.hasReportedBounce;
  return facts;
}

function formatReport(verb: ReportEntryType, failure: RecordedFailure | null): string {
  return [verb, failure?.class, failure?.status].filter((part) => part !== undefined && part !== null).join(' ');
}

const NOT_UNDERSTOOD_REPORT = 'not-understood';

/** Returns true if the decision on the report depends on whether the recipient is already suppressed. */
export function maySuppress({ events }: FeedbackReport): boolean {
  return events.some(({ kind }) => SUPPRESSING_KINDS.has(kind));
}

const SUPPRESSING_KINDS: ReadonlySet<FeedbackEvent['kind']> = new Set<FeedbackEvent['kind']>([
  'bounce',
  'complaint',
  'provider-suppressed',
  'unsubscribed',
]);

/**
 * True if the summary of the message identifies a repetition, so that no digest is stored: almost every message has an
 * event about its delivery.
 */
export function isIdentifiedByHistory({ isProviderEvent, recordsDigestAlways, events }: FeedbackReport): boolean {
  return (
    isProviderEvent === true &&
    recordsDigestAlways !== true &&
    events.length > 0 &&
    events.every(({ kind }) => kind === 'confirmed')
  );
}

const CONFIRMED_VERB = 'confirmed' satisfies ReportEntryType;
const DELIVERY_VERB = 'delivery-reported' satisfies ReportEntryType;
const PROVIDER_LIST_VERB = 'provider-suppression-reported' satisfies ReportEntryType;
const BOUNCED_VERB = RECORDED_EVENTS['message.bounced'].verb;
const LOST_LEASE_VERBS: readonly string[] = [
  RECORDED_EVENTS['message.recovered'].verb,
  RECORDED_EVENTS['message.uncertain'].verb,
];

type ReportEntry = EntryWithoutAttempt & Pick<AppendedEntry, 'concernsOther' | 'evidence'>;

export interface RecordDecision {
  readonly kind: 'record';
  readonly id: string;
  readonly accountId: number;
  readonly from: State;
  /** The history entries in the order of recording, at least one. */
  readonly entries: readonly ReportEntry[];
  /** The report that is added to the summary of the message, or null. */
  readonly addedReport: string | null;
  /** The new state, or null if the state does not change. */
  readonly newState: 'delivered' | 'bounced' | 'complained' | null;
  readonly suppress: FeedbackSuppression | null;
  /** The state that determines how the reputation counts the report. */
  readonly reputationState: 'bounced' | 'complained';
  readonly reputationRule: 'always' | 'if-suppressed' | 'never';
  /**
   * What counts toward a lock, whether or not earlier reports of outsiders said the same: nobody else than a provider
   * could have sent the report, and it is the first one of its kind about the message.
   */
  readonly evidence: EvidenceKind | null;
  /** `suppressed` is true if this report added the recipient to the suppression list. */
  readonly createResult: (suppressed: boolean) => FeedbackResult;
}

export type FeedbackDecision =
  | { readonly kind: 'answer'; readonly answer: FeedbackResult }
  /** The decision to record the digest, and nothing else. */
  | { readonly kind: 'digest'; readonly answer: FeedbackResult }
  /** The decision to count the report, and to add `facts` to the summary of its message. */
  | { readonly kind: 'count'; readonly id: string; readonly facts: number }
  /** The report waits until its message is settled, or until the provider id that it names is stored. */
  | { readonly kind: 'pending'; readonly messageId: string | null }
  /** The report is stored for the operator. If it is `premature`, a repetition is applied. */
  | {
      readonly kind: 'store';
      readonly messageId: string | null;
      readonly reason: string;
      readonly premature: boolean;
      readonly addedReport: string | null;
    }
  | RecordDecision;

/** Decides on a report that names no message, or that names a message by an unknown provider reference. */
export function decideWithoutMessage(report: FeedbackReport): FeedbackDecision {
  const { messageRef, events, mayBeOtherProgram, isFinal, isProviderEvent } = report;
  if (isProviderEvent === true) {
    if (events.length === 0) return { kind: 'digest', answer: UNRELATED };
    // The event stays pending, because it can arrive before the reply of the relay, which contains the provider's id of
    // the message.
    return messageRef === null ? createDecisionWithoutChange(report, UNRELATED) : { kind: 'pending', messageId: null };
  }
  if (messageRef === null) return storeForOperator(null, describeMissingMessage(events), false);
  if (mayBeOtherProgram === true) return { kind: 'answer', answer: UNRELATED };
  if (!isFinal) return { kind: 'answer', answer: { kind: 'not-yet' } };
  return storeForOperator(null, 'no message has the provider id that the report names', true);
}

/** `isSuppressed` may be false if `maySuppress` returns false. */
export function decideFeedback(
  report: FeedbackReport,
  id: string,
  storedMessage: ReportedMessage | null,
  isSuppressed: boolean,
): FeedbackDecision {
  const isProviderEvent = report.isProviderEvent === true;
  if (storedMessage === null && (isProviderEvent || report.mayBePurged === true))
    return createDecisionWithoutChange(report, UNRELATED);
  if (storedMessage === null)
    return storeForOperator(id, 'the store does not contain the message that the report names', false);
  if (isOfOtherRoute(report, storedMessage)) return createDecisionWithoutChange(report, UNRELATED);
  const { accountId, state: from, to, sender, route, summary } = storedMessage;
  // A message of `doctor --loop` has the key id 0, because it is sent without an API key.
  const isTest = isProviderSimulator(to) || storedMessage.keyId === 0;
  // A bounce of a notification must not lock the account, because the lock would cause another notification.
  const isCounted = !isTest && storedMessage.keyId !== NOTIFICATION_KEY_ID;
  const change = decideFeedbackChange({ state: from, to, isTest, ...summary }, report.events, isProviderEvent);
  const isFull = summary.reports.length >= MAX_REPORTS;
  const isAuthenticated = report.source !== 'smtp' || report.feedbackLoop !== undefined;
  const record = { kind: 'record', id, accountId, from } as const;
  const subject = { id, accountId, recipient: to, sender };
  const findEvidence = (kind: EvidenceKind | null) =>
    kind !== null && isAuthenticated && isCounted && !summary.provenKinds.includes(kind) ? kind : null;
  switch (change.kind) {
    case 'other-recipient':
      return createDecisionWithoutChange(report, UNRELATED);
    case 'wait':
      if (isProviderEvent) return { kind: 'pending', messageId: id };
      if (!report.isFinal) return { kind: 'answer', answer: { kind: 'not-yet' } };
      return storeForOperator(id, `the message is still ${from}`, true);
    case 'not-understood':
      if (isFull) return { kind: 'count', id, facts: 0 };
      return { ...storeForOperator(id, change.reason, false), addedReport: NOT_UNDERSTOOD_REPORT };
    case 'history-entry': {
      const { verb, failure, countsForReputation } = change;
      const suppress = isSuppressed ? null : change.suppress;
      const evidence = findEvidence(change.evidence);
      const hasEffect = suppress !== null || evidence !== null;
      const formattedReport = formatReport(verb, failure);
      const isRepeated = summary.reports.includes(formattedReport) || (verb === DELIVERY_VERB && summary.isConfirmed);
      const entry: ReportEntry = {
        ...createReportEntry(report, verb, change.detail, failure),
        concernsOther: change.suppress === null,
        evidence,
      };
      if (!hasEffect && isRepeated) return createDecisionWithoutChange(report, { kind: 'repeated' });
      if (!hasEffect && isFull) return { kind: 'count', id, facts: getFacts(entry) };
      return {
        ...record,
        entries: [entry],
        addedReport: isRepeated || isFull ? null : formattedReport,
        newState: null,
        suppress,
        evidence,
        reputationState: (suppress ?? evidence) === 'complaint' ? 'complained' : 'bounced',
        reputationRule: countsForReputation && isCounted ? 'if-suppressed' : 'never',
        createResult: (suppressed) => ({ kind: 'recorded', id, verb, suppressed, failure }),
      };
    }
    case 'change': {
      const { to: newState, suppress, detail, failure, countsForReputation } = change;
      const formattedReport = formatReport(change.verb, failure);
      const evidence = findEvidence(change.evidence);
      const entry = createReportEntry(report, RECORDED_EVENTS[`message.${newState}`].verb, detail, failure);
      return {
        ...record,
        entries: [{ ...entry, concernsOther: suppress === null, evidence }],
        addedReport: isFull || summary.reports.includes(formattedReport) ? null : formattedReport,
        newState: requireTransition(from, newState, 'feedback'),
        suppress,
        evidence,
        reputationState: newState,
        reputationRule: isCounted && countsForReputation ? 'always' : 'never',
        createResult: (suppressed) => ({
          kind: 'applied',
          ...subject,
          route,
          to: newState,
          suppressed,
          detail,
          failure,
        }),
      };
    }
    case 'confirm': {
      const { to: newState, detail } = change;
      const confirmation = createReportEntry(report, CONFIRMED_VERB, detail, null);
      const delivery = createReportEntry(report, RECORDED_EVENTS['message.delivered'].verb, detail, null);
      return {
        ...record,
        entries: newState === null ? [confirmation] : [delivery, confirmation],
        addedReport: null,
        newState: newState === null ? null : requireTransition(from, newState, 'feedback'),
        suppress: null,
        evidence: null,
        reputationState: 'bounced',
        reputationRule: 'never',
        createResult: () =>
          newState === null
            ? { kind: 'confirmed', ...subject, detail }
            : {
                kind: 'applied',
                ...subject,
                route,
                to: newState,
                suppressed: false,
                detail,
                failure: null,
              },
      };
    }
  }
}

/** While the message is not settled, or if an earlier attempt may have sent it, its route says nothing about the sender. */
function isOfOtherRoute(
  { otherRoutes = [] }: FeedbackReport,
  { state, route, summary: { mayHaveBeenSent } }: ReportedMessage,
): boolean {
  const isSettled = state !== 'queued' && state !== 'sending' && !mayHaveBeenSent;
  return isSettled && route !== null && otherRoutes.includes(route);
}

/** A report that only adds an entry counts if it suppressed the recipient. */
export function countsTowardReputation({ reputationRule }: RecordDecision, suppressed: boolean): boolean {
  return reputationRule === 'always' || (reputationRule === 'if-suppressed' && suppressed);
}

/** Differs from the report's own digest, so that a later repetition is applied. */
export function computePrematureReportDigest(digest: string): string {
  return `${digest}:early`;
}

/**
 * If the digest is recorded immediately, the pending report has another one, because it would be ignored as a
 * repetition.
 */
export function toPendingReport(report: FeedbackReport): FeedbackReport {
  return report.recordsDigestAlways === true
    ? { ...report, digest: `${report.digest}:kept`, recordsDigestAlways: false }
    : report;
}

function createDecisionWithoutChange(
  { recordsDigestAlways }: FeedbackReport,
  answer: FeedbackResult,
): FeedbackDecision {
  return recordsDigestAlways === true ? { kind: 'digest', answer } : { kind: 'answer', answer };
}

const UNRELATED: FeedbackResult = { kind: 'unrelated' };

function createReportEntry(
  { at, source }: FeedbackReport,
  verb: string,
  detail: string,
  failure: RecordedFailure | null,
): EntryWithoutAttempt {
  return { at, verb, by: `${FEEDBACK_PREFIX}${source}`, detail, failure, attempt: null };
}

function storeForOperator(
  messageId: string | null,
  reason: string,
  premature: boolean,
): Extract<FeedbackDecision, { readonly kind: 'store' }> {
  return { kind: 'store', messageId, reason, premature, addedReport: null };
}

function describeMissingMessage(events: readonly FeedbackEvent[]): string {
  const unknownEvent = events.find((event) => event.kind === 'unknown');
  return unknownEvent?.reason ?? 'the report names no message of this installation';
}

/** The maximum number of reports that `listLastFeedback` reads, newest first. */
export const MAX_SCANNED_REPORTS = 1_000_000;

export interface PendingReport {
  readonly receivedAt: number;
  readonly report: FeedbackReport;
}

/** The maximum time for which a report waits for a provider id that is not stored. */
const MAX_REFERENCE_WAIT_MS = 60_000;
const MIN_PENDING_INTERVAL_MS = 250;
const MAX_PENDING_INTERVAL_MS = 15_000;

/**
 * The interval is the age of the report, within limits. Null if the report has waited too long for a provider id: its
 * message is then that of another program.
 */
export function computeNextPendingAttemptAt(receivedAt: number, messageId: string | null, now: number): number | null {
  const ageMs = now - receivedAt;
  if (messageId === null && ageMs >= MAX_REFERENCE_WAIT_MS) return null;
  return now + Math.min(MAX_PENDING_INTERVAL_MS, Math.max(MIN_PENDING_INTERVAL_MS, ageMs));
}

/** `raw` is omitted, because the bytes of a provider event are not stored. */
export function formatPendingReport({ raw: _raw, ...report }: FeedbackReport): string {
  return JSON.stringify(report);
}

export function parsePendingReport(text: string): FeedbackReport {
  return { ...(JSON.parse(text) as Omit<FeedbackReport, 'raw'>), raw: new Uint8Array() };
}
