/** Stores the figures of each node: traffic by minute and hour, deliverability series, and mailbox providers. */
import type { DeliverabilityRow, Series, SpanMs, StoredDeliverabilityRow } from '../model/deliverability.ts';
import { isMailboxProvider, type StoredMailboxProvider } from '../model/mailbox-provider.ts';
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
} from '../model/traffic.ts';
import * as rows from './rules/rows.ts';
import { deleteRows, type Transaction } from './transaction.ts';

const COLUMNS = ['latencies', 'confirmations', 'bounces', ...TRAFFIC_COUNTS];
const WRITE_TRAFFIC = `INSERT INTO traffic (node, span, at, ${COLUMNS.join(', ')})
  VALUES ($1, $2, $3, ${COLUMNS.map((_, index) => `$${index + 4}`).join(', ')})
  ON CONFLICT (span, at, node) DO UPDATE SET ${COLUMNS.map((name) => `${name} = excluded.${name}`).join(', ')}`;
// node:sqlite binds numbers as floating-point numbers. The casts make the division by the step an integer division.
const SUM_TRAFFIC = `SELECT at / cast($1 AS bigint) * cast($1 AS bigint) AS step, string_agg(latencies, ' ') AS latencies,
    string_agg(confirmations, ' ') AS confirmations, string_agg(bounces, ' ') AS bounces,
    ${TRAFFIC_COUNTS.map((name) => `sum(${name})::bigint AS ${name}`).join(', ')}
  FROM traffic WHERE span = $2 AND at >= $3 AND at < $4 GROUP BY step ORDER BY step`;

/** The commit does not wait for the disk, because a crash may lose recent figures. */
async function allowLoss({ dialect, query }: Transaction): Promise<void> {
  if (dialect === 'postgres') await query(`SELECT set_config('synchronous_commit', 'off', true)`);
}

export async function writeTraffic(tx: Transaction, node: string, batch: readonly TrafficRow[]): Promise<void> {
  const writes = batch.map((row) =>
    tx.query(WRITE_TRAFFIC, [
      node,
      row.spanMs,
      row.at,
      formatLatencies(row.latencies),
      formatLatencies(row.confirmations),
      formatFailureCounts(row.bounces),
      ...TRAFFIC_COUNTS.map((name) => row[name]),
    ]),
  );
  await Promise.all([allowLoss(tx), ...writes]);
}

/**
 * Returns the sums over all nodes for each step from `since` (inclusive) to `until` (exclusive). Steps without traffic are
 * omitted. `stepMs` is a multiple of one minute; for a multiple of one hour the hour rows are read.
 */
export async function readTraffic(
  tx: Transaction,
  since: number,
  until: number,
  stepMs: number,
): Promise<readonly TrafficStep[]> {
  return (await tx.query(SUM_TRAFFIC, [stepMs, getRowSpanMs(stepMs), since, until])).map((row) => ({
    at: rows.readInteger(row, 'step'),
    ...readTrafficCounts((column) => rows.readInteger(row, column)),
    latencies: parseLatencies(rows.readText(row, 'latencies')),
    confirmations: parseLatencies(rows.readText(row, 'confirmations')),
    bounces: parseFailureCounts(rows.readText(row, 'bounces')),
  }));
}

export async function purgeTraffic(
  tx: Transaction,
  minuteRowsBefore: number,
  hourRowsBefore: number,
  limit: number,
): Promise<number> {
  const purge = (spanMs: number, before: number) =>
    deleteRows(tx, 'traffic', 'span, at, node', 'WHERE span = $1 AND at < $2 LIMIT $3', [spanMs, before, limit]);
  const [minutes, hours] = await Promise.all([purge(MINUTE_MS, minuteRowsBefore), purge(HOUR_MS, hourRowsBefore)]);
  return minutes + hours;
}

export async function writeDeliverability(
  tx: Transaction,
  node: string,
  batch: readonly DeliverabilityRow[],
): Promise<void> {
  const writes = batch.map(({ spanMs, at, series, counts }) =>
    tx.query(
      `INSERT INTO deliverability (span, at, series, node, counts) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (span, series, at, node) DO UPDATE SET counts = excluded.counts`,
      [spanMs, at, series, node, counts],
    ),
  );
  await Promise.all([allowLoss(tx), ...writes]);
}

export async function readDeliverability(
  tx: Transaction,
  series: Series,
  spanMs: SpanMs,
  since: number,
  until: number,
): Promise<readonly StoredDeliverabilityRow[]> {
  const found = await tx.query(
    'SELECT at, counts FROM deliverability WHERE span = $1 AND series = $2 AND at >= $3 AND at < $4 ORDER BY at',
    [spanMs, series, since, until],
  );
  return found.map((row) => ({ at: rows.readInteger(row, 'at'), counts: rows.readText(row, 'counts') }));
}

export function purgeDeliverability(tx: Transaction, spanMs: SpanMs, before: number, limit: number): Promise<number> {
  const clauses = 'WHERE span = $1 AND at < $2 LIMIT $3';
  return deleteRows(tx, 'deliverability', 'span, series, at, node', clauses, [spanMs, before, limit]);
}

export async function writeMailboxProviders(tx: Transaction, batch: readonly StoredMailboxProvider[]): Promise<void> {
  // All nodes write in order of the domain, so that they cannot deadlock.
  const writes = batch
    .toSorted((one, other) => (one.domain < other.domain ? -1 : 1))
    .map(({ domain, provider, lookedUpAt }) =>
      tx.query(
        `INSERT INTO mailbox_provider AS stored (domain, provider, looked_up_at) VALUES ($1, $2, $3)
         ON CONFLICT (domain) DO UPDATE SET provider = excluded.provider, looked_up_at = excluded.looked_up_at
         WHERE excluded.looked_up_at >= stored.looked_up_at`,
        [domain, provider, lookedUpAt],
      ),
    );
  await Promise.all([allowLoss(tx), ...writes]);
}

export async function findMailboxProviders(
  tx: Transaction,
  domains: readonly string[],
): Promise<readonly StoredMailboxProvider[]> {
  const found = await tx.query(
    'SELECT domain, provider, looked_up_at FROM mailbox_provider WHERE domain = ANY($1::text[])',
    [domains],
  );
  return found.flatMap((row) => {
    const provider = rows.readText(row, 'provider');
    const lookedUpAt = rows.readInteger(row, 'looked_up_at');
    // A provider that a newer version of Postrider has stored and that this version does not know is omitted.
    return isMailboxProvider(provider) ? [{ domain: rows.readText(row, 'domain'), provider, lookedUpAt }] : [];
  });
}

export async function listMailboxProviderDomains(
  tx: Transaction,
  provider: string,
  limit: number,
): Promise<readonly string[]> {
  const found = await tx.query(
    'SELECT domain FROM mailbox_provider WHERE provider = $1 ORDER BY looked_up_at DESC LIMIT $2',
    [provider, limit],
  );
  return found.map((row) => rows.readText(row, 'domain'));
}

/** Purges providers that were last looked up before `before`, and those that are not among the newest `maxStored`. */
export async function purgeMailboxProviders(
  tx: Transaction,
  before: number,
  maxStored: number,
  limit: number,
): Promise<number> {
  const clauses = 'WHERE looked_up_at < $1 ORDER BY looked_up_at LIMIT $2';
  const old = await deleteRows(tx, 'mailbox_provider', 'domain', clauses, [before, limit]);
  // Not `deleteRows`, because PostgreSQL would also lock the rows before the offset.
  const excess = await tx.query(
    `DELETE FROM mailbox_provider WHERE domain IN (SELECT domain FROM mailbox_provider
       ORDER BY looked_up_at DESC LIMIT $1 OFFSET $2) RETURNING 1 AS one`,
    [limit, maxStored],
  );
  return Math.max(old, excess.length);
}
