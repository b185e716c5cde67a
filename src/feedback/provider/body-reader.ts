/** For larger bodies smaller ones must not wait, and for unauthenticated ones nobody must wait. */
import type { ProviderRequest } from '../../providers/event-reader.ts';
import { createThreadReader, type ThreadReaderParts, type ThreadResult } from '../thread-reader.ts';
import type { BodyContext, PackedBody } from './body.ts';

/** The main thread reads about 50 events itself. */
export const MAX_INLINE_BYTES = 16_384;
/** A batch of 1,000 events usually has 300 KB to 500 KB. */
const MAX_BATCH_BYTES = 524_288;
const MAX_PENDING_BYTES = 32 * 1_048_576;
const MAX_PENDING_JOBS = { batches: 512, large: 64, unauthenticated: 16 } as const;
/** Reading a body with 20,000 bounces takes two seconds on one core. */
const READ_TIMEOUT_MS = 20_000;
const MAX_OLD_GENERATION_SIZE_MB = 256;

export interface BodyJob {
  /** `body` is a `Uint8Array` on the thread, because the prototype of a buffer is not copied. */
  readonly request: Omit<ProviderRequest, 'body'> & { readonly body: Uint8Array };
  readonly context: BodyContext;
  readonly secrets: readonly string[] | null;
}

export interface BodyReader {
  read(
    request: ProviderRequest,
    context: BodyContext,
    secrets: readonly string[] | null,
  ): Promise<ThreadResult<PackedBody>>;
  close(): Promise<void>;
}

export interface BodyReaderParts extends Pick<ThreadReaderParts<PackedBody>, 'clock' | 'prepareThread' | 'onError'> {
  readonly threadModule?: URL;
}

export function createBodyReader({ threadModule = THREAD_MODULE, ...parts }: BodyReaderParts): BodyReader {
  const createReader = (kind: keyof typeof MAX_PENDING_JOBS) =>
    createThreadReader<BodyJob, PackedBody>({
      ...parts,
      module: threadModule,
      name: `postrider-events-${kind}`,
      operation: 'reading provider events',
      timeoutMs: READ_TIMEOUT_MS,
      maxOldGenerationSizeMb: MAX_OLD_GENERATION_SIZE_MB,
      maxPending: { jobCount: MAX_PENDING_JOBS[kind], bytes: MAX_PENDING_BYTES },
      failedValue: { kind: 'failed' },
    });
  const batchReader = createReader('batches');
  const largeBodyReader = createReader('large');
  const unauthenticatedReader = createReader('unauthenticated');
  return {
    read(request, context, secrets) {
      const bytes = request.body.byteLength;
      const reader = secrets !== null ? unauthenticatedReader : bytes > MAX_BATCH_BYTES ? largeBodyReader : batchReader;
      return reader.read({ request, context, secrets }, bytes);
    },
    async close() {
      await Promise.all([batchReader.close(), largeBodyReader.close(), unauthenticatedReader.close()]);
    },
  };
}

const THREAD_MODULE = new URL('./body-reader-thread.ts', import.meta.url);
