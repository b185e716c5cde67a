/**
 * Applies pending reports, and lists and purges stored ones. The recording of reports is in sqlite/feedback.ts and
 * postgres/report-batch.ts.
 */
import type {
  AppliedReport,
  AppliedReports,
  FeedbackReport,
  LastFeedback,
  UnprocessedReport,
} from '../model/feedback.ts';
import type { MessageTransaction } from './messages.ts';
import { computeNextPendingAttemptAt, MAX_SCANNED_REPORTS, parsePendingReport } from './rules/feedback.ts';
import * as rows from './rules/rows.ts';
import { deleteRows, type Transaction } from './transaction.ts';

/** Each pending report is applied once on all nodes, or postponed if its message is not yet settled. */
export async function applyPendingReports(tx: MessageTransaction, now: number, limit: number): Promise<AppliedReports> {
  const found = await tx.query(
    `SELECT digest, received_at, report FROM pending_report WHERE due_at <= $1 ORDER BY due_at LIMIT $2
     FOR UPDATE SKIP LOCKED`,
    [now, limit],
  );
  const reports = found.map((row) => parsePendingReport(rows.readText(row, 'report')));
  const results = reports.length === 0 ? [] : await tx.recordReports(reports);
  const messageIds = await findMessageIds(tx, reports);
  const applied: AppliedReport[] = [];
  const endedDigests: string[] = [];
  const postponed: (readonly [digest: string, dueAt: number])[] = [];
  for (const [index, report] of reports.entries()) {
    const row = found[index] ?? {};
    const result = results[index] ?? { kind: 'pending' };
    const [digest, receivedAt] = [rows.readText(row, 'digest'), rows.readInteger(row, 'received_at')];
    const dueAt =
      result.kind === 'pending' ? computeNextPendingAttemptAt(receivedAt, messageIds[index] ?? null, now) : null;
    if (dueAt !== null) postponed.push([digest, dueAt]);
    else {
      endedDigests.push(digest);
      applied.push({ report, result: result.kind === 'pending' ? { kind: 'unrelated' } : result });
    }
  }
  if (endedDigests.length > 0)
    await tx.query('DELETE FROM pending_report WHERE digest = ANY($1::text[])', [endedDigests]);
  if (postponed.length > 0)
    await tx.query(
      `UPDATE pending_report SET due_at = (p.value->>1)::bigint FROM json_array_elements($1::json) AS p(value)
       WHERE digest = p.value->>0`,
      [JSON.stringify(postponed)],
    );
  const [next = { due_at: null }] = await tx.query('SELECT min(due_at) AS due_at FROM pending_report');
  return { reports: applied, nextDueAt: rows.readIntegerOrNull(next, 'due_at') };
}

/** Null if a report names no message or an unknown id of the provider. */
export async function findMessageIds(
  tx: Transaction,
  reports: readonly FeedbackReport[],
): Promise<readonly (string | null)[]> {
  const references = reports.flatMap(({ messageRef }) =>
    messageRef !== null && 'reference' in messageRef ? [messageRef.reference] : [],
  );
  const found =
    references.length === 0
      ? []
      : await tx.query('SELECT reference, id FROM provider_reference WHERE reference = ANY($1::text[])', [references]);
  const idsByReference = new Map(found.map((row) => [rows.readText(row, 'reference'), rows.readText(row, 'id')]));
  return reports.map(({ messageRef }) => {
    if (messageRef === null) return null;
    return 'id' in messageRef ? messageRef.id : (idsByReference.get(messageRef.reference) ?? null);
  });
}

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
      deleteRows(tx, table, key, 'WHERE at <= $1 ORDER BY at LIMIT $2', [before, limit]),
    ),
    maxStored < 1
      ? 0
      : deleteRows(
          tx,
          'feedback',
          'id',
          `WHERE reason IS NOT NULL AND id <
             (SELECT id FROM feedback WHERE reason IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET $1) ORDER BY id LIMIT $2`,
          [maxStored - 1, limit],
        ),
  ]);
  return Math.max(...purged);
}
