/** All times come from the clock of the database server. */

import type { TokenGrant, TokenRequest } from '../../model/node.ts';
import { advanceRunningTime, startRunningTime } from '../../model/running-time.ts';
import type { AcceptStore, NodeStore } from '../contract.ts';
import type { ServerTimeOverride } from '../environment.ts';
import * as rows from '../rules/rows.ts';
import type { Database } from './session.ts';

const DEAD_NODE_LISTING_MS = 3_600_000;
/** Returns an SQL expression for the server's time, or in a simulation for the value of the parameter. */
const createNowExpression = (parameter: string) =>
  `coalesce(${parameter}::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)`;

const LOCK_RUNNING_TIME = 'SELECT ran_ms, seen_at, stretches FROM running_time FOR UPDATE';
// A separate statement reads the time after the lock is acquired, because a time read before the wait would be out of
// date.
const READ_CLOCK = `SELECT ${createNowExpression('$1')} AS now`;
const WRITE_RUNNING_TIME = `INSERT INTO running_time AS t (one, ran_ms, seen_at, stretches) VALUES (1, $1, $2, $3)
    ON CONFLICT (one) DO UPDATE SET ran_ms = excluded.ran_ms, seen_at = excluded.seen_at, stretches = excluded.stretches`;

const WRITE_HEARTBEAT = `WITH t AS MATERIALIZED (SELECT ${createNowExpression('$5')} AS now), deleted AS (DELETE FROM node WHERE alive_until < (SELECT now FROM t) - ${DEAD_NODE_LISTING_MS} AND name <> $1)
    INSERT INTO node AS n (name, roles, version, started_at, seen_at, alive_until, refused_reports, delivery)
    SELECT $1, $2, $3, now, now, now + $4::bigint, $6, $7 FROM t
    ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at, alive_until = excluded.alive_until,
      refused_reports = excluded.refused_reports, delivery = excluded.delivery RETURNING n.seen_at`;
const DELETE_NODE = 'DELETE FROM node WHERE name = $1';
const LIST_NODES = `WITH t AS MATERIALIZED (SELECT ${createNowExpression('$1')} AS now)
    SELECT node.*, alive_until > now AS alive FROM node, t WHERE alive_until >= now - ${DEAD_NODE_LISTING_MS} ORDER BY name`;
// Rows are inserted first and then locked in order of the account id, so that nodes cannot deadlock. The bucket is
// refilled for the time since its last use, at the old rate. A full bucket stays full under a new limit.
const INSERT_BUCKETS = `INSERT INTO throttle (account_id, tokens, per_second, burst, at)
    SELECT account_id, burst, per_second, burst, coalesce($4::float8, extract(epoch FROM clock_timestamp()) * 1000)
    FROM unnest($1::int[], $2::float8[], $3::int[]) AS r(account_id, per_second, burst) ORDER BY account_id ON CONFLICT DO NOTHING`;
const TAKE_TOKENS = `WITH locked AS MATERIALIZED (
      SELECT t.account_id, r.per_second, r.burst, r.requested, t.tokens, t.per_second AS old_rate, t.burst AS old_burst, t.at,
        coalesce($5::float8, extract(epoch FROM clock_timestamp())::float8 * 1000) AS now
      FROM unnest($1::int[], $2::float8[], $3::int[], $4::int[]) AS r(account_id, per_second, burst, requested)
      JOIN throttle t ON t.account_id = r.account_id ORDER BY t.account_id FOR UPDATE OF t
    ), refilled AS (
      SELECT *, least(old_burst, tokens + greatest(0, now - at) * old_rate / 1000) AS level FROM locked
    ), adjusted AS (
      SELECT *, CASE WHEN level >= old_burst THEN burst ELSE least(level, burst) END AS available FROM refilled
    ), decided AS (
      SELECT *, least(floor(available + 1e-9)::int, requested) AS granted FROM adjusted
    )
    UPDATE throttle t SET tokens = d.available - d.granted, per_second = d.per_second, burst = d.burst, at = d.now
    FROM decided d WHERE t.account_id = d.account_id
    RETURNING t.account_id, d.granted, floor(d.available - d.granted + 1e-9)::int AS left,
      CASE WHEN d.available - d.granted >= 1 THEN 0 ELSE ceil((1 - (d.available - d.granted)) * 1000 / d.per_second)::bigint END AS next_ms`;
/**
 * The commit does not wait for the sync of the WAL, because the loss of recent token counts in a crash is acceptable.
 */
const DISABLE_SYNC = `SELECT set_config('synchronous_commit', 'off', true)`;

export function prepareNodes(
  database: Database,
  serverTime: ServerTimeOverride,
): NodeStore & Pick<AcceptStore, 'takeTokens'> {
  return {
    updateRunningTime: (elapsedMs) =>
      database.transaction(async (transaction) => {
        const [lockedRow] = await transaction.query(LOCK_RUNNING_TIME);
        const [clock = {}] = await transaction.query(READ_CLOCK, [serverTime()]);
        const now = rows.readInteger(clock, 'now');
        const before = lockedRow === undefined ? startRunningTime(now) : rows.toRunningTime(lockedRow);
        const runningTime = advanceRunningTime(before, now, Math.ceil(elapsedMs));
        await transaction.query(WRITE_RUNNING_TIME, [
          runningTime.runningMs,
          runningTime.seenAt,
          JSON.stringify(runningTime.segments),
        ]);
        return runningTime;
      }),
    async recordHeartbeat({ name, roles, version }, ttlMs, _now, refused = [], delivery = null) {
      const [row = {}] = await database.query(WRITE_HEARTBEAT, [
        name,
        roles.join(','),
        version,
        ttlMs,
        serverTime(),
        rows.formatRefusedReports(refused),
        rows.formatNodeDelivery(delivery),
      ]);
      return rows.readInteger(row, 'seen_at');
    },
    async removeNode(name) {
      await database.query(DELETE_NODE, [name]);
    },
    async listNodes() {
      return (await database.query(LIST_NODES, [serverTime()])).map(rows.toNodeStatus);
    },
    async takeTokens(batch) {
      // The statement processes one row per account. Requests of the same account are added up, and the granted tokens
      // are distributed in the order of the requests.
      const requestsByAccount = new Map<number, TokenRequest>();
      for (const request of batch)
        requestsByAccount.set(request.accountId, {
          ...request,
          requested: request.requested + (requestsByAccount.get(request.accountId)?.requested ?? 0),
        });
      const requests = [...requestsByAccount.values()];
      const [ids, rates, bursts, counts] = [
        requests.map(({ accountId }) => accountId),
        requests.map(({ perSecond }) => perSecond),
        requests.map(({ burst }) => Math.floor(burst)),
        requests.map((request) => request.requested),
      ];
      const grantedRows = await database.transaction(async (transaction) => {
        const [, , updatedRows] = await Promise.all([
          transaction.query(DISABLE_SYNC),
          transaction.query(INSERT_BUCKETS, [ids, rates, bursts, serverTime()]),
          transaction.query(TAKE_TOKENS, [ids, rates, bursts, counts, serverTime()]),
        ]);
        return updatedRows;
      });
      const grantsByAccount = new Map(
        grantedRows.map((row) => [
          rows.readInteger(row, 'account_id'),
          {
            granted: rows.readInteger(row, 'granted'),
            remaining: rows.readInteger(row, 'left'),
            nextTokenMs: rows.readInteger(row, 'next_ms'),
          },
        ]),
      );
      return batch.map((request): TokenGrant => {
        const grant = grantsByAccount.get(request.accountId);
        if (grant === undefined) return { granted: 0, remaining: 0, nextTokenMs: 1_000 };
        const grantedTokens = Math.min(grant.granted, request.requested);
        grant.granted -= grantedTokens;
        return { ...grant, granted: grantedTokens };
      });
    },
  };
}
