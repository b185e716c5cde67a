/** Lists and purges stored reports. The recording of reports is in sqlite/feedback.ts and postgres/report-batch.ts. */
import type { LastFeedback, UnprocessedReport } from '../model/feedback.ts';
import { MAX_SCANNED_REPORTS } from './rules/feedback.ts';
import * as rows from './rules/rows.ts';
import type { Transaction } from './transaction.ts';

export async function listFeedback(
  tx: Transaction,
  before: number | null,
  limit: number,
): Promise<readonly UnprocessedReport[]> {
  const found = await tx.query(
    `SELECT id, at, source, mail_id, reason, summary FROM feedback
     WHERE reason IS NOT NULL AND id < $1 ORDER BY id DESC LIMIT $2`,
    [before ?? Number.MAX_SAFE_INTEGER, limit],
  );
  return found.map(rows.toUnprocessedReport);
}

export async function findFeedback(
  tx: Transaction,
  id: number,
): Promise<(UnprocessedReport & { readonly raw: Uint8Array }) | null> {
  const [row] = await tx.query(
    'SELECT id, at, source, mail_id, reason, summary, raw FROM feedback WHERE id = $1 AND reason IS NOT NULL',
    [id],
  );
  return row === undefined ? null : rows.toRawReport(row);
}

export async function findLastFeedbackAt(tx: Transaction): Promise<number | null> {
  const [row = { at: null }] = await tx.query('SELECT max(at) AS at FROM feedback');
  return rows.readIntegerOrNull(row, 'at');
}

/** Resolves, for each source, to the time of its last report about a message, among the newest million reports. */
export async function listLastFeedback(tx: Transaction): Promise<readonly LastFeedback[]> {
  const found = await tx.query(
    `SELECT source, max(at) AS at FROM feedback WHERE mail_id IS NOT NULL AND reason IS NULL
       AND id > (SELECT max(id) FROM feedback) - ${MAX_SCANNED_REPORTS} GROUP BY source`,
  );
  return found.map(rows.toLastFeedback);
}

const PURGED_KEYS = {
  feedback: 'id',
  provider_reference: 'reference',
  complainant: 'account_id, recipient',
  evidence: 'account_id, kind, source',
};

/**
 * Purges what is older than `before`, and reports that are not among the newest `maxStored`: up to `limit` of each kind.
 * Resolves to the greatest of the counts. If it equals `limit`, more rows may remain.
 */
export async function purgeFeedback(
  tx: Transaction,
  before: number,
  maxStored: number,
  limit: number,
): Promise<number> {
  const purged = await Promise.all([
    ...Object.entries(PURGED_KEYS).map(([table, key]) =>
      tx.query(
        `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE at <= $1 ORDER BY at LIMIT $2
           FOR UPDATE SKIP LOCKED) RETURNING 1 AS one`,
        [before, limit],
      ),
    ),
    maxStored < 1
      ? []
      : tx.query(
          `DELETE FROM feedback WHERE id IN (SELECT id FROM feedback WHERE reason IS NOT NULL AND id <
             (SELECT id FROM feedback WHERE reason IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET $1)
             ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING 1 AS one`,
          [maxStored - 1, limit],
        ),
  ]);
  return Math.max(...purged.map(({ length }) => length));
}
