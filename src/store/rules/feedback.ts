/**
 * Rules for feedback reports, shared by both databases: the history entry, the new state of the message, whether the
 * recipient is suppressed, and whether the report counts towards the account's reputation. The functions have no side
 * effects.
 */
import {
  decideFeedbackChange,
  type FeedbackEvent,
  type FeedbackReport,
  type FeedbackResult,
  isProviderSimulator,
} from '../../model/feedback.ts';
import { type HistoryEntry, RECORDED_EVENTS, type State } from '../../model/message.ts';
import { requireTransition } from './messages.ts';

/** The stored message to which a report refers. */
export interface ReportedMessage {
  readonly id: string;
  readonly accountId: number;
  /** The id of the API key; 0 for a message of `doctor --loop`. */
  readonly keyId: number;
  readonly state: State;
  readonly to: string;
}

/** The decision to write a report into the history of a message. */
export interface RecordDecision {
  readonly kind: 'record';
  readonly id: string;
  readonly accountId: number;
  readonly from: State;
  readonly entry: HistoryEntry & { readonly attempt: null };
  /** The new state, or null if the state does not change. */
  readonly newState: 'bounced' | 'complained' | null;
  readonly suppress: 'bounce' | 'complaint' | null;
  /** The state that determines how the reputation counts the report. */
  readonly countedAs: 'bounced' | 'complained';
  readonly reputationRule: 'always' | 'if-suppressed' | 'never';
  /**
   * Returns the result of the report. `suppressed` is true if this report added the recipient to the suppression list.
   */
  readonly answer: (suppressed: boolean) => FeedbackResult;
}

export type FeedbackDecision =
  /** The decision to write nothing. */
  | { readonly kind: 'answer'; readonly answer: FeedbackResult }
  /**
   * The decision to store the report for the operator. If the report is `premature`, a repetition of the same report is
   * applied (`prematureReportDigest`).
   */
  | { readonly kind: 'store'; readonly messageId: string | null; readonly reason: string; readonly premature: boolean }
  | RecordDecision;

/** Decides on a report that names no message, or that names a message by an unknown provider reference. */
export function decideWithoutMessage({
  messageRef,
  events,
  mayBeOtherProgram,
  isFinal,
}: FeedbackReport): FeedbackDecision {
  if (messageRef === null) return storeForOperator(null, describeMissingMessage(events), false);
  if (mayBeOtherProgram === true) return { kind: 'answer', answer: { kind: 'unrelated' } };
  if (!isFinal) return { kind: 'answer', answer: { kind: 'not-yet' } };
  return storeForOperator(null, 'no message has the provider id that the report names', true);
}

/** Decides on a report about the message `id`. `found` is null if the message is not stored. */
export function decideFeedback(
  report: FeedbackReport,
  id: string,
  storedMessage: ReportedMessage | null,
): FeedbackDecision {
  if (storedMessage === null)
    return storeForOperator(id, 'the store does not contain the message that the report names', false);
  const { accountId, state: from, to } = storedMessage;
  // `doctor --loop` sends without an API key.
  const isTest = isProviderSimulator(to) || storedMessage.keyId === 0;
  const change = decideFeedbackChange({ state: from, to, isTest }, report.events);
  switch (change.kind) {
    case 'wait':
      if (!report.isFinal) return { kind: 'answer', answer: { kind: 'not-yet' } };
      return storeForOperator(id, `the message is still ${from}`, true);
    case 'not-understood':
      return storeForOperator(id, change.reason, false);
    case 'history-entry': {
      const { verb, suppress } = change;
      return {
        ...{ kind: 'record', id, accountId, from, suppress, newState: null },
        entry: createHistoryEntry(report, verb, change.detail),
        countedAs: suppress === 'complaint' ? 'complained' : 'bounced',
        reputationRule: 'if-suppressed',
        answer: (suppressed) => ({ kind: 'recorded', id, verb, suppressed }),
      };
    }
    case 'change': {
      const { to: newState, suppress, detail } = change;
      return {
        ...{ kind: 'record', id, accountId, from, suppress },
        newState: requireTransition(from, newState, 'feedback'),
        entry: createHistoryEntry(report, RECORDED_EVENTS[`message.${newState}`].verb, detail),
        countedAs: newState,
        reputationRule: isTest ? 'never' : 'always',
        answer: (suppressed) => ({ kind: 'applied', id, accountId, to: newState, recipient: to, suppressed, detail }),
      };
    }
  }
}

/**
 * Returns true if the report counts towards the account's reputation. Only new evidence counts: a bounce that
 * suppressed its recipient, or the first complaint of a recipient in the window, even if the recipient was suppressed
 * before.
 */
export function countsTowardReputation(
  { reputationRule }: Pick<RecordDecision, 'reputationRule'>,
  suppressed: boolean,
): boolean {
  return reputationRule === 'always' || (reputationRule === 'if-suppressed' && suppressed);
}

/**
 * Returns the digest under which a premature report is stored. It differs from the report's own digest, so that a
 * repetition of the report is applied.
 */
export function prematureReportDigest(digest: string): string {
  return `${digest}:early`;
}

function createHistoryEntry({ at, source }: FeedbackReport, verb: string, detail: string): RecordDecision['entry'] {
  return { at, verb, by: `feedback:${source}`, detail, attempt: null };
}

function storeForOperator(messageId: string | null, reason: string, premature: boolean): FeedbackDecision {
  return { kind: 'store', messageId, reason, premature };
}

/**
 * Returns the reason why a report has no message: the report was not understood, or it names no message of this
 * installation.
 */
function describeMissingMessage(notices: readonly FeedbackEvent[]): string {
  const unknown = notices.find((notice) => notice.kind === 'unknown');
  return unknown?.reason ?? 'the report names no message of this installation';
}
