/**
 * The one way into the store for what comes back, whoever brings it. A notice can be quicker than the settlement of the
 * message that it is about, so what cannot be applied yet is tried again for a few seconds before its sender is asked to
 * come again. Rejects where the store fails: nothing of the report is stored then, and its sender must keep it.
 */
import type { Clock } from '../clock.ts';
import type { Publish } from '../model/events.ts';
import type { FeedbackReport, FeedbackResult } from '../model/feedback.ts';
import { reportEvent } from './report-event.ts';

/** How long a report waits here for the settlement, and how often it is tried. */
const WAIT_MS = 5_000;
const TRY_EVERY_MS = 250;

export type RecordResult = 'recorded' | 'not-yet';

export interface FeedbackIntakeParts {
  readonly clock: Clock;
  readonly record: (report: FeedbackReport) => Promise<FeedbackResult>;
  /** Gets the event of each report that is recorded, after the commit. */
  readonly publish: Publish;
}

export interface FeedbackIntake {
  recordReport(report: FeedbackReport): Promise<RecordResult>;
  /** Nothing waits any more. */
  close(): void;
}

export function createFeedbackIntake({ clock, record, publish }: FeedbackIntakeParts): FeedbackIntake {
  const waiting = new Set<() => void>();
  let closed = false;

  function pause(): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        waiting.delete(end);
        resolve();
      };
      const cancel = clock.after(TRY_EVERY_MS, end);
      waiting.add(end);
    });
  }

  return {
    async recordReport(report) {
      const until = clock.now() + WAIT_MS;
      for (;;) {
        const answer = await record(report);
        if (answer.kind !== 'not-yet') {
          publish(reportEvent(answer, report));
          return 'recorded';
        }
        if (closed || clock.now() >= until) return 'not-yet';
        await pause();
      }
    },
    close() {
      closed = true;
      for (const end of waiting) end();
    },
  };
}
