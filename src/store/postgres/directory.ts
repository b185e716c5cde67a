/**
 * The directory: accounts, keys and domains that running nodes cache. One revision counter increases with every change
 * of any of them, in the order of the commits, because its row stays locked until each commit. A node therefore reads
 * only what it has not seen. Notifications shorten the delay; a poll guarantees it.
 */

import { runEvery } from '../../clock.ts';
import type { DirectoryChanges, FoundKeys } from '../../model/account.ts';
import type { StoreEnvironment } from '../environment.ts';
import * as rows from '../rules/rows.ts';
import type { Connection } from './connection.ts';
import type { Pool } from './database.ts';
import type { Session, Statement } from './session.ts';

/** Notified after each committed change. */
const CHANNEL = 'postrider_directory';

const INCREMENT_REVISION: Statement = {
  name: 'directory_bump',
  text: 'UPDATE postrider SET revision = revision + 1 RETURNING revision',
};
const NOTIFY: Statement = { name: 'directory_notify', text: `SELECT pg_notify('${CHANNEL}', '')` };
/** Accounts including the usage counted per slot. */
export const SELECT_ACCOUNTS = `SELECT a.*, (a.volume_used + coalesce((SELECT sum(u.emails) FROM account_usage u WHERE u.account_id = a.id), 0))::bigint AS volume_used FROM account a`;

/** Increments the revision for the rows of this transaction. Every node is notified after the commit. */
export async function nextRevision(session: Session): Promise<number> {
  const [[row = {}]] = await Promise.all([session.query(INCREMENT_REVISION, []), session.query(NOTIFY, [])]);
  return rows.int(row, 'revision');
}

/** Poll interval. Guarantee: within one second. */
const POLL_INTERVAL_MS = 400;
const LISTEN_RETRY_MS = 1_000;

const READ_REVISION: Statement = { name: 'directory_read', text: 'SELECT revision FROM postrider' };
const CHANGED_ACCOUNTS: Statement = {
  name: 'directory_accounts',
  text: `${SELECT_ACCOUNTS} WHERE a.revision > $1 ORDER BY a.id`,
};
const CHANGED_KEYS: Statement = {
  name: 'directory_keys',
  text: 'SELECT * FROM api_key WHERE revision > $1 ORDER BY id',
};
/** One snapshot, so that no key is older than the revision returned with it. */
const KEYS_BY_HASH: Statement = {
  name: 'directory_keys_by_hash',
  text: `SELECT k.*, p.revision AS directory_revision FROM postrider p, api_key k
    WHERE k.hash = ANY($1::text[]) ORDER BY k.id`,
};
const ACCOUNTS_BY_ID: Statement = {
  name: 'directory_accounts_by_id',
  text: `${SELECT_ACCOUNTS} WHERE a.id = ANY($1::int[]) ORDER BY a.id`,
};

export function prepareDirectory(
  pool: Pool,
  { clock, simulated }: StoreEnvironment,
  domainsSince: (revision: number) => Promise<Pick<DirectoryChanges, 'domains' | 'removed'>>,
) {
  let isStopped = false;
  const disposers = new Set<() => void>();

  /** What changed after `revision`, or null if nothing did. */
  async function changesSince(revision: number): Promise<DirectoryChanges | null> {
    const [row = {}] = await pool.query(READ_REVISION, []);
    const latestRevision = rows.int(row, 'revision');
    if (latestRevision <= revision) return null;
    const [accounts, keys, domains] = await Promise.all([
      pool.query(CHANGED_ACCOUNTS, [revision]),
      pool.query(CHANGED_KEYS, [revision]),
      domainsSince(revision),
    ]);
    // Changes committed between these reads are read again by the next poll.
    return { revision: latestRevision, accounts: accounts.map(rows.account), keys: keys.map(rows.apiKey), ...domains };
  }

  async function findKeys(hashes: readonly string[]): Promise<FoundKeys> {
    const found = await pool.query(KEYS_BY_HASH, [hashes]);
    const [first] = found;
    // An unknown digest costs one statement.
    if (first === undefined) return { revision: 0, accounts: [], keys: [] };
    const keys = found.map(rows.apiKey);
    const ids = [...new Set(keys.map(({ accountId }) => accountId))];
    const accounts = (await pool.query(ACCOUNTS_BY_ID, [ids])).map(rows.account);
    return { revision: rows.int(first, 'directory_revision'), accounts, keys };
  }

  async function watchDirectory(onChange: (changes: DirectoryChanges) => void): Promise<void> {
    let revision = -1;
    let isPolling = false;
    let pollRequested = false;
    const poll = async () => {
      if (isPolling) {
        pollRequested = true;
        return;
      }
      isPolling = true;
      try {
        do {
          pollRequested = false;
          const changes = await changesSince(revision);
          if (changes === null) continue;
          revision = changes.revision;
          onChange(changes);
        } while (pollRequested);
      } finally {
        isPolling = false;
      }
    };
    await poll();
    const triggerPoll = () => void poll().catch(() => undefined);
    disposers.add(runEvery(clock, POLL_INTERVAL_MS, triggerPoll));
    // Notifications arrive in real time, which a simulation cannot control.
    if (!simulated) listen(triggerPoll);
  }

  /** Calls back on each notification. Uses its own connection and reopens it when it breaks. */
  function listen(onNotification: () => void): void {
    let connection: Connection | null = null;
    let cancel: () => void = () => undefined;
    const openListener = async () => {
      try {
        connection = await pool.connect();
        if (isStopped) return connection.destroy();
        connection.onNotification(onNotification);
        await connection.command(`LISTEN ${CHANNEL}`);
        onNotification();
        await connection.ended;
      } catch {
        // Polling continues meanwhile.
      }
      connection = null;
      if (isStopped) return;
      cancel = clock.after(LISTEN_RETRY_MS, () => void openListener());
    };
    void openListener();
    disposers.add(() => {
      connection?.destroy();
      cancel();
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
