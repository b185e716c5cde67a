/**
 * What a report does to what is stored, decided for both databases: what is written into the history, the state that the message
 * enters, whether its recipient is suppressed and whether the account's reputation counts it. Pure.
 */
import {
  decideFeedbackChange,
  type FeedbackReport,
  type FeedbackResult,
  isProviderSimulator,
  type Notice,
} from '../../model/feedback.ts';
import { type HistoryEntry, RECORDED_EVENTS, type State } from '../../model/message.ts';
import { transition } from './messages.ts';

/** The message that a report is about, as it is stored. */
export interface ReportedMessage {
  readonly id: string;
  readonly accountId: number;
  /** 0 where `doctor --loop` sent it. */
  readonly keyId: number;
  readonly state: State;
  readonly to: string;
}

/** A report that is written into a message's history. */
export interface Recording {
  readonly kind: 'record';
  readonly id: string;
  readonly accountId: number;
  readonly from: State;
  readonly entry: HistoryEntry & { readonly attempt: null };
  /** The state that the message enters, or null where it stays in its own. */
  readonly newState: 'bounced' | 'complained' | null;
  readonly suppress: 'bounce' | 'complaint' | null;
  /** What reputation takes it for. */
  readonly countedAs: 'bounced' | 'complained';
  readonly counts: 'always' | 'if-suppressed' | 'never';
  /** Given whether the recipient is on the list because of this report. */
  readonly answer: (suppressed: boolean) => FeedbackResult;
}

export type FeedbackDecision =
  /** Nothing is written. */
  | { readonly kind: 'answer'; readonly answer: FeedbackResult }
  /** It is kept for the operator; `early` where the same report is to be applied when it comes once more (`prematureReportDigest`). */
  | { readonly kind: 'keep'; readonly messageId: string | null; readonly reason: string; readonly premature: boolean }
  | Recording;

/** The decision on a report that names no message, or names one by an unknown provider id. */
export function decideWithoutMessage({
  about,
  notices,
  mayBeOtherProgram: foreign,
  isFinal: last,
}: FeedbackReport): FeedbackDecision {
  if (about === null) return keep(null, reasonWithoutMessage(notices), false);
  if (foreign === true) return { kind: 'answer', answer: { kind: 'foreign' } };
  if (!last) return { kind: 'answer', answer: { kind: 'not-yet' } };
  return keep(null, 'no mail request has the provider’s id that it names', true);
}

/** A report about the message `id`; `found` is null where it is not stored. */
export function decideFeedback(report: FeedbackReport, id: string, found: ReportedMessage | null): FeedbackDecision {
  if (found === null) return keep(id, 'its mail request is not stored here', false);
  const { accountId, state: from, to } = found;
  // A key of none made it: `doctor --loop`.
  const trial = isProviderSimulator(to) || found.keyId === 0;
  const after = decideFeedbackChange({ state: from, to, trial }, report.notices);
  switch (after.kind) {
    case 'wait':
      if (!report.isFinal) return { kind: 'answer', answer: { kind: 'not-yet' } };
      return keep(id, `its mail request is still ${from}`, true);
    case 'keep':
      return keep(id, after.reason, false);
    case 'note': {
      const { verb, suppress } = after;
      return {
        ...{ kind: 'record', id, accountId, from, suppress, newState: null },
        entry: entryOf(report, verb, after.detail),
        countedAs: suppress === 'complaint' ? 'complained' : 'bounced',
        counts: 'if-suppressed',
        answer: (suppressed) => ({ kind: 'noted', id, verb, suppressed }),
      };
    }
    case 'change': {
      const { to: enters, suppress, detail } = after;
      return {
        ...{ kind: 'record', id, accountId, from, suppress },
        newState: transition(from, enters, 'feedback'),
        entry: entryOf(report, RECORDED_EVENTS[`message.${enters}`].verb, detail),
        countedAs: enters,
        counts: trial ? 'never' : 'always',
        answer: (suppressed) => ({ kind: 'applied', id, accountId, to: enters, recipient: to, suppressed, detail }),
      };
    }
  }
}

/**
 * True where the account's reputation is told. It counts what is new evidence: a bounce that suppressed its recipient, and the
 * first complaint of a recipient in the window, whatever the report says of suppression.
 */
export function countsTowardReputation({ counts }: Pick<Recording, 'counts'>, suppressed: boolean): boolean {
  return counts === 'always' || (counts === 'if-suppressed' && suppressed);
}

/**
 * The digest of a report that is kept because it came too early: another one than its own, so that the same report is
 * applied when it comes once more.
 */
export function prematureReportDigest(digest: string): string {
  return `${digest}:early`;
}

function entryOf({ at, source }: FeedbackReport, verb: string, detail: string): Recording['entry'] {
  return { at, verb, by: `feedback:${source}`, detail, attempt: null };
}

function keep(mailId: string | null, reason: string, early: boolean): FeedbackDecision {
  return { kind: 'keep', messageId: mailId, reason, premature: early };
}

/** What was not understood, or that it was understood and names none. */
function reasonWithoutMessage(notices: readonly Notice[]): string {
  const unknown = notices.find((notice) => notice.kind === 'unknown');
  return unknown?.reason ?? 'it names no mail request of this installation';
}
