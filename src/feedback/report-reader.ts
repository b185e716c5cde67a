/**
 * Reads feedback reports on a separate thread (thread-reader.ts). Reading a report of 1 MiB takes less than 100 ms on
 * one core.
 */
import type { FeedbackEvent } from '../model/feedback.ts';
import { createThreadReader, type ThreadReaderParts, type ThreadReply } from './thread-reader.ts';

/** Maximum number and maximum total bytes of reports that wait or are being read. */
export const MAX_PENDING = { jobCount: 64, bytes: 16 * 1_048_576 } as const;
/** The maximum time for reading one report. */
export const READ_TIMEOUT_MS = 5_000;
const MAX_OLD_GENERATION_SIZE_MB = 128;

/** A message from the thread to the reader. */
export type ReaderThreadReply = ThreadReply<readonly FeedbackEvent[]>;

type ReadResult =
  | { readonly kind: 'read'; readonly events: readonly FeedbackEvent[] }
  /**
   * Reading the report exceeded the time or memory limit, so the content of the report is unknown. The report must not
   * be read again.
   */
  | { readonly kind: 'too-expensive' }
  /** Too many reports are waiting. The sender must send the report again later. */
  | { readonly kind: 'busy' };

export interface ReportReader {
  read(raw: Uint8Array): Promise<ReadResult>;
  /** Ends the thread and rejects all waiting reads. */
  close(): Promise<void>;
}

export interface ReportReaderParts
  extends Pick<ThreadReaderParts<readonly FeedbackEvent[]>, 'clock' | 'prepareThread' | 'onError'> {
  /** The module that the thread runs. The default is report-reader-thread.ts. */
  readonly threadModule?: URL;
}

/** Creates the reader of reports. Its thread starts with the first report. */
export function createReportReader({ threadModule = THREAD_MODULE, ...parts }: ReportReaderParts): ReportReader {
  const reader = createThreadReader<Uint8Array, readonly FeedbackEvent[]>({
    ...parts,
    module: threadModule,
    name: 'postrider-reports',
    operation: 'reading feedback',
    timeoutMs: READ_TIMEOUT_MS,
    maxOldGenerationSizeMb: MAX_OLD_GENERATION_SIZE_MB,
    maxPending: MAX_PENDING,
    failedValue: [READ_FAILED],
  });
  return {
    async read(raw) {
      const result = await reader.read(raw, raw.byteLength);
      return result.kind === 'read' ? { kind: 'read', events: result.value } : result;
    },
    close: () => reader.close(),
  };
}

const THREAD_MODULE = new URL('./report-reader-thread.ts', import.meta.url);
const READ_FAILED: FeedbackEvent = {
  kind: 'unknown',
  reason: 'reading the report failed because of a defect in Postrider',
};
