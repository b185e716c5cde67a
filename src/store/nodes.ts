/** The nodes that use the store, and its running time. */
import type { DeliveryStatus, NodeIdentity, NodeStatus, RefusedReports } from '../model/node.ts';
import { advanceRunningTime, type RunningTime, startRunningTime } from '../model/running-time.ts';
import type { MessageTransaction } from './messages.ts';
import * as rows from './rules/rows.ts';
import { formatStoreTime } from './transaction.ts';

const DEAD_NODE_LISTING_MS = 3_600_000;

/** Advances the running time (`advanceRunningTime`) to the time of the store: the database server's, or `now`. */
export async function updateRunningTime(tx: MessageTransaction, elapsedMs: number, now: number): Promise<RunningTime> {
  const [row] = await tx.query('SELECT ran_ms, seen_at, stretches FROM running_time FOR UPDATE');
  // Read after the lock is acquired, because a time from before the wait would be out of date.
  const [clock = {}] = await tx.query(`SELECT ${formatStoreTime(tx, '$1')} AS now`, [tx.getStoreTime(now)]);
  const storeTime = rows.readInteger(clock, 'now');
  const previousTime = row === undefined ? startRunningTime(storeTime) : rows.toRunningTime(row);
  const runningTime = advanceRunningTime(previousTime, storeTime, Math.ceil(elapsedMs));
  await tx.query(
    `INSERT INTO running_time (one, ran_ms, seen_at, stretches) VALUES (1, $1, $2, $3)
     ON CONFLICT (one) DO UPDATE SET ran_ms = excluded.ran_ms, seen_at = excluded.seen_at, stretches = excluded.stretches`,
    [runningTime.runningMs, runningTime.seenAt, JSON.stringify(runningTime.segments)],
  );
  return runningTime;
}

/**
 * The node is alive for `ttlMs`. Resolves to the time of the store. `refused` and `delivery` replace what is stored.
 */
export async function recordHeartbeat(
  tx: MessageTransaction,
  { name, roles, version }: NodeIdentity,
  ttlMs: number,
  now: number,
  refused: readonly RefusedReports[] = [],
  delivery: DeliveryStatus | null = null,
): Promise<number> {
  const storeTime = tx.getStoreTime(now);
  const [[row = {}]] = await Promise.all([
    tx.query(
      `INSERT INTO node (name, roles, version, started_at, seen_at, alive_until, refused_reports, delivery)
       SELECT $1, $2, $3, t.now, t.now, t.now + $4::bigint, $5, $6 FROM (SELECT ${formatStoreTime(tx, '$7')} AS now) t WHERE true
       ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at, alive_until = excluded.alive_until,
         refused_reports = excluded.refused_reports, delivery = excluded.delivery RETURNING seen_at`,
      [
        ...[name, roles.join(','), version, ttlMs],
        ...[rows.formatRefusedReports(refused), rows.formatNodeDelivery(delivery), storeTime],
      ],
    ),
    tx.query(`DELETE FROM node WHERE alive_until < ${formatStoreTime(tx, '$1')} - ${DEAD_NODE_LISTING_MS}`, [
      storeTime,
    ]),
  ]);
  return rows.readInteger(row, 'seen_at');
}

/** Other nodes may then recover the leases of this node immediately. */
export async function removeNode(tx: MessageTransaction, name: string): Promise<void> {
  await tx.query('DELETE FROM node WHERE name = $1', [name]);
}

/** Lists the nodes that are alive or were within the last hour, in order of name. */
export async function listNodes(tx: MessageTransaction, now: number): Promise<readonly NodeStatus[]> {
  const found = await tx.query(
    `SELECT n.*, n.alive_until > t.now AS alive FROM node n, (SELECT ${formatStoreTime(tx, '$1')} AS now) t
     WHERE n.alive_until >= t.now - ${DEAD_NODE_LISTING_MS} ORDER BY n.name`,
    [tx.getStoreTime(now)],
  );
  return found.map(rows.toNodeStatus);
}
