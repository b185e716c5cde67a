/**
 * A thread of the embedded store. It answers all waiting calls as one group, whose writes share one transaction and one
 * sync. Each write has its own savepoint: if a write fails, only it is rolled back; if the commit fails, all writes of
 * the group fail. A write to files that were removed or replaced is never acknowledged.
 */

import { type BigIntStats, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { DirectoryChanges } from '../../model/account.ts';
import type { PackedReports } from '../../model/feedback.ts';
import type { SettleResult } from '../../model/message.ts';
import { bindNouns } from '../bind.ts';
import { getMethodKind, isRead, type MethodKind, type MethodName, type StoreMethods } from '../contract.ts';
import { readDirectorySince } from '../directory.ts';
import { SYSTEM_ENVIRONMENT } from '../environment.ts';
import { StoreError } from '../error.ts';
import type { NounMethod } from '../nouns.ts';
import type { PackedSettlement } from '../rules/messages.ts';
import {
  type BuiltStep,
  type IndexChange,
  type IndexStep,
  planIndexStep,
  writeIndexChange,
} from '../search/indexer.ts';
import { searchMessages } from '../search/source.ts';
import { prepareAccept } from './accept.ts';
import { prepareClaim } from './claim.ts';
import { createSqliteTransaction } from './driver.ts';
import { getSystemErrorCode, toStoreError } from './fault.ts';
import { prepareFeedback } from './feedback.ts';
import { readFileIdentity } from './files.ts';
import { prepareLeaseEnds } from './lease-ends.ts';
import { createMessageTransaction } from './message-writes.ts';
import { type Outbox, prepareOutbox } from './outbox.ts';

/** Limits the time until the first call of a group is answered. */
const MAX_GROUP_CALLS = 64;

export interface StoreThreadOptions {
  readonly path: string;
  readonly holdsServeLock: boolean;
  readonly cacheKib: number;
}

/**
 * Answers calls from `port` until it receives `null`. Posts `failed` or `opened`, and `files` with each change of a
 * fault.
 */
export function serveThread(
  port: MessagePort,
  databaseOptions: StoreThreadOptions,
  open: (path: string, holdsServeLock: boolean) => DatabaseSync,
): void {
  let guardedDatabase: GuardedDatabase;
  try {
    const onFilesFault = (files: unknown) => port.postMessage({ files });
    guardedDatabase = openGuardedDatabase({
      ...databaseOptions,
      open,
      monotonic: SYSTEM_ENVIRONMENT.clock.monotonic,
      onFilesFault,
    });
  } catch (error) {
    port.postMessage({ failed: toStoreError(error, databaseOptions.path).message });
    port.close();
    return;
  }
  const timer = setInterval(guardedDatabase.maintain, FILES_CHECK_INTERVAL_MS);

  port.on('message', async (first: Call | null) => {
    const calls: Call[] = [];
    let isClosing = first === null;
    if (first !== null) calls.push(first);
    while (!isClosing && calls.length < MAX_GROUP_CALLS) {
      const nextCall = receiveMessageOnPort(port) as { message: Call | null } | undefined;
      if (nextCall === undefined) break;
      if (nextCall.message === null) isClosing = true;
      else calls.push(nextCall.message);
    }
    port.postMessage(await guardedDatabase.answer(calls));
    if (!isClosing) return;
    clearInterval(timer);
    guardedDatabase.close();
    port.close();
  });
  port.postMessage({ opened: true });
}

/** The files are also checked after each group of calls that contains a change. */
export const FILES_CHECK_INTERVAL_MS = 1_000;

interface GuardedOptions {
  readonly path: string;
  readonly holdsServeLock: boolean;
  readonly cacheKib: number;
  readonly open: (path: string, holdsServeLock: boolean) => DatabaseSync;
  readonly monotonic: () => number;
  readonly onFilesFault: (fault: FilesFault | null) => void;
}

export type TextReply =
  | Extract<Reply, { ok: true }>
  | { readonly number: number; readonly ok: false; readonly error: string };

export interface GuardedDatabase {
  answer(calls: readonly Call[]): Promise<readonly TextReply[]>;
  /** Checks the files, as `answer` does before it returns the replies to a change, and truncates the log after a purge. */
  maintain(): void;
  close(): void;
}

export function openGuardedDatabase({
  path,
  holdsServeLock,
  cacheKib,
  open,
  monotonic,
  onFilesFault,
}: GuardedOptions): GuardedDatabase {
  const database = openConnection();
  const engine = createEngine(database, monotonic);
  const findFault = watchFiles(path);
  let fault: FilesFault | null = null;
  let hasPurged = false;
  let truncatedAt = Number.NEGATIVE_INFINITY;

  function openConnection(): DatabaseSync {
    try {
      const connection = open(path, holdsServeLock);
      connection.exec(`PRAGMA cache_size = -${cacheKib}`);
      return connection;
    } catch (error) {
      throw toStoreError(error, path);
    }
  }

  function checkFiles(): void {
    const currentFault = findFault();
    if (currentFault?.reason === fault?.reason) return;
    fault = currentFault;
    onFilesFault(fault);
  }

  const refuseCall = ({ number }: Call | Reply, { reason, remedy }: FilesFault): Reply => {
    return { number, ok: false, error: new StoreError(`${reason}. ${remedy}`) };
  };

  async function answerCalls(calls: readonly Call[]): Promise<readonly Reply[]> {
    const changeNumbers = new Set(calls.filter(({ name }) => requiresFiles(name)).map(({ number }) => number));
    // If a fault is already known, these calls fail and write nothing.
    const knownFault = changeNumbers.size === 0 ? null : fault;
    const allowedCalls = knownFault === null ? calls : calls.filter(({ number }) => !changeNumbers.has(number));
    const refusedCalls = knownFault === null ? [] : calls.filter(({ number }) => changeNumbers.has(number));
    const results = await engine.run(allowedCalls);
    hasPurged ||= allowedCalls.some(({ name }) => PURGES.has(name));
    if (changeNumbers.size > 0) checkFiles();
    const laterFault = knownFault ?? fault;
    const checkedResults =
      laterFault === null
        ? results
        : results.map((result) => (changeNumbers.has(result.number) ? refuseCall(result, laterFault) : result));
    return knownFault === null
      ? checkedResults
      : [...checkedResults, ...refusedCalls.map((call) => refuseCall(call, knownFault))];
  }

  return {
    answer: async (calls) =>
      (await answerCalls(calls)).map((reply) =>
        reply.ok ? reply : { ...reply, error: toStoreError(reply.error, path).message },
      ),
    maintain() {
      checkFiles();
      const now = monotonic();
      if (!hasPurged || fault !== null || database.isTransaction || now - truncatedAt < LOG_TRUNCATION_INTERVAL_MS)
        return;
      if (!truncateLog(database)) return;
      hasPurged = false;
      truncatedAt = now;
    },
    close: () => database.close(),
  };
}

/** The log keeps the text that these delete, until it is truncated. */
const PURGES: ReadonlySet<OperationName> = new Set(['purgeBodiesAndKeys', 'purgeMessages', 'purgeAudit']);
const LOG_TRUNCATION_INTERVAL_MS = 30_000;

/** Returns false if a reader needs the log. */
function truncateLog(database: DatabaseSync): boolean {
  const { timeout } = database.prepare('PRAGMA busy_timeout').get() ?? {};
  try {
    // Accepting messages must not wait for a reader.
    database.exec('PRAGMA busy_timeout = 0');
    return database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0;
  } catch {
    return false;
  } finally {
    database.exec(`PRAGMA busy_timeout = ${Number(timeout)}`);
  }
}

export interface FilesFault {
  /** Contains no paths, because the public may see it. */
  readonly reason: string;
  /** For the operator; names the file. */
  readonly remedy: string;
}

const WATCHED_FILES = [
  ['', 'the database file'],
  ['-wal', 'the write-ahead log of the database'],
  ['-shm', 'the shared memory file of the database'],
  ['-serve', 'the lock file of the database'],
] as const;
type FileSuffix = (typeof WATCHED_FILES)[number][0];

/**
 * Returns a function that compares the open files with those on disk. A comparison takes 8 to 36 µs. It opens no file,
 * because closing a file would release the SQLite locks on it.
 */
export function watchFiles(path: string): () => FilesFault | null {
  const openedFiles = WATCHED_FILES.map(([suffix, name]) => ({
    end: suffix,
    name,
    identity: readFileIdentity(path + suffix),
  }));
  const linkCount = statSync(path, { throwIfNoEntry: false })?.nlink ?? 1;
  return () => {
    for (const { end: suffix, name, identity } of openedFiles) {
      // A file that was missing at the start is not checked. Only a service has a lock file.
      if (identity === null) continue;
      let currentStats: BigIntStats | undefined;
      try {
        currentStats = statSync(path + suffix, { bigint: true, throwIfNoEntry: false });
      } catch (error) {
        return toAccessFault(path + suffix, name, getSystemErrorCode(error));
      }
      if (currentStats === undefined) return toFault(path, suffix, `${name} was removed`);
      if (currentStats.dev !== identity.dev || currentStats.ino !== identity.ino)
        return toFault(path, suffix, `${name} was replaced`);
      // The number of links may decrease, because a hard link from an interrupted restore may be removed at any time.
      if (currentStats.nlink > BigInt(suffix === '' ? linkCount : 1)) {
        const remedy = `Remove the second hard link to ${path + suffix}; the service then continues.`;
        return { reason: `${name} has a second hard link`, remedy };
      }
    }
    return null;
  };
}

function toAccessFault(file: string, name: string, code: string): FilesFault {
  return {
    reason: `${name} is not accessible (${code})`,
    remedy: `Check the owner and the permissions of the folder of ${file}, and check the disk; the service continues as soon as the file is accessible.`,
  };
}

function toFault(path: string, suffix: FileSuffix, reason: string): FilesFault {
  const file = path + suffix;
  switch (suffix) {
    case '':
      return {
        reason,
        remedy: `Put the file back at ${path}; the service then continues. If the file was deleted, stop the service, move ${path}* to another folder and run \`postrider restore FILE\` with a backup.`,
      };
    case '-wal':
      return {
        reason,
        remedy: `Stop the service with SIGTERM and start it again: the service then writes the log into ${path}. Do not end the service with SIGKILL, and run no other command before the service has started again.`,
      };
    case '-shm':
    case '-serve':
      return {
        reason,
        remedy: `Stop the service and start it again; the service then creates ${file} again. Run no other command before the service has started again.`,
      };
  }
}

type SynchronousMethod<Method> = Method extends (...args: infer Args) => Promise<infer Answer>
  ? (...args: Args) => Answer
  : never;

export type Operations = Pick<StoreMethods, NounMethod | 'searchMessages' | 'claim' | 'recordFeedback'> & {
  readonly [Name in Exclude<
    MethodName,
    NounMethod | 'searchMessages' | 'claim' | 'settle' | 'recordFeedback' | 'recordPackedFeedback'
  >]: SynchronousMethod<StoreMethods[Name]>;
} & {
  settle(batch: readonly PackedSettlement[]): Promise<readonly SettleResult[]>;
  recordPackedFeedback(batch: PackedReports): Promise<string>;
  readDirectorySince(revision: number): Promise<DirectoryChanges | null>;
  buildIndex(step: IndexStep): Promise<BuiltStep>;
  changeIndex(change: IndexChange): Promise<void>;
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

const INTERNAL_KINDS = { readDirectorySince: 'read', buildIndex: 'operator-read', changeIndex: 'change' } as const;

const getKind = (name: OperationName): MethodKind =>
  name in INTERNAL_KINDS ? INTERNAL_KINDS[name as keyof typeof INTERNAL_KINDS] : getMethodKind(name as MethodName);

/** The success of such an operation guarantees that data is stored, so it fails while files are missing. */
export function requiresFiles(name: OperationName): boolean {
  return getKind(name) === 'change';
}

function prepareOperations(database: DatabaseSync, monotonic: () => number, outbox: Outbox): Operations {
  const updateProbe = database.prepare('UPDATE installation SET probed_at = probed_at + 1');
  const accept = prepareAccept(database, outbox);
  const statements = createSqliteTransaction(database);
  const feedback = prepareFeedback(database, statements, outbox);
  const transaction = createMessageTransaction(database, statements, accept, feedback.recordFeedback, outbox);
  return {
    accept,
    claim: prepareClaim(database, outbox),
    ...prepareLeaseEnds(database, statements, outbox),
    ...bindNouns((_kind, work) => work(transaction)),
    readDirectorySince: (revision) => readDirectorySince(transaction, revision),
    async searchMessages(search, budgetMs) {
      // The transaction gives the whole search one snapshot.
      database.exec('BEGIN');
      try {
        return await searchMessages(transaction, search, budgetMs, monotonic);
      } finally {
        database.exec('COMMIT');
      }
    },
    buildIndex: (step) => planIndexStep(transaction, step),
    changeIndex: (change) => writeIndexChange(transaction, change),
    ...feedback,
    probe: (): void => {
      updateProbe.run();
    },
  };
}

export interface Engine {
  readonly operations: Operations;
  /** Waits for earlier groups. The writes run first, in one transaction. Never rejects. */
  run(calls: readonly Call[]): Promise<Reply[]>;
}

/** Rejects if an operation waits for more than statements, because the transaction would stay open meanwhile. */
async function requireMicrotasks(result: Promise<unknown>): Promise<unknown> {
  const { promise, reject } = Promise.withResolvers<never>();
  const immediate = setImmediate(() => reject(new Error('an operation of the store waited for an event')));
  try {
    return await Promise.race([result, promise]);
  } finally {
    clearImmediate(immediate);
  }
}

export function createEngine(database: DatabaseSync, monotonic = SYSTEM_ENVIRONMENT.clock.monotonic): Engine {
  const outbox = prepareOutbox(database);
  const operations = prepareOperations(database, monotonic, outbox);

  let lastGroup: Promise<unknown> = Promise.resolve();

  async function runOperation(call: Call): Promise<Reply> {
    try {
      const operation = operations[call.name] as (...args: readonly unknown[]) => unknown;
      const result = operation(...call.args);
      const value = result instanceof Promise ? await requireMicrotasks(result) : result;
      return { number: call.number, ok: true, value };
    } catch (error) {
      return { number: call.number, ok: false, error };
    }
  }

  async function runInSavepoint(call: Call): Promise<Reply> {
    database.exec('SAVEPOINT operation');
    // An earlier operation of the group may have changed the subscriptions.
    outbox.reset();
    const reply = await runOperation(call);
    if (!reply.ok && database.isTransaction) database.exec('ROLLBACK TO operation');
    if (database.isTransaction) database.exec('RELEASE operation');
    return reply;
  }

  async function commit(calls: readonly Call[]): Promise<Reply[]> {
    try {
      database.exec('BEGIN IMMEDIATE');
      const replies: Reply[] = [];
      for (const call of calls) {
        const reply = await runInSavepoint(call);
        replies.push(reply);
        // On a full disk or an I/O error, SQLite rolls back the whole transaction, including the earlier operations.
        if (!database.isTransaction) throw reply.ok ? new Error('the transaction was lost') : reply.error;
      }
      database.exec('COMMIT');
      return replies;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      return calls.map(({ number }) => ({ number, ok: false, error }));
    }
  }

  async function runGroup(calls: readonly Call[]): Promise<Reply[]> {
    const writes = calls.filter(({ name }) => !isRead(getKind(name)));
    const reads = calls.filter(({ name }) => isRead(getKind(name)));
    const replies = writes.length === 0 ? [] : await commit(writes);
    for (const read of reads) replies.push(await runOperation(read));
    return replies;
  }

  return {
    operations,
    run(calls) {
      // A second group must wait, because its statements would run in the transaction of the first one.
      const group = lastGroup.then(() => runGroup(calls));
      lastGroup = group;
      return group;
    },
  };
}
