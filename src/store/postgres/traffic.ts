/**
 * Stores the traffic time series: the rows of each node by minute and by hour. Reads return the sums over all nodes.
 */
import {
  formatFailureCounts,
  formatLatencies,
  getRowSpanMs,
  HOUR_MS,
  MINUTE_MS,
  parseFailureCounts,
  parseLatencies,
  readTrafficCounts,
  TRAFFIC_COUNTS,
} from '../../model/traffic.ts';
import type { RetentionStore, TrafficStore } from '../contract.ts';
import * as rows from '../rules/rows.ts';
import type { Database, Statement } from './session.ts';

const COUNT_COLUMNS = TRAFFIC_COUNTS.join(', ');
const WRITE_ROWS: Statement = {
  name: 'traffic_write',
  text: `INSERT INTO traffic (node, span, at, latencies, confirmations, bounces, ${COUNT_COLUMNS})
    SELECT $1, * FROM unnest($2::int[], $3::bigint[], $4::text[], $5::text[], $6::text[]${TRAFFIC_COUNTS.map((_, at) => `, $${at + 7}::bigint[]`).join('')})
    ON CONFLICT (span, at, node) DO UPDATE SET latencies = excluded.latencies, confirmations = excluded.confirmations,
      bounces = excluded.bounces, ${TRAFFIC_COUNTS.map((name) => `${name} = excluded.${name}`).join(', ')}`,
};
const SUM_BY_STEP: Statement = {
  name: 'traffic_sums',
  text: `SELECT at / $1::bigint * $1::bigint AS step, string_agg(latencies, ' ') AS latencies,
      string_agg(confirmations, ' ') AS confirmations, string_agg(bounces, ' ') AS bounces, ${TRAFFIC_COUNTS.map((name) => `sum(${name})::bigint AS ${name}`).join(', ')}
    FROM traffic WHERE span = $2 AND at >= $3 AND at < $4 GROUP BY step ORDER BY step`,
};
const PURGE_ROWS: Statement = {
  name: 'traffic_purge',
  text: `DELETE FROM traffic WHERE (span, at, node) IN (
    SELECT span, at, node FROM traffic WHERE span = $1 AND at < $2 LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING 1 AS one`,
};
/** The commit does not wait for the sync of the WAL, because the loss of recent counts in a crash is acceptable. */
const DISABLE_SYNC: Statement = {
  name: 'traffic_without_sync',
  text: `SELECT set_config('synchronous_commit', 'off', true)`,
};

export function prepareTraffic(database: Database): TrafficStore & Pick<RetentionStore, 'purgeTraffic'> {
  return {
    async writeTraffic(node, batch) {
      if (batch.length === 0) return;
      const readColumn = <Value>(read: (row: (typeof batch)[number]) => Value) => batch.map(read);
      await database.transaction(async (transaction) => {
        await Promise.all([
          transaction.query(DISABLE_SYNC, []),
          transaction.query(WRITE_ROWS, [
            node,
            readColumn(({ spanMs }) => spanMs),
            readColumn(({ at }) => at),
            readColumn(({ latencies }) => formatLatencies(latencies)),
            readColumn(({ confirmations }) => formatLatencies(confirmations)),
            readColumn(({ bounces }) => formatFailureCounts(bounces)),
            ...TRAFFIC_COUNTS.map((name) => readColumn((row) => row[name])),
          ]),
        ]);
      });
    },
    async readTraffic(since, until, stepMs) {
      return (await database.query(SUM_BY_STEP, [stepMs, getRowSpanMs(stepMs), since, until])).map((row) => ({
        at: rows.readInteger(row, 'step'),
        ...readTrafficCounts((column) => rows.readInteger(row, column)),
        latencies: parseLatencies(rows.readText(row, 'latencies')),
        confirmations: parseLatencies(rows.readText(row, 'confirmations')),
        bounces: parseFailureCounts(rows.readText(row, 'bounces')),
      }));
    },
    async purgeTraffic(minuteRowsBefore, hourRowsBefore, limit) {
      const [minutes, hours] = await Promise.all([
        database.query(PURGE_ROWS, [MINUTE_MS, minuteRowsBefore, limit]),
        database.query(PURGE_ROWS, [HOUR_MS, hourRowsBefore, limit]),
      ]);
      return minutes.length + hours.length;
    },
  };
}
