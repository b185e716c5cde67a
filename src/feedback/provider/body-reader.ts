/**
 * Reads large bodies of provider events on a separate thread (../thread-reader.ts), so that a body of 10 MB does not delay the
 * acceptance of messages.
 *
 * The reports of a body return in serialized parts. The main thread deserializes one part at a time.
 */
import { deserialize } from 'node:v8';
import type { FeedbackReport } from '../../model/feedback.ts';
import type { ProviderRequest } from '../../providers/event.ts';
import { createThreadReader, type ThreadReaderParts, type ThreadResult } from '../thread-reader.ts';
import type { BodyContext, SerializedBody } from './body.ts';

/** The maximum size of a body that the main thread reads itself. */
export const MAX_INLINE_BYTES = 524_288;
const MAX_PENDING = { jobs: 64, bytes: 32 * 1_048_576 } as const;
/** The maximum time for reading one body. A body with 20,000 bounces takes two seconds on one core. */
const READ_TIMEOUT_MS = 20_000;
const MAX_OLD_GENERATION_SIZE_MB = 256;

/** A body for the thread. `body` is a `Uint8Array` on the thread, because the prototype of a buffer is not copied. */
export interface BodyJob {
  readonly request: Omit<ProviderRequest, 'body'> & { readonly body: Uint8Array };
  readonly context: BodyContext;
}

export interface BodyReader {
  /** Reads the body of an authenticated request. Rejects when the thread cannot be started or the reader is closed. */
  read(request: ProviderRequest, context: BodyContext): Promise<ThreadResult<SerializedBody>>;
  /** Ends the thread and rejects all waiting reads. */
  close(): Promise<void>;
}

export interface BodyReaderParts
  extends Pick<ThreadReaderParts<SerializedBody>, 'clock' | 'prepareThread' | 'onError'> {
  /** The module that the thread runs. The default is body-reader-thread.ts. */
  readonly threadModule?: URL;
}

/** Creates the reader of large bodies. Its thread starts with the first large body. */
export function createBodyReader({ threadModule = THREAD_MODULE, ...parts }: BodyReaderParts): BodyReader {
  const reader = createThreadReader<BodyJob, SerializedBody>({
    ...parts,
    module: threadModule,
    name: 'postrider-events',
    operation: 'reading provider events',
    timeoutMs: READ_TIMEOUT_MS,
    maxOldGenerationSizeMb: MAX_OLD_GENERATION_SIZE_MB,
    maxPending: MAX_PENDING,
    failedValue: { kind: 'failed' },
  });
  return {
    read: (request, context) => reader.read({ request, context }, request.body.byteLength),
    close: () => reader.close(),
  };
}

/** Deserializes one part at a time. The thread of this process has serialized the parts. */
export function* deserializeParts(parts: readonly Uint8Array[]): Generator<readonly FeedbackReport[]> {
  for (const part of parts) yield deserialize(part) as readonly FeedbackReport[];
}

const THREAD_MODULE = new URL('./body-reader-thread.ts', import.meta.url);
