/**
 * Reads the directory: the accounts, keys and domains that running nodes cache. Every change increments one revision
 * counter. The row of the counter stays locked until the commit, so the order of revisions is the order of commits. A
 * node reads only rows that have changed since its last read. A node reads a change at the latest when the next poll
 * interval ends, and usually earlier, after a notification.
 */

import { runEvery } from '../../clock.ts';
import type { DirectoryChanges, FoundKeys } from '../../model/account.ts';
import type { StoreEnvironment } from '../environment.ts';
import * as rows from '../rules/rows.ts';
import type { Connection } from './connection.ts';
import type { Pool } from './database.ts';
import type { Session, Statement } from './session.ts';

/** The channel on which a notification is sent after each committed change. */
const CHANNEL = 'postrider_directory';

const INCREMENT_REVISION: Statement = {
  name: 'directory_increment_revision',
  text: 'UPDATE installation SET revision = revision + 1 RETURNING revision',
};
const NOTIFY_NODES: Statement = { name: 'directory_notify', text: `SELECT pg_notify('${CHANNEL}', '')` };
/** Selects accounts. The selected usage includes the messages that are counted per slot. */
export const SELECT_ACCOUNTS = `SELECT a.*, (a.volume_used + coalesce((SELECT sum(u.emails) FROM account_usage u WHERE u.account_id = a.id), 0))::bigint AS volume_used FROM account a`;

/**
 * Increments the revision. Returns the new revision, which the transaction writes to the rows that it changes. The
 * server notifies every node after the commit.
 */
export async function incrementRevision(session: Session): Promise<number> {
  const [[row = {}]] = await Promise.all([session.query(INCREMENT_REVISION, []), session.query(NOTIFY_NODES, [])]);
  return rows.readInteger(row, 'revision');
}

/** Poll interval. A change must be visible on every node within one second. */
const POLL_INTERVAL_MS = 400;
const LISTEN_RETRY_MS = 1_000;

const READ_REVISION: Statement = { name: 'directory_read', text: 'SELECT revision FROM installation' };
const CHANGED_ACCOUNTS: Statement = {
  name: 'directory_accounts',
  text: `${SELECT_ACCOUNTS} WHERE a.revision > $1 ORDER BY a.id`,
};
const CHANGED_KEYS: Statement = {
  name: 'directory_keys',
  text: 'SELECT * FROM api_key WHERE revision > $1 ORDER BY id',
};
/** One statement uses one snapshot, so the returned keys and the returned revision are consistent. */
const KEYS_BY_HASH: Statement = {
  name: 'directory_keys_by_hash',
  text: `SELECT k.*, p.revision AS directory_revision FROM installation p, api_key k
    WHERE k.hash = ANY($1::text[]) ORDER BY k.id`,
};
const ACCOUNTS_BY_ID: Statement = {
  name: 'directory_accounts_by_id',
  text: `${SELECT_ACCOUNTS} WHERE a.id = ANY($1::int[]) ORDER BY a.id`,
};

export function prepareDirectory(
  pool: Pool,
  { clock, isSimulated }: StoreEnvironment,
  readDomainsSince: (revision: number) => Promise<Pick<DirectoryChanges, 'domains' | 'removedDomains'>>,
) {
  let isStopped = false;
  const disposers = new Set<() => void>();

  /** Reads the changes after `revision`. Resolves to null if there is no change. */
  async function readChangesSince(revision: number): Promise<DirectoryChanges | null> {
    const [row = {}] = await pool.query(READ_REVISION, []);
    const latestRevision = rows.readInteger(row, 'revision');
    if (latestRevision <= revision) return null;
    const [accounts, keys, domains] = await Promise.all([
      pool.query(CHANGED_ACCOUNTS, [revision]),
      pool.query(CHANGED_KEYS, [revision]),
      readDomainsSince(revision),
    ]);
    // If a change is committed after the revision was read, its rows may be included here. The next poll reads them
    // again.
    return {
      revision: latestRevision,
      accounts: accounts.map(rows.toAccount),
      keys: keys.map(rows.toApiKey),
      ...domains,
    };
  }

  async function findKeys(hashes: readonly string[]): Promise<FoundKeys> {
    const keyRows = await pool.query(KEYS_BY_HASH, [hashes]);
    const [first] = keyRows;
    // If no key has one of `hashes`, the accounts are not read.
    if (first === undefined) return { revision: 0, accounts: [], keys: [] };
    const keys = keyRows.map(rows.toApiKey);
    const ids = [...new Set(keys.map(({ accountId }) => accountId))];
    const accounts = (await pool.query(ACCOUNTS_BY_ID, [ids])).map(rows.toAccount);
    return { revision: rows.readInteger(first, 'directory_revision'), accounts, keys };
  }

  async function watchDirectory(onChange: (changes: DirectoryChanges) => void): Promise<void> {
    let revision = -1;
    let isPolling = false;
    let isPollRequested = false;
    const pollChanges = async () => {
      if (isPolling) {
        isPollRequested = true;
        return;
      }
      isPolling = true;
      try {
        do {
          isPollRequested = false;
          const changes = await readChangesSince(revision);
          if (changes === null) continue;
          revision = changes.revision;
          onChange(changes);
        } while (isPollRequested);
      } finally {
        isPolling = false;
      }
    };
    await pollChanges();
    const triggerPoll = () => void pollChanges().catch(() => undefined);
    disposers.add(runEvery(clock, POLL_INTERVAL_MS, triggerPoll));
    // A simulation does not listen for notifications, because it cannot control when they arrive.
    // A pooler in transaction mode delivers no notifications.
    if (!isSimulated && (pool.setting.pooler === null || pool.setting.direct !== null)) listenForChanges(triggerPoll);
  }

  /** Calls `onNotification` on each notification. Uses a separate connection, which is reopened if it is lost. */
  function listenForChanges(onNotification: () => void): void {
    let connection: Connection | null = null;
    let cancelRetry: () => void = () => undefined;
    const openListener = async () => {
      try {
        connection = await pool.connect();
        if (isStopped) return connection.destroy();
        connection.onNotification(onNotification);
        await connection.runCommand(`LISTEN ${CHANNEL}`);
        onNotification();
        await connection.whenEnded;
      } catch {
        // Polling continues while there is no connection.
      }
      connection = null;
      if (isStopped) return;
      cancelRetry = clock.after(LISTEN_RETRY_MS, () => void openListener());
    };
    void openListener();
    disposers.add(() => {
      connection?.destroy();
      cancelRetry();
    });
  }

  return {
    watchDirectory,
    findKeys,
    stopWatching(): void {
      isStopped = true;
      for (const dispose of disposers) dispose();
    },
  };
}
