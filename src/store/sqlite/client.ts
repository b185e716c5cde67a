/**
 * One store thread seen from outside: calls by name, answered by promises. When the thread dies, every call waiting
 * and every later one is rejected: the caller answers 500 and nothing is acknowledged falsely.
 */
import { type ResourceLimits, Worker } from 'node:worker_threads';
import { StoreError } from '../error.ts';
import { setThreadFlags } from '../thread-flags.ts';
import type { TextReply } from './desk.ts';
import type { Call, OperationName, Operations } from './engine.ts';
import type { FilesFault } from './files.ts';
import type { ThreadData } from './thread.ts';

type Message =
  | { readonly opened: true }
  | { readonly failed: string }
  | { readonly files: FilesFault | null }
  | readonly TextReply[];

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

export interface StoreThread {
  call<Name extends OperationName>(
    name: Name,
    ...args: Parameters<Operations[Name]>
  ): Promise<ReturnType<Operations[Name]>>;
  /** Resolves once the thread has ended although nobody closed it. */
  readonly failed: Promise<StoreError>;
  /** What the thread last found wrong with the files of the database, or null. */
  filesFault(): FilesFault | null;
  /** Ends the thread after the calls already made. */
  close(): Promise<void>;
}

/**
 * Starts a thread running `module` over the database file; rejects with a StoreError where it cannot be opened.
 * `onFilesFault` hears when files of the database are removed or replaced, and null when they are back.
 */
export async function startThread(
  module: URL,
  data: ThreadData,
  resourceLimits: ResourceLimits = {},
  onFilesFault: (fault: FilesFault | null) => void = () => undefined,
): Promise<StoreThread> {
  setThreadFlags();
  const worker = new Worker(module, { workerData: data, name: 'postrider-store', resourceLimits });
  const waiting = new Map<number, Waiting>();
  let number = 0;
  let ended: StoreError | null = null;
  let opened: { resolve: () => void; reject: (error: unknown) => void } | null = null;

  const fail = (error: StoreError) => {
    ended ??= error;
    opened?.reject(error);
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  let closing = false;
  let filesFault: FilesFault | null = null;
  const failed = Promise.withResolvers<StoreError>();
  const exited = new Promise<void>((resolve) => {
    worker.once('exit', () => {
      fail(new StoreError(closing ? 'the store is closed.' : "the store's thread has ended."));
      if (!closing && ended !== null) failed.resolve(ended);
      resolve();
    });
  });
  worker.on('error', (error) =>
    fail(new StoreError(`the store's thread failed: ${error instanceof Error ? error.message : String(error)}`)),
  );
  worker.on('message', (message: Message) => {
    if ('opened' in message) return opened?.resolve();
    if ('files' in message) {
      filesFault = message.files;
      onFilesFault(filesFault);
      return;
    }
    if ('failed' in message) return fail(new StoreError(message.failed));
    for (const reply of message) {
      const held = waiting.get(reply.number);
      if (held === undefined) continue;
      waiting.delete(reply.number);
      if (reply.ok) held.resolve(reply.value as never);
      else held.reject(new StoreError(reply.error));
    }
  });
  await new Promise<void>((resolve, reject) => {
    opened = { resolve, reject };
  });

  return {
    call(name, ...args) {
      if (ended !== null) return Promise.reject(ended);
      number += 1;
      const call: Call = { number, name, args };
      return new Promise((resolve, reject) => {
        waiting.set(number, { resolve, reject });
        worker.postMessage(call);
      });
    },
    failed: failed.promise,
    filesFault: () => filesFault,
    async close() {
      closing = true;
      if (ended === null) worker.postMessage(null);
      await exited;
    },
  };
}
