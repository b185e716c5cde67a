/** Never finishes a report that contains `spin`, and exhausts its memory on one that contains `exhaust`. */
import { parentPort } from 'node:worker_threads';
import { readFeedbackEvents } from '../../src/feedback/read/read-feedback-events.ts';

parentPort?.on('message', (raw: Uint8Array) => {
  const text = Buffer.from(raw).toString('latin1');
  if (text.includes('spin')) for (;;);
  const allocatedTexts: string[][] = [];
  while (text.includes('exhaust'))
    allocatedTexts.push(Array.from({ length: 100_000 }, (_, index) => `${allocatedTexts.length} ${index}`));
  parentPort?.postMessage({ kind: 'read', value: readFeedbackEvents(raw) });
});
parentPort?.postMessage({ kind: 'ready' });
