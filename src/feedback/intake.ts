/**
 * Records feedback reports from every source in the store. A report can arrive before the outcome of its message is
 * recorded. The intake retries such a report for up to `MAX_WAIT_MS`, then resolves to `not-yet`. The intake rejects
 * when the store fails. After `not-yet` and after a rejection, the report is not stored, and the sender must send it
 * again.
 */
import type { Clock } from '../clock.ts';
import type { Publish } from '../model/events.ts';
import type { FeedbackReport, FeedbackResult } from '../model/feedback.ts';
import { createReportEvents } from './report-event.ts';

/**
 * The maximum time for which the intake waits for the outcome of the message, and the interval between two attempts to
 * record the report.
 */
const MAX_WAIT_MS = 5_000;
const RETRY_INTERVAL_MS = 250;

/**
 * `recorded`: the report was recorded by this call or an earlier call, or is pending until its message is settled.
 * `unmatched`: the report matches no message of this installation, and at most its digest was recorded. `not-yet`: the
 * message is not settled, and nothing was recorded.
 */
export type RecordResult = 'recorded' | 'unmatched' | 'not-yet';

export interface FeedbackIntakeParts {
  readonly clock: Clock;
  readonly record: (report: FeedbackReport) => Promise<FeedbackResult>;
  /** Called after the commit with the event of each recorded report. */
  readonly publish: Publish;
  /** Called when a report was stored as pending. */
  readonly onPending: () => void;
}

export interface FeedbackIntake {
  /** Records a report. Rejects if the store fails. */
  recordReport(report: FeedbackReport): Promise<RecordResult>;
  /** Ends all waits. */
  close(): void;
}

export function createFeedbackIntake({ clock, record, publish, onPending }: FeedbackIntakeParts): FeedbackIntake {
  const pendingRetries = new Set<() => void>();
  let isClosed = false;

  function waitForRetry(): Promise<void> {
    return new Promise((resolve) => {
      const finishWait = () => {
        cancel();
        pendingRetries.delete(finishWait);
        resolve();
      };
      const cancel = clock.after(RETRY_INTERVAL_MS, finishWait);
      pendingRetries.add(finishWait);
    });
  }

  return {
    async recordReport(report) {
      const deadline = clock.now() + MAX_WAIT_MS;
      for (;;) {
        const result = await record(report);
        if (result.kind !== 'not-yet') {
          if (!isKeyOnly(result, report)) for (const event of createReportEvents(result, report)) publish(event);
          if (result.kind === 'pending') onPending();
          return result.kind === 'unrelated' ? 'unmatched' : 'recorded';
        }
        if (isClosed || clock.now() >= deadline) return 'not-yet';
        await waitForRetry();
      }
    },
    close() {
      isClosed = true;
      for (const end of pendingRetries) end();
    },
  };
}

/**
 * Returns true if the report contained no event, and only the key of its request was recorded. The intake publishes no
 * event for such a report, because the receiver counts the request.
 */
function isKeyOnly({ kind }: FeedbackResult, { isProviderEvent, events }: FeedbackReport): boolean {
  return kind === 'unrelated' && isProviderEvent === true && events.length === 0;
}
