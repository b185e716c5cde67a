/**
 * The embedded store: `node:sqlite` behind the store contract. One thread writes (accepts, claims, settlements, group
 * commit); a second one, started when first asked, answers operators' questions, so that no search delays a commit; a third
 * one reads what is to be indexed for searches.
 */

import type { DirectoryChanges } from '../../model/account.ts';
import { METHODS, type MethodName, type Store, type StoreMethods } from '../contract.ts';
import { StoreError } from '../error.ts';
import { every } from '../every.ts';
import { keptThread } from '../kept-thread.ts';
import { INDEX_MEMORY } from '../search/politeness.ts';
import { MACHINE, type Surroundings } from '../surroundings.ts';
import type { StoreThread } from './client.ts';
import { startThread } from './client.ts';
import { prepareFile } from './database.ts';
import { type FilesFault, removeKeptLinks, requireUsableFiles, resolveDatabasePath } from './files.ts';
import { startHere } from './here.ts';
import { takeServeLock } from './serve-lock.ts';
import { pack } from './settle.ts';

/** How often the writer looks for changes that other processes made; well under the promised second. */
const WATCH_MS = 200;

/** A thread other than the writer is ended when it has had nothing to do for so long. */
const READER_IDLE_MS = 300_000;
const INDEX_IDLE_MS = 60_000;

/**
 * Pages that a connection keeps: what a commit touches again is worth more than what an operator asks once, and the index reads
 * each row once. A young generation that V8 may grow as it likes takes 128 MB on a large machine (docs/decisions/embedded-store.md).
 */
const WRITER = { cacheKib: 32_768, polite: false, memory: { maxYoungGenerationSizeMb: 48 } };
const READER = { cacheKib: 8_192, polite: false, memory: { maxYoungGenerationSizeMb: 24 } };
const INDEX = { cacheKib: 2_048, polite: true, memory: INDEX_MEMORY };

const WORKER = new URL('./worker.ts', import.meta.url);

export interface SqliteOptions {
  readonly path: string;
  /** True for a service: it alone may hold leases on the file. Commands open the same file beside it. */
  readonly exclusive: boolean;
  /** The module that runs the store's thread. */
  readonly worker?: URL;
  /** Hears when files of the database were removed or replaced, within a second, and null when they are back. */
  readonly onFilesFault?: (fault: FilesFault | null) => void;
  readonly surroundings?: Surroundings;
  /** True: no thread is started, as in a simulation. */
  readonly inCaller?: boolean;
}

/** Opens the store; rejects with a StoreError of one line. */
export async function openSqliteStore({
  path: given,
  exclusive,
  worker = WORKER,
  onFilesFault,
  surroundings = MACHINE,
  inCaller = surroundings.simulated,
}: SqliteOptions): Promise<Store> {
  const path = resolveDatabasePath(given);
  // Before anything is opened: a service that may not run must not migrate what another one runs on.
  if (exclusive) prepareFile(path);
  const unlock = exclusive ? takeServeLock(path) : () => undefined;
  const start = ({ memory, ...how }: typeof WRITER | typeof INDEX, told?: typeof onFilesFault) =>
    startThread(worker, { path, locked: exclusive, ...how }, memory, told);
  let writer: StoreThread;
  try {
    // Again, now that nobody else changes them.
    if (exclusive) {
      requireUsableFiles(path);
      removeKeptLinks(path);
    }
    writer = inCaller
      ? await startHere({ path, locked: exclusive, cacheKib: WRITER.cacheKib }, surroundings, onFilesFault)
      : await start(WRITER, onFilesFault);
  } catch (error) {
    unlock();
    throw error;
  }
  /** Another file of that name must not be opened beside the log that the writer holds. */
  const startBeside = (how: typeof READER | typeof INDEX) => {
    const fault = writer.filesFault();
    return fault === null ? start(how) : Promise.reject(new StoreError(`${fault.reason}. ${fault.remedy}`));
  };
  const reader = keptThread(() => startBeside(READER), READER_IDLE_MS);
  const index = keptThread(() => startBeside(INDEX), INDEX_IDLE_MS);
  const besides = (kept: typeof reader): StoreThread['call'] =>
    inCaller ? writer.call : (name, ...args) => kept.use((thread) => thread.call(name, ...args));
  const ask = besides(reader);
  const buildIndex = besides(index);
  const stopWatching: (() => void)[] = [];

  async function watchDirectory(onChange: (changes: DirectoryChanges) => void): Promise<void> {
    let revision = -1;
    const look = async () => {
      // One row is read where nothing has changed; who changed it, and in which process, does not matter.
      const changes = await writer.call('directorySince', revision);
      if (changes === null) return;
      revision = changes.revision;
      onChange(changes);
    };
    await look();
    stopWatching.push(every(surroundings.clock, WATCH_MS, () => void look().catch(() => undefined)));
  }

  return {
    ...methodsOver(writer.call, ask),
    settle: (batch) => writer.call('settle', pack(batch)),
    watchDirectory,
    async indexMail(step) {
      const { change, progress } = await buildIndex('buildIndex', step);
      if (change !== null) await writer.call('changeIndex', change);
      return progress;
    },
    failed: writer.failed,
    async close() {
      for (const stop of stopWatching) stop();
      // No thread's end may keep another, or the lock, waiting.
      await Promise.allSettled([writer.close(), reader.close(), index.close()]);
      unlock();
    },
  };
}

/** Every method of the contract as a call of its name: questions of operators beside the writer, all else by it. */
function methodsOver(write: StoreThread['call'], ask: StoreThread['call']): Pick<StoreMethods, MethodName> {
  const names = Object.keys(METHODS) as MethodName[];
  const methods = names.map((name) => {
    const call = (METHODS[name] === 'question' ? ask : write) as (...args: readonly unknown[]) => Promise<unknown>;
    return [name, (...args: readonly unknown[]) => call(name, ...args)] as const;
  });
  return Object.fromEntries(methods) as unknown as Pick<StoreMethods, MethodName>;
}
