/**
 * The embedded store: `node:sqlite` behind the store contract. One thread writes (accepts, claims, settlements, group
 * commit); a second one, started when first asked, answers operators' questions, so that no search delays a commit; a third
 * one reads what is to be indexed for searches.
 */

import type { DirectoryChanges } from '../../model/account.ts';
import type { Store } from '../contract.ts';
import { StoreError } from '../error.ts';
import { keptThread } from '../kept-thread.ts';
import { INDEX_MEMORY } from '../search/politeness.ts';
import type { StoreThread } from './client.ts';
import { startThread } from './client.ts';
import { prepareFile } from './database.ts';
import { type FilesFault, removeKeptLinks, requireUsableFiles, resolveDatabasePath } from './files.ts';
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
}

/** Opens the store; rejects with a StoreError of one line. */
export async function openSqliteStore({
  path: given,
  exclusive,
  worker = WORKER,
  onFilesFault,
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
    writer = await start(WRITER, onFilesFault);
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
  const ask: StoreThread['call'] = (name, ...args) => reader.use((thread) => thread.call(name, ...args));
  const index = keptThread(() => startBeside(INDEX), INDEX_IDLE_MS);
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
    const timer = setInterval(() => look().catch(() => undefined), WATCH_MS);
    timer.unref();
    stopWatching.push(() => clearInterval(timer));
  }

  return {
    accept: (batch) => writer.call('accept', batch),
    claim: (room, lease, now) => writer.call('claim', room, lease, now),
    mark: (batch) => writer.call('mark', batch),
    settle: (batch) => writer.call('settle', pack(batch)),
    release: (batch, now) => writer.call('release', batch, now),
    recover: (options) => writer.call('recover', options),
    expire: (acceptedBefore, now, limit, by) => writer.call('expire', acceptedBefore, now, limit, by),
    hasten: (latestDueAt, now, limit) => writer.call('hasten', latestDueAt, now, limit),
    erase: (endedBefore, keysBefore, limit) => writer.call('erase', endedBefore, keysBefore, limit),
    screen: (batch) => writer.call('screen', batch),
    queueFigures: () => ask('queueFigures'),
    newestId: () => writer.call('newestId'),
    watchDirectory,
    findKeys: (hashes) => writer.call('findKeys', hashes),
    createFirstKey: (account, key, now) => writer.call('createFirstKey', account, key, now),
    createAccount: (name, limits, now, by) => writer.call('createAccount', name, limits, now, by),
    setAccount: (name, change, now, expected, by) => writer.call('setAccount', name, change, now, expected, by),
    lockAccount: (name, reason, now, expected, by) => writer.call('lockAccount', name, reason, now, expected, by),
    unlockAccount: (name, now, expected, by) => writer.call('unlockAccount', name, now, expected, by),
    listAccounts: () => writer.call('listAccounts'),
    createKey: (account, key, now, by) => writer.call('createKey', account, key, now, by),
    listKeys: (account) => writer.call('listKeys', account),
    revokeKey: (id, now, by) => writer.call('revokeKey', id, now, by),
    rotateKey: (id, key, oldExpiresAt, now, by) => writer.call('rotateKey', id, key, oldExpiresAt, now, by),
    touchKeys: (used) => writer.call('touchKeys', used),
    listMail: (filter) => ask('listMail', filter),
    showMail: (id) => ask('showMail', id),
    mailStandings: (ids) => ask('mailStandings', ids),
    searchMail: (search, budgetMs) => ask('searchMail', search, budgetMs),
    async indexMail(step) {
      const { change, progress } = await index.use((thread) => thread.call('buildIndex', step));
      if (change !== null) await writer.call('changeIndex', change);
      return progress;
    },
    retryMail: (id, now, by) => writer.call('retryMail', id, now, by),
    cancelMail: (id, now, by) => writer.call('cancelMail', id, now, by),
    reputationOf: (name, now) => ask('reputationOf', name, now),
    reputations: (now) => ask('reputations', now),
    addSuppressions: (list, entries, by) => writer.call('addSuppressions', list, entries, by),
    removeSuppression: (list, address, by) => writer.call('removeSuppression', list, address, by),
    listSuppressions: (list, after, limit) => ask('listSuppressions', list, after, limit),
    searchSuppressions: (list, search, after, limit) => ask('searchSuppressions', list, search, after, limit),
    findSuppression: (address) => ask('findSuppression', address),
    addDomain: (account, domain, now, by) => writer.call('addDomain', account, domain, now, by),
    findDomain: (name) => writer.call('findDomain', name),
    domainChecks: (name) => writer.call('domainChecks', name),
    listDomains: () => writer.call('listDomains'),
    updateDomain: (update, by) => writer.call('updateDomain', update, by),
    setSubdomains: (name, subdomains, by) => writer.call('setSubdomains', name, subdomains, by),
    removeDomain: (name, by) => writer.call('removeDomain', name, by),
    keepRunningTime: (passedMs, now) => writer.call('keepRunningTime', passedMs, now),
    beat: (node, ttlMs, now) => writer.call('beat', node, ttlMs, now),
    leave: (name) => writer.call('leave', name),
    listNodes: (now) => ask('listNodes', now),
    takeTokens: (batch, now) => writer.call('takeTokens', batch, now),
    recordFeedback: (batch) => writer.call('recordFeedback', batch),
    listFeedback: (before, limit) => ask('listFeedback', before, limit),
    showFeedback: (id) => ask('showFeedback', id),
    lastFeedbackAt: () => ask('lastFeedbackAt'),
    forgetFeedback: (before, keep, limit) => writer.call('forgetFeedback', before, keep, limit),
    writeAudit: (entry) => writer.call('writeAudit', entry),
    listAudit: (before, limit) => ask('listAudit', before, limit),
    createToken: (token, now, by) => writer.call('createToken', token, now, by),
    listTokens: () => writer.call('listTokens'),
    findToken: (hash) => writer.call('findToken', hash),
    revokeToken: (id, now, by) => writer.call('revokeToken', id, now, by),
    touchToken: (id, at) => writer.call('touchToken', id, at),
    endSession: (hash, until, now) => writer.call('endSession', hash, until, now),
    isSessionEnded: (hash) => ask('isSessionEnded', hash),
    putTraffic: (node, batch) => writer.call('putTraffic', node, batch),
    traffic: (since, until, stepMs) => ask('traffic', since, until, stepMs),
    sweepTraffic: (minutes, hours, limit) => writer.call('sweepTraffic', minutes, hours, limit),
    overviewFacts: (now) => ask('overviewFacts', now),
    changeMarks: (now) => ask('changeMarks', now),
    probe: () => writer.call('probe'),
    failed: writer.failed,
    async close() {
      for (const stop of stopWatching) stop();
      // No thread's end may keep another, or the lock, waiting.
      await Promise.allSettled([writer.close(), reader.close(), index.close()]);
      unlock();
    },
  };
}
