/**
 * Records the packed reports of a request in the store. Each part is recorded in one transaction. At most
 * `maxConcurrentParts` parts are recorded at the same time, so that the acceptance of messages never waits for the
 * events of a whole request.
 *
 * If a part cannot be recorded, each of its reports is recorded separately, so that a report that cannot be stored does
 * not affect the other reports.
 */
import type { Publish } from '../../model/events.ts';
import type { FeedbackReport, FeedbackResult } from '../../model/feedback.ts';
import { type PackedReports, unpackReports } from '../../model/packed-reports.ts';
import type { FeedbackStore } from '../../store/contract.ts';
import type { RecordResult } from '../intake.ts';
import { createReportEvents, type ReportOrigin } from '../report-event.ts';

export interface PackedIntakeParts {
  readonly store: Pick<FeedbackStore, 'recordPackedFeedback'>;
  /** Records one report. Rejects when the store fails. */
  readonly recordReport: (report: FeedbackReport) => Promise<RecordResult>;
  /** Called after the commit with the event of each recorded report. */
  readonly publish: Publish;
  /** Called when a report was stored as pending. */
  readonly onPending: () => void;
  readonly maxConcurrentParts: number;
}

/** The numbers of reports by result. */
export interface RecordCounts {
  readonly recordedCount: number;
  /** The number of reports that match no message of this installation. */
  readonly unmatchedCount: number;
  /** The errors of the reports that were not recorded. */
  readonly failures: readonly unknown[];
}

export interface PackedIntake {
  /** Records the parts of one request. `source` and `at` apply to every report of the parts. Never rejects. */
  recordParts(parts: readonly PackedReports[], origin: Pick<FeedbackReport, 'source' | 'at'>): Promise<RecordCounts>;
}

export function createPackedIntake({
  store,
  recordReport,
  publish,
  onPending,
  maxConcurrentParts,
}: PackedIntakeParts): PackedIntake {
  const waitingParts: (() => void)[] = [];
  let recordingPartCount = 0;

  async function recordPart(part: PackedReports, origin: ReportOrigin): Promise<RecordCounts> {
    if (recordingPartCount >= maxConcurrentParts) await new Promise<void>((resolve) => waitingParts.push(resolve));
    else recordingPartCount += 1;
    try {
      return countResults(await store.recordPackedFeedback(part), origin);
    } catch {
      return await recordReportsSeparately(part);
    } finally {
      const startNextPart = waitingParts.shift();
      if (startNextPart === undefined) recordingPartCount -= 1;
      else startNextPart();
    }
  }

  function countResults(results: readonly FeedbackResult[], origin: ReportOrigin): RecordCounts {
    let unmatchedCount = 0;
    for (const result of results) {
      // The store keeps a provider event that cannot be applied yet as pending, and never returns `not-yet` for it.
      if (result.kind === 'not-yet') throw new Error('the store has not recorded a provider event');
      for (const event of createReportEvents(result, origin)) publish(event);
      if (result.kind === 'pending') onPending();
      if (result.kind === 'unrelated') unmatchedCount += 1;
    }
    return { recordedCount: results.length - unmatchedCount, unmatchedCount, failures: [] };
  }

  async function recordReportsSeparately(part: PackedReports): Promise<RecordCounts> {
    const results = await Promise.allSettled(unpackReports(part).map(recordReport));
    const getCount = (expected: RecordResult) =>
      results.filter((result) => result.status === 'fulfilled' && result.value === expected).length;
    return {
      recordedCount: getCount('recorded'),
      unmatchedCount: getCount('unmatched'),
      failures: results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : [])),
    };
  }

  return {
    async recordParts(parts, { source, at }) {
      const counts = await Promise.all(parts.map((part) => recordPart(part, { source, at, summary: source })));
      return {
        recordedCount: sumCounts(counts.map(({ recordedCount }) => recordedCount)),
        unmatchedCount: sumCounts(counts.map(({ unmatchedCount }) => unmatchedCount)),
        failures: counts.flatMap(({ failures }) => failures),
      };
    },
  };
}

function sumCounts(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
