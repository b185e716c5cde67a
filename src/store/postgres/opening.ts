/**
 * Reports what the opening of a store waits for. The schema is written in a transaction without a time limit
 * (migrate.ts), so its commit may wait for a missing synchronous standby, and its lock for another node, without an
 * error.
 */
import type { Clock } from '../../clock.ts';
import type { Pool } from './database.ts';
import type { Statement } from './session.ts';

/**
 * Opening usually takes less time. After it, and then at the same interval, the server is asked what the opening waits
 * for.
 */
const CHECK_INTERVAL_MS = 5_000;

/** Waits of this process's own connections. */
const SELECT_WAITS: Statement = {
  name: 'opening_waits',
  text: `SELECT wait_event, current_setting('synchronous_standby_names') AS standbys FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND application_name = current_setting('application_name') AND usename = current_user
      AND (wait_event = 'SyncRep' OR (wait_event_type = 'Lock' AND wait_event = 'advisory')) LIMIT 1`,
};

/**
 * Calls `tell` once, with one line that names the remedy, if the opening waits for long. The returned function stops
 * the check.
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
        else if (row.wait_event === 'advisory') onWait(`${server}: waits for another node that migrates the schema.`);
        else onWait(standbyWaitText(server, String(row.standbys)));
      },
      // The opening reports its own faults.
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

function standbyWaitText(server: string, standbys: string): string {
  return `${server}: waits for a synchronous standby, and none is connected (synchronous_standby_names = ${standbys}). Start the standby, or empty synchronous_standby_names on the server and reload it.`;
}
