/**
 * Stores the traffic time series: the rows of each node by minute and by hour. Reads return the sums over all nodes.
 */
import type { DatabaseSync } from 'node:sqlite';
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
  type TrafficRow,
  type TrafficStep,
} from '../../model/traffic.ts';
import * as rows from '../rules/rows.ts';

export function prepareTraffic(database: DatabaseSync) {
  const counts = TRAFFIC_COUNTS.join(', ');
  const writeRow = database.prepare(
    `INSERT OR REPLACE INTO traffic (span, at, node, latencies, confirmations, bounces, ${counts}) VALUES (?, ?, ?, ?, ?, ?, ${TRAFFIC_COUNTS.map(() => '?').join(', ')})`,
  );
  // node:sqlite binds numbers as floating-point numbers. The casts make the division by the step an integer division.
  const selectSums = database.prepare(
    `SELECT at / cast(:step AS INTEGER) * cast(:step AS INTEGER) AS step, group_concat(latencies, ' ') AS latencies,
       group_concat(confirmations, ' ') AS confirmations, group_concat(bounces, ' ') AS bounces, ${TRAFFIC_COUNTS.map((name) => `sum(${name}) AS ${name}`).join(', ')}
     FROM traffic WHERE span = :span AND at >= :since AND at < :until GROUP BY step ORDER BY step`,
  );
  const purgeRows = database.prepare(
    `DELETE FROM traffic WHERE (span, at, node) IN (SELECT span, at, node FROM traffic WHERE span = ? AND at < ? LIMIT ?)`,
  );

  return {
    writeTraffic(node: string, batch: readonly TrafficRow[]): void {
      for (const row of batch) {
        const values = TRAFFIC_COUNTS.map((name) => row[name]);
        const histograms = [formatLatencies(row.latencies), formatLatencies(row.confirmations)];
        writeRow.run(row.spanMs, row.at, node, ...histograms, formatFailureCounts(row.bounces), ...values);
      }
    },
    readTraffic: (since: number, until: number, stepMs: number): TrafficStep[] =>
      selectSums.all({ step: stepMs, span: getRowSpanMs(stepMs), since, until }).map((row) => ({
        at: rows.readInteger(row, 'step'),
        ...readTrafficCounts((column) => rows.readInteger(row, column)),
        latencies: parseLatencies(rows.readText(row, 'latencies')),
        confirmations: parseLatencies(rows.readText(row, 'confirmations')),
        bounces: parseFailureCounts(rows.readText(row, 'bounces')),
      })),
    purgeTraffic(minuteRowsBefore: number, hourRowsBefore: number, limit: number): number {
      const purgedMinuteRowCount = Number(purgeRows.run(MINUTE_MS, minuteRowsBefore, limit).changes);
      return purgedMinuteRowCount + Number(purgeRows.run(HOUR_MS, hourRowsBefore, limit).changes);
    },
  };
}
