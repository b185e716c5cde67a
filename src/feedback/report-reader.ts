/** Reading a report of 1 MiB takes less than 100 ms on one core. */
import type { FeedbackEvent } from '../model/feedback.ts';
import { createThreadReader, type ThreadReaderParts, type ThreadResult } from './thread-reader.ts';

export const MAX_PENDING = { jobCount: 64, bytes: 16 * 1_048_576 } as const;
export const READ_TIMEOUT_MS = 5_000;
const MAX_OLD_GENERATION_SIZE_MB = 128;

export interface ReportReader {
  read(raw: Uint8Array): Promise<ThreadResult<readonly FeedbackEvent[]>>;
  close(): Promise<void>;
}

export interface ReportReaderParts
  extends Pick<ThreadReaderParts<readonly FeedbackEvent[]>, 'clock' | 'prepareThread' | 'onError'> {
  readonly threadModule?: URL;
}

export function createReportReader({ threadModule = THREAD_MODULE, ...parts }: ReportReaderParts): ReportReader {
  const reader = createThreadReader<Uint8Array, readonly FeedbackEvent[]>({
    ...parts,
    module: threadModule,
    name: 'postrider-reports',
    operation: 'reading feedback',
    timeoutMs: READ_TIMEOUT_MS,
    maxOldGenerationSizeMb: MAX_OLD_GENERATION_SIZE_MB,
    maxPending: MAX_PENDING,
    failedValue: [{ kind: 'unknown', reason: 'reading the report failed because of a defect in Postrider' }],
  });
  return { read: (raw) => reader.read(raw, raw.byteLength), close: reader.close };
}

const THREAD_MODULE = new URL('./report-reader-thread.ts', import.meta.url);
