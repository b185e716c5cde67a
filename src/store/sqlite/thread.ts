/**
 * The thread of the embedded store. `serveThread` answers all calls that have arrived as one group.
 * `openGuardedDatabase` runs them on one connection and checks that the files are still those that were opened.
 * `createEngine` holds the operations and runs all waiting writes in one transaction with one sync, each in its own
 * savepoint: a fault of one operation rolls back that operation only; a fault of the commit fails them all.
 *
 * Guarantees: data written to files that were removed is never acknowledged.
 */

import { type BigIntStats, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { DirectoryChanges } from '../../model/account.ts';
import type { SettleResult } from '../../model/message.ts';
import { METHODS, type MethodKind, type MethodName, type StoreMethods } from '../contract.ts';
import { SYSTEM_ENVIRONMENT } from '../environment.ts';
import { StoreError } from '../error.ts';
import type { PackedSettlement } from '../rules/messages.ts';
import type { BuiltStep, IndexChange, IndexStep } from '../search/index-step.ts';
import { lowerThreadPriority } from '../threads.ts';
import { prepareAccept } from './accept.ts';
import { prepareAccounts } from './accounts.ts';
import { prepareAudit } from './audit.ts';
import { prepareDirectory } from './directory.ts';
import { prepareDomains } from './domains.ts';
import { systemErrorCode, toStoreError } from './fault.ts';
import { prepareFeedback } from './feedback.ts';
import { fileIdentity } from './files.ts';
import { prepareMessages } from './messages.ts';
import { prepareNodes } from './nodes.ts';
import { prepareOperator } from './operator.ts';
import { prepareOverview } from './overview.ts';
import { prepareClaim, prepareLeaseEnds } from './queue.ts';
import { prepareReputation } from './reputation.ts';
import { prepareRetention } from './retention.ts';
import { prepareSearch, prepareSearchIndex } from './search.ts';
import { prepareSuppressions } from './suppressions.ts';
import { prepareTraffic } from './traffic.ts';

/** Maximum number of calls in one group. It bounds the time until the first of them is answered. */
const MAX_GROUP = 64;

/** What a store thread is started with. */
export interface ThreadData {
  readonly path: string;
  /** True if this process holds the serve lock. */
  readonly locked: boolean;
  readonly cacheKib: number;
  /** True if the thread runs at low priority. */
  readonly lowPriority: boolean;
}

/**
 * Opens the database and serves calls from `port` until a call of `null`. Posts `failed` if opening fails, and `files`
 * when files were removed or replaced or are back.
 */
export function serveThread(
  port: MessagePort,
  { lowPriority, ...data }: ThreadData,
  open: (path: string, locked: boolean) => DatabaseSync,
): void {
  let guarded: GuardedDatabase;
  try {
    const onFilesFault = (files: unknown) => port.postMessage({ files });
    guarded = openGuardedDatabase({ ...data, open, monotonic: SYSTEM_ENVIRONMENT.clock.monotonic, onFilesFault });
  } catch (error) {
    port.postMessage({ failed: toStoreError(error, data.path).message });
    port.close();
    return;
  }
  if (lowPriority) lowerThreadPriority();
  const timer = setInterval(guarded.checkFiles, FILES_CHECK_MS);

  port.on('message', (first: Call | null) => {
    const calls: Call[] = [];
    let closing = first === null;
    if (first !== null) calls.push(first);
    while (!closing && calls.length < MAX_GROUP) {
      const next = receiveMessageOnPort(port) as { message: Call | null } | undefined;
      if (next === undefined) break;
      if (next.message === null) closing = true;
      else calls.push(next.message);
    }
    port.postMessage(guarded.answer(calls));
    if (!closing) return;
    clearInterval(timer);
    guarded.close();
    port.close();
  });
  port.postMessage({ opened: true });
}

/** How often the files are checked while nothing is written. */
export const FILES_CHECK_MS = 1_000;

interface GuardedOptions {
  readonly path: string;
  /** True if this process holds the serve lock. */
  readonly locked: boolean;
  readonly cacheKib: number;
  readonly open: (path: string, locked: boolean) => DatabaseSync;
  readonly monotonic: () => number;
  /** Called when files were removed or replaced, and with null when they are back. */
  readonly onFilesFault: (fault: FilesFault | null) => void;
}

/** A reply whose error is a line of text. */
export type TextReply =
  | Extract<Reply, { ok: true }>
  | { readonly number: number; readonly ok: false; readonly error: string };

export interface GuardedDatabase {
  /** Runs the calls, writes first in one transaction, and answers each. Never throws. */
  answer(calls: readonly Call[]): readonly TextReply[];
  /** Checks the files. This also happens after each commit, before its answers. */
  checkFiles(): void;
  close(): void;
}

/** Throws a StoreError if the database cannot be opened. */
export function openGuardedDatabase({
  path,
  locked,
  cacheKib,
  open,
  monotonic,
  onFilesFault,
}: GuardedOptions): GuardedDatabase {
  const database = opened();
  const engine = createEngine(database, monotonic);
  const compareFiles = watchFiles(path);
  let fault: FilesFault | null = null;

  function opened(): DatabaseSync {
    try {
      const made = open(path, locked);
      made.exec(`PRAGMA cache_size = -${cacheKib}`);
      return made;
    } catch (error) {
      throw toStoreError(error, path);
    }
  }

  function compare(): void {
    const now = compareFiles();
    if (now?.reason === fault?.reason) return;
    fault = now;
    onFilesFault(fault);
  }

  const refusal = ({ number }: Call | Reply, { reason, remedy }: FilesFault): Reply => {
    return { number, ok: false, error: new StoreError(`${reason}. ${remedy}`) };
  };

  function replies(calls: readonly Call[]): readonly Reply[] {
    const changes = new Set(calls.filter(({ name }) => requiresFiles(name)).map(({ number }) => number));
    // After a known fault, nothing is written that would be acknowledged as stored.
    const known = changes.size === 0 ? null : fault;
    const run = known === null ? calls : calls.filter(({ number }) => !changes.has(number));
    const refused = known === null ? [] : calls.filter(({ number }) => changes.has(number));
    const ran = engine.run(run);
    if (changes.size > 0) compare();
    const found = known ?? fault;
    const checked = found === null ? ran : ran.map((r) => (changes.has(r.number) ? refusal(r, found) : r));
    return known === null ? checked : [...checked, ...refused.map((call) => refusal(call, known))];
  }

  return {
    answer: (calls) =>
      replies(calls).map((reply) => (reply.ok ? reply : { ...reply, error: toStoreError(reply.error, path).message })),
    checkFiles: compare,
    close: () => database.close(),
  };
}

/** Why written data would be lost. */
export interface FilesFault {
  /** Safe to publish: contains no path. */
  readonly reason: string;
  /** For the operator: the file, and what to do. */
  readonly remedy: string;
}

/** The checked files and their names in messages. */
const WATCHED = [
  ['', 'the database file'],
  ['-wal', 'the write-ahead log of the database'],
  ['-shm', 'the shared memory file of the database'],
  ['-serve', 'the lock file of the database'],
] as const;
type WatchedEnd = (typeof WATCHED)[number][0];

/**
 * Records the identity of the open files. The returned function compares them with the files on disk in 8 to 36 µs (2
 * busy cores) and returns the first fault. It never opens a file: closing one would release the locks that SQLite holds
 * on it.
 */
export function watchFiles(path: string): () => FilesFault | null {
  const opened = WATCHED.map(([end, name]) => ({ end, name, was: fileIdentity(path + end) }));
  const links = statSync(path, { throwIfNoEntry: false })?.nlink ?? 1;
  return () => {
    for (const { end, name, was } of opened) {
      // A file that was missing at the start is not checked: only a service has the lock file.
      if (was === null) continue;
      let now: BigIntStats | undefined;
      try {
        now = statSync(path + end, { bigint: true, throwIfNoEntry: false });
      } catch (error) {
        return unreachable(path + end, name, systemErrorCode(error));
      }
      if (now === undefined) return faultOf(path, end, `${name} was removed`);
      if (now.dev !== was.dev || now.ino !== was.ino) return faultOf(path, end, `${name} was replaced`);
      // A hard link of an interrupted restore may be removed at any time.
      if (now.nlink > BigInt(end === '' ? links : 1)) {
        const remedy = `Remove the other name of ${path + end}; the service then continues.`;
        return { reason: `${name} has a second hard link`, remedy };
      }
    }
    return null;
  };
}

/** The folder has become inaccessible to this user, or its disk fails. */
function unreachable(file: string, name: string, code: string): FilesFault {
  return {
    reason: `${name} is not accessible (${code})`,
    remedy: `Check the owner, the permissions and the disk of the folder of ${file}; the service then continues.`,
  };
}

function faultOf(path: string, end: WatchedEnd, reason: string): FilesFault {
  const file = path + end;
  switch (end) {
    case '':
      return {
        reason,
        remedy: `Put the file back at ${path}; the service then continues. If it was deleted, stop the service, move ${path}* aside and run \`postrider restore FILE\` with a backup.`,
      };
    case '-wal':
      return {
        reason,
        remedy: `Stop the service with SIGTERM and start it again: it then writes the log into ${path}. Do not end it with SIGKILL, and run no command meanwhile.`,
      };
    case '-shm':
    case '-serve':
      return {
        reason,
        remedy: `Stop the service and start it again; it creates ${file} again. Run no command meanwhile.`,
      };
  }
}

/** A method of the contract as the store's thread implements it: synchronous. */
type Immediate<Method> = Method extends (...args: infer Args) => Promise<infer Answer>
  ? (...args: Args) => Answer
  : never;

/** The contract's methods, with packed settlements, and the parts of composed methods. */
export type Operations = { readonly [Name in Exclude<MethodName, 'settle'>]: Immediate<StoreMethods[Name]> } & {
  settle(batch: readonly PackedSettlement[]): readonly SettleResult[];
  /** What changed after `revision`, or null if nothing did. */
  directorySince(revision: number): DirectoryChanges | null;
  buildIndex(step: IndexStep): BuiltStep;
  changeIndex(change: IndexChange): void;
};
export type OperationName = keyof Operations;

export interface Call {
  readonly number: number;
  readonly name: OperationName;
  readonly args: readonly unknown[];
}

export type Reply =
  | { readonly number: number; readonly ok: true; readonly value: unknown }
  | { readonly number: number; readonly ok: false; readonly error: unknown };

/** Operations of this store only: the parts of composed methods. */
const INTERNAL = { directorySince: 'read', buildIndex: 'question', changeIndex: 'change' } as const;

const KINDS: Readonly<Record<OperationName, MethodKind>> = { ...METHODS, ...INTERNAL };

function isRead(name: OperationName): boolean {
  const kind = KINDS[name];
  return kind === 'read' || kind === 'question';
}

/** True for an operation whose answer promises that something is stored. It must fail if the files were replaced. */
export function requiresFiles(name: OperationName): boolean {
  return KINDS[name] === 'change';
}

function prepareOperations(database: DatabaseSync, monotonic: () => number): Operations {
  const audit = prepareAudit(database);
  const probe = database.prepare('UPDATE meta SET probed_at = probed_at + 1');
  const directory = prepareDirectory(database, (revision) => domains.domainsSince(revision));
  const domains = prepareDomains(database, directory.nextRevision, audit);
  const reputation = prepareReputation(database, directory.nextRevision);
  return {
    accept: prepareAccept(database),
    claim: prepareClaim(database),
    ...prepareLeaseEnds(database, reputation.count),
    ...prepareRetention(database),
    ...prepareAccounts(database, directory.nextRevision, audit, reputation),
    ...prepareSuppressions(database, audit),
    ...domains,
    directorySince: directory.since,
    findKeys: directory.findKeys,
    ...prepareMessages(database, audit),
    ...prepareSearch(database, monotonic),
    ...prepareSearchIndex(database),
    ...prepareNodes(database),
    ...prepareFeedback(database, reputation),
    ...prepareOperator(database, audit),
    ...prepareTraffic(database),
    ...prepareOverview(database),
    probe: (): void => {
      probe.run();
    },
  };
}

export interface Engine {
  readonly operations: Operations;
  /** Runs the calls, writes first in one transaction, and answers each. Never throws. */
  run(calls: readonly Call[]): Reply[];
}

/** `monotonic` bounds the time of searches. */
export function createEngine(database: DatabaseSync, monotonic = SYSTEM_ENVIRONMENT.clock.monotonic): Engine {
  const operations = prepareOperations(database, monotonic);

  function attempt(call: Call): Reply {
    try {
      const operation = operations[call.name] as (...args: readonly unknown[]) => unknown;
      return { number: call.number, ok: true, value: operation(...call.args) };
    } catch (error) {
      return { number: call.number, ok: false, error };
    }
  }

  function attemptAlone(call: Call): Reply {
    database.exec('SAVEPOINT operation');
    const reply = attempt(call);
    if (!reply.ok && database.isTransaction) database.exec('ROLLBACK TO operation');
    if (database.isTransaction) database.exec('RELEASE operation');
    return reply;
  }

  function commit(calls: readonly Call[]): Reply[] {
    try {
      database.exec('BEGIN IMMEDIATE');
      const replies: Reply[] = [];
      for (const call of calls) {
        const reply = attemptAlone(call);
        replies.push(reply);
        // SQLite rolls back the whole transaction on a full disk or an I/O error, including the operations before.
        if (!database.isTransaction) throw reply.ok ? new Error('the transaction was lost') : reply.error;
      }
      database.exec('COMMIT');
      return replies;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      return calls.map(({ number }) => ({ number, ok: false, error }));
    }
  }

  return {
    operations,
    run(calls) {
      const writes = calls.filter(({ name }) => !isRead(name));
      const reads = calls.filter(({ name }) => isRead(name));
      return [...(writes.length === 0 ? [] : commit(writes)), ...reads.map(attempt)];
    },
  };
}
