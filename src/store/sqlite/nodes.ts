/** One service and its commands use this database. */
import type { DatabaseSync } from 'node:sqlite';
import type {
  DeliveryStatus,
  NodeIdentity,
  NodeStatus,
  RefusedReports,
  TokenGrant,
  TokenRequest,
} from '../../model/node.ts';
import { advanceRunningTime, type RunningTime, startRunningTime } from '../../model/running-time.ts';
import * as rows from '../rules/rows.ts';
import { takeTokens } from '../rules/token-bucket.ts';

const DEAD_NODE_LISTING_MS = 3_600_000;

export function prepareNodes(database: DatabaseSync) {
  const upsertNode = database.prepare(
    `INSERT INTO node (name, roles, version, started_at, seen_at, alive_until, refused_reports, delivery)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at, alive_until = excluded.alive_until,
       refused_reports = excluded.refused_reports, delivery = excluded.delivery`,
  );
  const purgeDeadNodes = database.prepare('DELETE FROM node WHERE alive_until < ?');
  const deleteNode = database.prepare('DELETE FROM node WHERE name = ?');
  const selectListed = database.prepare(
    'SELECT *, alive_until > ? AS alive FROM node WHERE alive_until >= ? ORDER BY name',
  );
  const selectBucket = database.prepare('SELECT * FROM throttle WHERE account_id = ?');
  const writeBucket = database.prepare(
    'INSERT OR REPLACE INTO throttle (account_id, tokens, per_second, burst, at) VALUES (?, ?, ?, ?, ?)',
  );

  const selectRunningTime = database.prepare('SELECT ran_ms, seen_at, stretches FROM running_time');
  const updateRunningTimeRow = database.prepare(
    'INSERT OR REPLACE INTO running_time (one, ran_ms, seen_at, stretches) VALUES (1, ?, ?, ?)',
  );

  return {
    updateRunningTime(elapsedMs: number, now: number): RunningTime {
      const row = selectRunningTime.get();
      const previousTime = row === undefined ? startRunningTime(now) : rows.toRunningTime(row);
      const runningTime = advanceRunningTime(previousTime, now, Math.ceil(elapsedMs));
      updateRunningTimeRow.run(runningTime.runningMs, runningTime.seenAt, JSON.stringify(runningTime.segments));
      return runningTime;
    },
    recordHeartbeat(
      { name, roles, version }: NodeIdentity,
      ttlMs: number,
      now: number,
      refused: readonly RefusedReports[] = [],
      delivery: DeliveryStatus | null = null,
    ): number {
      purgeDeadNodes.run(now - DEAD_NODE_LISTING_MS);
      const report = [rows.formatRefusedReports(refused), rows.formatNodeDelivery(delivery)] as const;
      upsertNode.run(name, roles.join(','), version, now, now, now + ttlMs, ...report);
      return now;
    },
    removeNode(name: string): void {
      deleteNode.run(name);
    },
    listNodes: (now: number): NodeStatus[] => selectListed.all(now, now - DEAD_NODE_LISTING_MS).map(rows.toNodeStatus),
    takeTokens: (batch: readonly TokenRequest[], now: number): TokenGrant[] =>
      batch.map((request) => {
        const row = selectBucket.get(request.accountId);
        const { bucket, answer } = takeTokens(row === undefined ? null : rows.toTokenBucket(row), request, now);
        writeBucket.run(request.accountId, bucket.tokens, bucket.perSecond, bucket.burst, bucket.at);
        return answer;
      }),
  };
}
