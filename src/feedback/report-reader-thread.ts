/**
 * The entry point of the thread that reads reports. report-reader.ts starts the thread with this file. No module
 * imports this file.
 */
import { parentPort } from 'node:worker_threads';
import { readFeedbackEvents } from './read/read-feedback-events.ts';
import type { ReaderThreadReply } from './report-reader.ts';

if (parentPort !== null) {
  const port = parentPort;
  port.on('message', (raw: Uint8Array) => {
    try {
      port.postMessage({ kind: 'read', value: readFeedbackEvents(raw) } satisfies ReaderThreadReply);
    } catch (error) {
      port.postMessage({
        kind: 'failed',
        fault: error instanceof Error ? error.message : String(error),
      } satisfies ReaderThreadReply);
    }
  });
  port.postMessage({ kind: 'ready' } satisfies ReaderThreadReply);
}
