/** Builds the event of a recorded feedback report. */
import type { ServiceEvent } from '../model/events.ts';
import type { FeedbackReport, FeedbackResult } from '../model/feedback.ts';

/** Returns the event for the store's answer to a report. */
export function reportEvent(
  answer: Exclude<FeedbackResult, { readonly kind: 'not-yet' }>,
  report: FeedbackReport,
): ServiceEvent {
  const { source: reportedBy, summary, at } = report;
  switch (answer.kind) {
    case 'applied': {
      const { id, accountId, to: state, recipient: to, detail, suppressed } = answer;
      const unknown = { acceptedAt: null, attempts: null, attempt: null, dueAt: null };
      return {
        type: `message.${state}`,
        at,
        id,
        accountId,
        to,
        ...unknown,
        reportedBy,
        detail,
        suppresses: suppressed,
      };
    }
    case 'recorded':
      return {
        type: 'message.reported',
        at,
        id: answer.id,
        verb: answer.verb,
        reportedBy,
        suppresses: answer.suppressed,
      };
    case 'repeated':
      return { type: 'report.repeated', at };
    case 'unrelated':
      return { type: 'report.unrelated', at };
    case 'stored':
      return { type: 'report.not_understood', at, feedbackId: answer.feedbackId, reason: answer.reason, summary };
  }
}
