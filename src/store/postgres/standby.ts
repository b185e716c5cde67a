/**
 * Reads the status of the standby of the server, and enforces POSTRIDER_REQUIRE_SYNC_STANDBY: messages are accepted
 * only while the server requires a synchronous standby.
 */
import type { Standby } from '../../model/node.ts';
import { StoreError } from '../error.ts';
import type { Session, Statement } from './session.ts';

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

/** Rejects with a StoreError if the server does not require a synchronous standby. */
export async function requireStandby({ query }: Session, server: string): Promise<void> {
  const [row] = await query(READ_REQUIREMENT, []);
  if (row?.required === true) return;
  throw new StoreError(
    `${server}: POSTRIDER_REQUIRE_SYNC_STANDBY=yes, but the server does not require a synchronous standby. Set synchronous_standby_names on the server, or remove POSTRIDER_REQUIRE_SYNC_STANDBY.`,
  );
}
