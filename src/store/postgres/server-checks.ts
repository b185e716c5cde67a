/** Checks of the server: settings with which messages can be lost, its standby, and what the opening waits for. */
import type { Clock } from '../../clock.ts';
import type { Standby } from '../../model/node.ts';
import { StoreError } from '../error.ts';
import type { Pool } from './database.ts';
import type { Session } from './session.ts';

const IS_STANDBY_REQUIRED = "trim(current_setting('synchronous_standby_names')) <> '' AS required";

/** `synchronous_commit` is not checked, because every connection sets it. */
export async function listServerWarnings({ query, server }: Pick<Pool, 'query' | 'server'>): Promise<string[]> {
  const riskySettings = await query(
    "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name",
  );
  return riskySettings.map(({ name }) => {
    const risk = name === 'fsync' ? 'lose accepted messages' : 'damage the database';
    return `${server} runs with ${name}=off: a crash of the machine can ${risk}. Set ${name}=on in postgresql.conf.`;
  });
}

/** Only a role with the privileges of pg_read_all_stats can read the state of a standby. */
export async function readStandby({ query }: Session): Promise<Standby> {
  // A backup or a logical subscriber is not a standby.
  const [row = {}] = await query(`SELECT ${IS_STANDBY_REQUIRED},
    pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS visible,
    EXISTS (SELECT 1 FROM pg_stat_replication r WHERE r.state <> 'backup' AND NOT EXISTS
      (SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')) AS connected`);
  if (row.required === true) return 'synchronous';
  if (row.visible !== true) return 'hidden';
  return row.connected === true ? 'asynchronous' : 'none';
}

/** Rejects with a StoreError if the server does not require a synchronous standby (POSTRIDER_REQUIRE_SYNC_STANDBY). */
export async function requireStandby({ query }: Session, server: string): Promise<void> {
  const [row] = await query(`SELECT ${IS_STANDBY_REQUIRED}`);
  if (row?.required === true) return;
  throw new StoreError(
    `${server}: POSTRIDER_REQUIRE_SYNC_STANDBY=yes, but the server does not require a synchronous standby. Set synchronous_standby_names on the server, or remove POSTRIDER_REQUIRE_SYNC_STANDBY.`,
  );
}

/** Opening usually completes before the first check. */
const CHECK_INTERVAL_MS = 5_000;
const SELECT_WAITS = `SELECT wait_event, current_setting('synchronous_standby_names') AS standbys FROM pg_stat_activity
  WHERE pid <> pg_backend_pid() AND application_name = current_setting('application_name') AND usename = current_user
    AND (wait_event = 'SyncRep' OR (wait_event_type = 'Lock' AND wait_event = 'advisory')) LIMIT 1`;

/**
 * Calls `onWait` once if the opening waits for a synchronous standby or for a migration by another node, which cause no
 * error. The returned function stops the checks.
 */
export function reportOpeningWaits(
  { query, server }: Pick<Pool, 'query' | 'server'>,
  clock: Clock,
  onWait: (line: string) => void,
): () => void {
  let isStopped = false;
  let cancelCheck = clock.after(CHECK_INTERVAL_MS, checkWaits);
  async function checkWaits(): Promise<void> {
    // The caller reports errors of the opening.
    const [row] = await query(SELECT_WAITS).catch(() => []);
    if (isStopped) return;
    if (row === undefined) cancelCheck = clock.after(CHECK_INTERVAL_MS, checkWaits);
    else if (row.wait_event === 'advisory') onWait(`${server}: waiting for another node to migrate the schema.`);
    else
      onWait(
        `${server}: waiting for a synchronous standby, but none is connected (synchronous_standby_names = ${row.standbys}). Start the standby, or set synchronous_standby_names to an empty value on the server and reload its configuration.`,
      );
  }
  return () => {
    isStopped = true;
    cancelCheck();
  };
}
