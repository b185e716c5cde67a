/** Creates the event of a recorded feedback report. */
import type { ServiceEvent } from '../model/events.ts';
import type { FeedbackReport, FeedbackResult } from '../model/feedback.ts';

/** Returns the event of a report. `result` is the result of recording the report. */
export function createReportEvent(
  result: Exclude<FeedbackResult, { readonly kind: 'not-yet' }>,
  report: FeedbackReport,
): ServiceEvent {
  const { source: reportedBy, summary, at } = report;
  switch (result.kind) {
    case 'applied': {
      const { id, accountId, to: state, recipient: to, detail, suppressed } = result;
      const unknownMembers = { acceptedAt: null, attempts: null, attempt: null, dueAt: null };
      return {
        type: `message.${state}`,
        at,
        id,
        accountId,
        to,
        ...unknownMembers,
        reportedBy,
        detail,
        suppresses: suppressed,
      };
    }
    case 'recorded':
      return {
        type: 'message.reported',
        at,
        id: result.id,
        verb: result.verb,
        reportedBy,
        suppresses: result.suppressed,
      };
    case 'repeated':
      return { type: 'report.repeated', at };
    case 'unrelated':
      return { type: 'report.unrelated', at };
    case 'stored':
      return { type: 'report.not_understood', at, feedbackId: result.feedbackId, reason: result.reason, summary };
  }
}
