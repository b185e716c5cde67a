/**
 * Reports that the opening of a store waits for a synchronous standby or for a migration by another node. The
 * transaction of a migration (migrate.ts) has a long time limit, so these waits cause no error.
 */
import type { Clock } from '../../clock.ts';
import type { Pool } from './database.ts';
import type { Statement } from './session.ts';

/** The interval between checks. Opening usually completes before the first check. */
const CHECK_INTERVAL_MS = 5_000;

/** Selects a connection of this process that waits for a synchronous standby or for an advisory lock. */
const SELECT_WAITS: Statement = {
  name: 'opening_waits',
  text: `SELECT wait_event, current_setting('synchronous_standby_names') AS standbys FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND application_name = current_setting('application_name') AND usename = current_user
      AND (wait_event = 'SyncRep' OR (wait_event_type = 'Lock' AND wait_event = 'advisory')) LIMIT 1`,
};

/**
 * Calls `onWait` once, with one line that names the cause and the remedy, if the opening waits for a long time. The
 * returned function stops the checks.
 */
export function reportOpeningWaits(
  { query, server }: Pick<Pool, 'query' | 'server'>,
  clock: Clock,
  onWait: (line: string) => void,
): () => void {
  let isStopped = false;
  let cancelCheck = clock.after(CHECK_INTERVAL_MS, checkWaits);
  function checkWaits(): void {
    query(SELECT_WAITS, []).then(
      ([row]) => {
        if (isStopped) return;
        if (row === undefined) scheduleCheck();
        else if (row.wait_event === 'advisory') onWait(`${server}: waiting for another node to migrate the schema.`);
        else onWait(describeStandbyWait(server, String(row.standbys)));
      },
      // Errors of this query are ignored, because the caller reports errors of the opening.
      () => {
        if (!isStopped) scheduleCheck();
      },
    );
  }
  function scheduleCheck(): void {
    cancelCheck = clock.after(CHECK_INTERVAL_MS, checkWaits);
  }
  return () => {
    isStopped = true;
    cancelCheck();
  };
}

function describeStandbyWait(server: string, standbys: string): string {
  return `${server}: waiting for a synchronous standby, but none is connected (synchronous_standby_names = ${standbys}). Start the standby, or set synchronous_standby_names to an empty value on the server and reload its configuration.`;
}
