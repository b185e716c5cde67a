/** A reports' thread that never finishes a report with `spin`, exhausts its memory on one with `exhaust`, and reads all others. */
import { parentPort } from 'node:worker_threads';
import { readNotices } from '../../src/feedback/read/read-notices.ts';

parentPort?.on('message', (raw: Uint8Array) => {
  const text = Buffer.from(raw).toString('latin1');
  if (text.includes('spin')) for (;;);
  const allocated: string[][] = [];
  while (text.includes('exhaust'))
    allocated.push(Array.from({ length: 100_000 }, (_, n) => `${allocated.length} ${n}`));
  parentPort?.postMessage({ kind: 'read', notices: readNotices(raw) });
});
parentPort?.postMessage({ kind: 'ready' });
