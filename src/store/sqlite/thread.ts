/**
 * The loop of a store thread: takes every call that has arrived, runs them as one group, answers. `open` makes the
 * connection, so that a test can hand in one whose sync is slow or fails.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { MessagePort } from 'node:worker_threads';
import { receiveMessageOnPort } from 'node:worker_threads';
import { yieldThisThread } from '../search/politeness.ts';
import { MACHINE } from '../surroundings.ts';
import { COMPARE_MS, type Desk, openDesk } from './desk.ts';
import type { Call } from './engine.ts';
import { explained } from './fault.ts';

/** Calls taken into one group at most: bounds the time until the first of them is answered. */
const GROUP = 64;

/** What a store thread is started with. */
export interface ThreadData {
  readonly path: string;
  /** True where this process holds the serve lock. */
  readonly locked: boolean;
  readonly cacheKib: number;
  /** True where the thread takes only what others leave of the processor. */
  readonly polite: boolean;
}

/**
 * Opens the database and serves calls from `port` until a call of `null`. A failed opening is posted as `failed`, and files that
 * were removed or replaced, or are back, as `files`.
 */
export function serveThread(
  port: MessagePort,
  { polite, ...data }: ThreadData,
  open: (path: string, locked: boolean) => DatabaseSync,
): void {
  let desk: Desk;
  try {
    const onFilesFault = (files: unknown) => port.postMessage({ files });
    desk = openDesk({ ...data, open, monotonic: MACHINE.clock.monotonic, onFilesFault });
  } catch (error) {
    port.postMessage({ failed: explained(error, data.path).message });
    port.close();
    return;
  }
  if (polite) yieldThisThread();
  const timer = setInterval(desk.compare, COMPARE_MS);

  port.on('message', (first: Call | null) => {
    const calls: Call[] = [];
    let closing = first === null;
    if (first !== null) calls.push(first);
    while (!closing && calls.length < GROUP) {
      const next = receiveMessageOnPort(port) as { message: Call | null } | undefined;
      if (next === undefined) break;
      if (next.message === null) closing = true;
      else calls.push(next.message);
    }
    port.postMessage(desk.answer(calls));
    if (!closing) return;
    clearInterval(timer);
    desk.close();
    port.close();
  });
  port.postMessage({ opened: true });
}
