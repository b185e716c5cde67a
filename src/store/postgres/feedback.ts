/** Records feedback reports, applies pending reports, and lists and purges stored reports. */

import type { AppliedReport } from '../../model/feedback.ts';
import { unpackReports } from '../../model/packed-reports.ts';
import type { FeedbackStore, MessageStore, RetentionStore } from '../contract.ts';
import { computeNextPendingAttemptAt, MAX_SCANNED_REPORTS, parsePendingReport } from '../rules/feedback.ts';
import * as rows from '../rules/rows.ts';
import { recordBatch } from './report-batch.ts';
import { findMessageIds } from './report-rows.ts';
import type { Database, Statement } from './session.ts';

const LOCK_PENDING: Statement = {
  name: 'feedback_lock_pending',
  text: `SELECT digest, received_at, report FROM pending_report WHERE due_at <= $1 ORDER BY due_at LIMIT $2
    FOR UPDATE SKIP LOCKED`,
};
const POSTPONE_PENDING: Statement = {
  name: 'feedback_postpone_pending',
  text: `UPDATE pending_report p SET due_at = n.due_at
    FROM unnest($1::text[], $2::bigint[]) AS n (digest, due_at) WHERE p.digest = n.digest`,
};
const DELETE_PENDING: Statement = {
  name: 'feedback_delete_pending',
  text: 'DELETE FROM pending_report WHERE digest = ANY($1::text[])',
};
const SELECT_NEXT_DUE_TIME: Statement = {
  name: 'feedback_next_pending',
  text: 'SELECT min(due_at) AS due_at FROM pending_report',
};
const LIST_REPORTS: Statement = {
  name: 'feedback_list',
  text: `SELECT id, at, source, mail_id, reason, summary FROM feedback
    WHERE reason IS NOT NULL AND ($1::bigint IS NULL OR id < $1) ORDER BY id DESC LIMIT $2`,
};
const SELECT_REPORT: Statement = {
  name: 'feedback_select',
  text: 'SELECT id, at, source, mail_id, reason, summary, raw FROM feedback WHERE id = $1 AND reason IS NOT NULL',
};
const SELECT_LAST_REPORT_TIME: Statement = { name: 'feedback_last', text: 'SELECT max(at) AS at FROM feedback' };
const SELECT_LAST_BY_SOURCE: Statement = {
  name: 'feedback_last_by_source',
  text: `SELECT source, max(at) AS at FROM feedback
    WHERE mail_id IS NOT NULL AND reason IS NULL AND id > (SELECT max(id) FROM feedback) - ${MAX_SCANNED_REPORTS} GROUP BY source`,
};
const PURGE_OLD_REPORTS: Statement = {
  name: 'feedback_purge_old',
  text: `DELETE FROM feedback WHERE id IN (SELECT id FROM feedback WHERE at <= $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING 1 AS one`,
};
const PURGE_REFERENCES: Statement = {
  name: 'feedback_purge_references',
  text: `DELETE FROM provider_reference WHERE reference IN (
      SELECT reference FROM provider_reference WHERE at <= $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING 1 AS one`,
};
const PURGE_COMPLAINANTS: Statement = {
  name: 'feedback_purge_complainants',
  text: `DELETE FROM complainant WHERE (account_id, recipient) IN (
      SELECT account_id, recipient FROM complainant WHERE at <= $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING 1 AS one`,
};
const PURGE_EVIDENCE: Statement = {
  name: 'feedback_purge_evidence',
  text: `DELETE FROM evidence WHERE (account_id, kind, source) IN (
      SELECT account_id, kind, source FROM evidence WHERE at <= $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING 1 AS one`,
};
const PURGE_EXCESS_REPORTS: Statement = {
  name: 'feedback_purge_stored',
  text: `DELETE FROM feedback WHERE id IN (SELECT id FROM feedback WHERE reason IS NOT NULL AND id <
      (SELECT id FROM feedback WHERE reason IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET $1)
      ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING 1 AS one`,
};

type Operations = FeedbackStore &
  Pick<MessageStore, 'listFeedback' | 'findFeedback'> &
  Pick<RetentionStore, 'purgeFeedback'>;

export function prepareFeedback(database: Database): Operations {
  return {
    recordFeedback: (batch) => database.transaction((transaction) => recordBatch(transaction, batch)),
    recordPackedFeedback: (batch) =>
      database.transaction((transaction) => recordBatch(transaction, unpackReports(batch))),
    applyPendingReports: (now, limit) =>
      database.transaction(async (transaction) => {
        const dueReports = (await transaction.query(LOCK_PENDING, [now, limit])).map((row) => ({
          digest: rows.readText(row, 'digest'),
          receivedAt: rows.readInteger(row, 'received_at'),
          report: parsePendingReport(rows.readText(row, 'report')),
        }));
        const reports = dueReports.map(({ report }) => report);
        const results = reports.length === 0 ? [] : await recordBatch(transaction, reports);
        const messageIds = await findMessageIds(transaction, reports);
        const appliedReports: AppliedReport[] = [];
        const endedDigests: string[] = [];
        const postponedReports: { readonly digest: string; readonly nextDueAt: number }[] = [];
        for (const [index, { digest, receivedAt, report }] of dueReports.entries()) {
          const result = results[index] ?? { kind: 'pending' };
          const messageId = messageIds[index] ?? null;
          const nextDueAt = result.kind === 'pending' ? computeNextPendingAttemptAt(receivedAt, messageId, now) : null;
          if (nextDueAt !== null) postponedReports.push({ digest, nextDueAt });
          else {
            endedDigests.push(digest);
            appliedReports.push({ report, result: result.kind === 'pending' ? { kind: 'unrelated' } : result });
          }
        }
        if (endedDigests.length > 0) await transaction.query(DELETE_PENDING, [endedDigests]);
        if (postponedReports.length > 0) {
          const columns = [
            postponedReports.map(({ digest }) => digest),
            postponedReports.map(({ nextDueAt }) => nextDueAt),
          ];
          await transaction.query(POSTPONE_PENDING, columns);
        }
        const [next] = await transaction.query(SELECT_NEXT_DUE_TIME, []);
        return { reports: appliedReports, nextDueAt: rows.readIntegerOrNull(next ?? { due_at: null }, 'due_at') };
      }),
    async listFeedback(before, limit) {
      return (await database.query(LIST_REPORTS, [before, limit])).map(rows.toUnprocessedReport);
    },
    async findFeedback(id) {
      const [row] = await database.query(SELECT_REPORT, [id]);
      return row === undefined ? null : rows.toRawReport(row);
    },
    async findLastFeedbackAt() {
      const [row] = await database.query(SELECT_LAST_REPORT_TIME, []);
      return rows.readIntegerOrNull(row ?? { at: null }, 'at');
    },
    async listLastFeedback() {
      return (await database.query(SELECT_LAST_BY_SOURCE, [])).map(rows.toLastFeedback);
    },
    async purgeFeedback(before, maxStored, limit) {
      const purgedRowLists = await Promise.all([
        database.query(PURGE_OLD_REPORTS, [before, limit]),
        database.query(PURGE_REFERENCES, [before, limit]),
        database.query(PURGE_COMPLAINANTS, [before, limit]),
        database.query(PURGE_EVIDENCE, [before, limit]),
        maxStored < 1 ? [] : database.query(PURGE_EXCESS_REPORTS, [maxStored - 1, limit]),
      ]);
      return Math.max(...purgedRowLists.map(({ length }) => length));
    },
  };
}
