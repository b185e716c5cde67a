/** A call that rejects or resolves to `not-yet` has not stored the report: its sender must send it again. */
import type { Clock } from '../clock.ts';
import type { Publish, ServiceEvent } from '../model/events.ts';
import {
  type FeedbackReport,
  type FeedbackResult,
  type FeedbackSource,
  type PackedReports,
  unpackReports,
} from '../model/feedback.ts';
import { getIdTimestamp } from '../model/submission.ts';
import type { FeedbackStore } from '../store/contract.ts';

const MAX_WAIT_MS = 5_000;
const RETRY_INTERVAL_MS = 250;

/** `unmatched`: of no message here; at most its digest is stored. `not-yet`: nothing is recorded. */
export type RecordResult = 'recorded' | 'unmatched' | 'not-yet';

export interface RecordCounts {
  readonly recordedCount: number;
  readonly unmatchedCount: number;
  readonly failures: readonly unknown[];
}

export interface FeedbackIntakeParts {
  readonly clock: Clock;
  readonly store: Pick<FeedbackStore, 'recordPackedFeedback'>;
  readonly record: (report: FeedbackReport) => Promise<FeedbackResult>;
  readonly publish: Publish;
  readonly onPending: () => void;
  /** So that messages never wait for a whole request. */
  readonly maxConcurrentParts: number;
  readonly listOtherRoutes: (source: FeedbackSource) => readonly string[] | undefined;
  readonly keepHistoryMs: number;
}

export interface FeedbackIntake {
  recordReport(report: FeedbackReport): Promise<RecordResult>;
  /** The reports of a failed part are recorded separately, so that one bad report affects no other. */
  recordParts(parts: readonly PackedReports[], origin: Pick<FeedbackReport, 'source' | 'at'>): Promise<RecordCounts>;
  close(): void;
}

type ReportOrigin = Pick<FeedbackReport, 'source' | 'summary' | 'at'>;

export function createFeedbackIntake(parts: FeedbackIntakeParts): FeedbackIntake {
  const { clock, store, record, publish, onPending, maxConcurrentParts, listOtherRoutes, keepHistoryMs } = parts;
  const pendingRetries = new Set<() => void>();
  let isClosed = false;
  const waitingParts: (() => void)[] = [];
  let recordingPartCount = 0;

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

  function publishResult(result: Exclude<FeedbackResult, { kind: 'not-yet' }>, origin: ReportOrigin): void {
    const event = createReportEvent(result, origin);
    if (event === null) onPending();
    else publish(event);
  }

  function addRoutes<T extends FeedbackReport | PackedReports>(reports: T, source: FeedbackSource): T {
    const otherRoutes = listOtherRoutes(source);
    return otherRoutes === undefined ? reports : { ...reports, otherRoutes };
  }

  async function recordReport(received: FeedbackReport): Promise<RecordResult> {
    const { messageRef, at, source } = received;
    const mayBePurged =
      messageRef !== null && 'id' in messageRef && getIdTimestamp(messageRef.id) + keepHistoryMs <= at;
    const report = addRoutes(mayBePurged ? { ...received, mayBePurged } : received, source);
    const deadline = clock.now() + MAX_WAIT_MS;
    for (;;) {
      const result = await record(report);
      if (result.kind !== 'not-yet') {
        const isUnmatched = result.kind === 'unrelated';
        // The receiver counts a request without events, of which only the key was recorded.
        const isKeyOnly = isUnmatched && report.isProviderEvent === true && report.events.length === 0;
        if (!isKeyOnly) publishResult(result, report);
        return isUnmatched ? 'unmatched' : 'recorded';
      }
      if (isClosed || clock.now() >= deadline) return 'not-yet';
      await waitForRetry();
    }
  }

  async function recordPart(part: PackedReports, origin: ReportOrigin): Promise<RecordCounts> {
    if (recordingPartCount >= maxConcurrentParts) await new Promise<void>((resolve) => waitingParts.push(resolve));
    else recordingPartCount += 1;
    try {
      const results = await store.recordPackedFeedback(addRoutes(part, origin.source));
      for (const result of results) {
        // The store keeps a provider event that cannot be applied yet as pending.
        if (result.kind === 'not-yet') throw new Error('the store has not recorded a provider event');
        publishResult(result, origin);
      }
      const unmatchedCount = results.filter(({ kind }) => kind === 'unrelated').length;
      return { recordedCount: results.length - unmatchedCount, unmatchedCount, failures: [] };
    } catch {
      const results = await Promise.allSettled(unpackReports(part).map(recordReport));
      const getCount = (expected: RecordResult) =>
        results.filter((result) => result.status === 'fulfilled' && result.value === expected).length;
      return {
        recordedCount: getCount('recorded'),
        unmatchedCount: getCount('unmatched'),
        failures: results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : [])),
      };
    } finally {
      const startNextPart = waitingParts.shift();
      if (startNextPart === undefined) recordingPartCount -= 1;
      else startNextPart();
    }
  }

  return {
    recordReport,
    async recordParts(packedParts, { source, at }) {
      const counts = await Promise.all(packedParts.map((part) => recordPart(part, { source, at, summary: source })));
      return {
        recordedCount: counts.reduce((sum, { recordedCount }) => sum + recordedCount, 0),
        unmatchedCount: counts.reduce((sum, { unmatchedCount }) => sum + unmatchedCount, 0),
        failures: counts.flatMap(({ failures }) => failures),
      };
    },
    close() {
      isClosed = true;
      for (const end of pendingRetries) end();
    },
  };
}

function createReportEvent(
  result: Exclude<FeedbackResult, { readonly kind: 'not-yet' }>,
  { source: reportedBy, summary, at }: ReportOrigin,
): ServiceEvent | null {
  switch (result.kind) {
    case 'applied': {
      const { id, accountId, to: state, recipient: to, sender: from, detail, failure, route, suppressed } = result;
      return {
        type: `message.${state}`,
        ...{ at, id, accountId, to, from, acceptedAt: state === 'delivered' ? getIdTimestamp(id) : null },
        ...{ attempts: null, attempt: null, dueAt: null, ...(route === null ? {} : { route }) },
        ...{ reportedBy, detail, failure, suppresses: suppressed },
      };
    }
    case 'confirmed': {
      const { id, accountId, recipient: to, sender: from, detail } = result;
      const acceptedAt = getIdTimestamp(id);
      return { type: 'message.confirmed', at, id, accountId, to, from, acceptedAt, reportedBy, detail };
    }
    case 'recorded': {
      const { id, verb, suppressed: suppresses, failure } = result;
      return { type: 'message.reported', at, id, verb, reportedBy, suppresses, failure };
    }
    case 'pending':
      return null;
    case 'repeated':
      return { type: 'report.repeated', at };
    case 'unrelated':
      return { type: 'report.unrelated', at, source: reportedBy };
    case 'stored':
      return { type: 'report.not_understood', at, feedbackId: result.feedbackId, reason: result.reason, summary };
  }
}

const MAX_REPORTS_PER_RUN = 256;
const MIN_INTERVAL_MS = 100;
/** For a report that another node has stored. */
const MAX_INTERVAL_MS = 5_000;

export interface PendingReportsParts {
  readonly clock: Clock;
  readonly store: Pick<FeedbackStore, 'applyPendingReports'>;
  readonly publish: Publish;
  readonly onError: (operation: string, error: unknown) => void;
}

export interface PendingReports {
  wake(): void;
  close(): Promise<void>;
}

/** Provider events that arrived before the outcome. On every node; the store applies no report twice. */
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

  async function run(): Promise<number> {
    const now = clock.now();
    try {
      const { reports, nextDueAt } = await store.applyPendingReports(now, MAX_REPORTS_PER_RUN);
      for (const { report, result } of reports) {
        const event = result.kind === 'not-yet' ? null : createReportEvent(result, report);
        if (event !== null) publish(event);
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
