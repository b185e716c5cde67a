/**
 * The loop of a store thread: takes every call that has arrived, runs them as one group, answers. `open` makes the
 * connection, so that a test can hand in one whose sync is slow or fails.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { MessagePort } from 'node:worker_threads';
import { receiveMessageOnPort } from 'node:worker_threads';
import { StoreError } from '../error.ts';
import { yieldThisThread } from '../search/politeness.ts';
import type { Call, Reply } from './engine.ts';
import { createEngine, needsFiles } from './engine.ts';
import { explained } from './fault.ts';
import { type FilesFault, guardFiles } from './files.ts';

/** Calls taken into one group at most: bounds the time until the first of them is answered. */
const GROUP = 64;

/** How often the files are compared with those that were opened while nothing is written. */
const COMPARE_MS = 1_000;

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
 * Opens the database and serves calls from `port` until a call of `null`. A failed opening is posted as `failed`.
 *
 * Each second, and after each commit before it is answered, the files are compared with those that were opened. What was
 * written into files that are gone is never answered as kept; a change of that state is posted as `files`.
 */
export function serveThread(
  port: MessagePort,
  data: ThreadData,
  open: (path: string, locked: boolean) => DatabaseSync,
): void {
  let database: DatabaseSync;
  try {
    database = open(data.path, data.locked);
    database.exec(`PRAGMA cache_size = -${data.cacheKib}`);
  } catch (error) {
    port.postMessage({ failed: explained(error, data.path).message });
    port.close();
    return;
  }
  if (data.polite) yieldThisThread();
  const engine = createEngine(database);
  const compare = guardFiles(data.path);
  let fault: FilesFault | null = null;
  const look = () => {
    const now = compare();
    if (now?.reason === fault?.reason) return;
    fault = now;
    port.postMessage({ files: fault });
  };
  const timer = setInterval(look, COMPARE_MS);
  const refusal = ({ number }: Call | Reply, { reason, remedy }: FilesFault): Reply => {
    return { number, ok: false, error: new StoreError(`${reason}. ${remedy}`) };
  };

  function answer(calls: readonly Call[]): readonly Reply[] {
    const promising = new Set(calls.filter(({ name }) => needsFiles(name)).map(({ number }) => number));
    // A known fault: nothing that would have to be kept is written any more.
    const known = promising.size === 0 ? null : fault;
    const run = known === null ? calls : calls.filter(({ number }) => !promising.has(number));
    const refused = known === null ? [] : calls.filter(({ number }) => promising.has(number));
    const replies = engine.run(run);
    if (promising.size > 0) look();
    const found = known ?? fault;
    const checked = found === null ? replies : replies.map((r) => (promising.has(r.number) ? refusal(r, found) : r));
    return known === null ? checked : [...checked, ...refused.map((call) => refusal(call, known))];
  }

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
    const replies = answer(calls);
    port.postMessage(
      replies.map((reply) => (reply.ok ? reply : { ...reply, error: explained(reply.error, data.path).message })),
    );
    if (!closing) return;
    clearInterval(timer);
    database.close();
    port.close();
  });
  port.postMessage({ opened: true });
}
