/** Creates the events of a recorded feedback report. */
import type { ServiceEvent } from '../model/events.ts';
import type { FeedbackReport, FeedbackResult } from '../model/feedback.ts';
import { getIdTimestamp } from '../model/submission.ts';

/** The members of a report that are copied into the events of the report. */
export type ReportOrigin = Pick<FeedbackReport, 'source' | 'summary' | 'at'>;

/**
 * Returns the events of a report. `result` is the result of recording the report. A pending report has no event,
 * because it is applied later.
 */
export function createReportEvents(
  result: Exclude<FeedbackResult, { readonly kind: 'not-yet' }>,
  { source: reportedBy, summary, at }: ReportOrigin,
): readonly ServiceEvent[] {
  switch (result.kind) {
    case 'applied': {
      const { id, accountId, to: state, recipient: to, sender: from, detail, failure, suppressed } = result;
      const unknownMembers = { attempts: null, attempt: null, dueAt: null };
      const acceptedAt = state === 'delivered' ? getIdTimestamp(id) : null;
      return [
        {
          type: `message.${state}`,
          ...{ at, id, accountId, to, from, acceptedAt },
          ...unknownMembers,
          reportedBy,
          detail,
          failure,
          suppresses: suppressed,
        },
      ];
    }
    case 'confirmed': {
      const { id, accountId, recipient: to, sender: from, detail } = result;
      const acceptedAt = getIdTimestamp(id);
      return [{ type: 'message.confirmed', at, id, accountId, to, from, acceptedAt, reportedBy, detail }];
    }
    case 'recorded':
      return [
        {
          type: 'message.reported',
          at,
          id: result.id,
          verb: result.verb,
          reportedBy,
          suppresses: result.suppressed,
          failure: result.failure,
        },
      ];
    case 'pending':
      return [];
    case 'repeated':
      return [{ type: 'report.repeated', at }];
    case 'unrelated':
      return [{ type: 'report.unrelated', at, source: reportedBy }];
    case 'stored':
      return [{ type: 'report.not_understood', at, feedbackId: result.feedbackId, reason: result.reason, summary }];
  }
}
