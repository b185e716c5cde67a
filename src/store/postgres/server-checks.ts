/**
 * Checks of the database server: settings with which accepted messages can be lost, its standby, and what the opening
 * of a store waits for.
 */
import type { Clock } from '../../clock.ts';
import type { Standby } from '../../model/node.ts';
import { StoreError } from '../error.ts';
import type { Pool } from './database.ts';
import type { Session, Statement } from './session.ts';

const READ_SETTINGS: Statement = {
  name: 'server_settings',
  text: "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name",
};
const SETTING_RISKS: ReadonlyMap<unknown, string> = new Map([
  ['fsync', 'lose accepted messages'],
  ['full_page_writes', 'damage the database'],
]);

/**
 * Returns one line for each server setting with which a crash can lose acknowledged messages. `synchronous_commit` is
 * not checked, because every connection sets it.
 */
export async function listServerWarnings({ query, server }: Pick<Pool, 'query' | 'server'>): Promise<string[]> {
  return (await query(READ_SETTINGS, [])).map(
    ({ name }) =>
      `${server} runs with ${name}=off: a crash of the machine can ${SETTING_RISKS.get(name)}. Set ${name}=on in postgresql.conf.`,
  );
}

const READ_REQUIREMENT: Statement = {
  name: 'standby_requirement',
  text: "SELECT trim(current_setting('synchronous_standby_names')) <> '' AS required",
};
// Only a role with the privileges of pg_read_all_stats can read the state of a standby. A backup or a logical
// subscriber is not a standby.
const READ_STANDBY: Statement = {
  name: 'standby',
  text: `SELECT trim(current_setting('synchronous_standby_names')) <> '' AS required,
    pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS visible,
    EXISTS (SELECT 1 FROM pg_stat_replication r WHERE r.state <> 'backup' AND NOT EXISTS
      (SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')) AS connected`,
};

export async function readStandby({ query }: Session): Promise<Standby> {
  const [row = {}] = await query(READ_STANDBY, []);
  if (row.required === true) return 'synchronous';
  if (row.visible !== true) return 'hidden';
  return row.connected === true ? 'asynchronous' : 'none';
}

/** Rejects with a StoreError if the server does not require a synchronous standby (POSTRIDER_REQUIRE_SYNC_STANDBY). */
export async function requireStandby({ query }: Session, server: string): Promise<void> {
  const [row] = await query(READ_REQUIREMENT, []);
  if (row?.required === true) return;
  throw new StoreError(
    `${server}: POSTRIDER_REQUIRE_SYNC_STANDBY=yes, but the server does not require a synchronous standby. Set synchronous_standby_names on the server, or remove POSTRIDER_REQUIRE_SYNC_STANDBY.`,
  );
}

/** Opening usually completes before the first check. */
const CHECK_INTERVAL_MS = 5_000;
/** Selects a connection of this process that waits for a synchronous standby or for an advisory lock. */
const SELECT_WAITS: Statement = {
  name: 'opening_waits',
  text: `SELECT wait_event, current_setting('synchronous_standby_names') AS standbys FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND application_name = current_setting('application_name') AND usename = current_user
      AND (wait_event = 'SyncRep' OR (wait_event_type = 'Lock' AND wait_event = 'advisory')) LIMIT 1`,
};

/**
 * Calls `onWait` once, with one line that names the cause and the remedy, if the opening waits for a synchronous standby
 * or for a migration by another node. These waits cause no error, because a migration has a long time limit. The
 * returned function stops the checks.
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
    const [row] = await query(SELECT_WAITS, []).catch(() => []);
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
