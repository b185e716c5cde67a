/**
 * Applies pending reports: provider events that arrived before the outcome of their message was recorded. Every node
 * with the role `feedback` applies the reports in a loop. The store applies no report twice.
 *
 * Guarantees: a report that another node has stored is applied at most `MAX_INTERVAL_MS` after it is due, unless the
 * store fails. An error of the store is reported, and the loop continues.
 */
import type { Clock } from '../clock.ts';
import type { Publish } from '../model/events.ts';
import type { FeedbackStore } from '../store/contract.ts';
import { createReportEvents } from './report-event.ts';

const MAX_REPORTS_PER_RUN = 256;
const MIN_INTERVAL_MS = 100;
const MAX_INTERVAL_MS = 5_000;

export interface PendingReportsParts {
  readonly clock: Clock;
  readonly store: Pick<FeedbackStore, 'applyPendingReports'>;
  readonly publish: Publish;
  readonly onError: (operation: string, error: unknown) => void;
}

export interface PendingReports {
  /** Schedules a run. Called when this node has stored a pending report. */
  wake(): void;
  /** Stops the loop and waits for the current run. */
  close(): Promise<void>;
}

export function startPendingReports({ clock, store, publish, onError }: PendingReportsParts): PendingReports {
  let cancel: () => void = () => undefined;
  let currentRun: Promise<void> = Promise.resolve();
  let isRunning = false;
  let isWakeRequested = false;
  let isClosed = false;

  function scheduleRun(delayMs: number): void {
    cancel();
    if (!isClosed) cancel = clock.after(delayMs, startRun);
  }

  function startRun(): void {
    isRunning = true;
    isWakeRequested = false;
    currentRun = run().then((delayMs) => {
      isRunning = false;
      scheduleRun(isWakeRequested ? MIN_INTERVAL_MS : delayMs);
    });
  }

  /** Applies the reports that are due. Resolves to the time until the next run, in milliseconds. */
  async function run(): Promise<number> {
    const now = clock.now();
    try {
      const { reports, nextDueAt } = await store.applyPendingReports(now, MAX_REPORTS_PER_RUN);
      for (const { report, result } of reports) {
        if (result.kind === 'not-yet') continue;
        for (const event of createReportEvents(result, report)) publish(event);
      }
      return nextDueAt === null
        ? MAX_INTERVAL_MS
        : Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, nextDueAt - now));
    } catch (error) {
      onError('pending reports', error);
      return MAX_INTERVAL_MS;
    }
  }

  scheduleRun(MIN_INTERVAL_MS);
  return {
    wake() {
      isWakeRequested = true;
      if (!isRunning) scheduleRun(MIN_INTERVAL_MS);
    },
    async close() {
      isClosed = true;
      cancel();
      await currentRun;
    },
  };
}
