/**
 * What the opening of a store waits for. The schema is written in a transaction without a time limit of its own (migrate.ts), so
 * that its commit waits for an absent synchronous standby, and its lock for another node, without an error.
 */
import type { Clock } from '../../clock.ts';
import type { Pool } from './database.ts';
import type { Statement } from './session.ts';

/** An opening takes less; after so long, and then again as often until it is known, the server is asked. */
const ASK_EVERY_MS = 5_000;

/** Of the connections of this process. */
const WAITS: Statement = {
  name: 'opening_waits',
  text: `SELECT wait_event, current_setting('synchronous_standby_names') AS standbys FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND application_name = current_setting('application_name') AND usename = current_user
      AND (wait_event = 'SyncRep' OR (wait_event_type = 'Lock' AND wait_event = 'advisory')) LIMIT 1`,
};

/** Calls `tell` once, in one line with the remedy, where the opening waits for long; the returned function ends the watch. */
export function reportOpeningWaits(
  { query, where }: Pick<Pool, 'query' | 'where'>,
  clock: Clock,
  tell: (line: string) => void,
): () => void {
  let over = false;
  let cancel = clock.after(ASK_EVERY_MS, ask);
  function ask(): void {
    query(WAITS, []).then(
      ([row]) => {
        if (over) return;
        if (row === undefined) later();
        else if (row.wait_event === 'advisory')
          tell(`${where}: waits for another node, which brings the schema up to date.`);
        else tell(standbyLine(where, String(row.standbys)));
      },
      // What the opening itself meets is its own fault to report.
      () => {
        if (!over) later();
      },
    );
  }
  function later(): void {
    cancel = clock.after(ASK_EVERY_MS, ask);
  }
  return () => {
    over = true;
    cancel();
  };
}

function standbyLine(where: string, standbys: string): string {
  return `${where}: waits for a synchronous standby, and none is connected (synchronous_standby_names = ${standbys}). Start the standby, or empty synchronous_standby_names on the server and reload it.`;
}
