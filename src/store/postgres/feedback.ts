/** Records feedback reports, applies pending reports, and lists and purges stored reports. */

import { type AppliedReport, unpackReports } from '../../model/feedback.ts';
import type { FeedbackStore } from '../contract.ts';
import { computeNextPendingAttemptAt, parsePendingReport } from '../rules/feedback.ts';
import * as rows from '../rules/rows.ts';
import { recordBatch } from './report-batch.ts';
import { findMessageIds } from './report-rows.ts';
import type { Database } from './session.ts';

const LOCK_PENDING = `SELECT digest, received_at, report FROM pending_report WHERE due_at <= $1 ORDER BY due_at LIMIT $2
    FOR UPDATE SKIP LOCKED`;
const POSTPONE_PENDING = `UPDATE pending_report p SET due_at = n.due_at
    FROM unnest($1::text[], $2::bigint[]) AS n (digest, due_at) WHERE p.digest = n.digest`;
const DELETE_PENDING = 'DELETE FROM pending_report WHERE digest = ANY($1::text[])';
const SELECT_NEXT_DUE_TIME = 'SELECT min(due_at) AS due_at FROM pending_report';

export function prepareFeedback(
  database: Database,
): Pick<FeedbackStore, 'recordFeedback' | 'recordPackedFeedback' | 'applyPendingReports'> {
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
        const [next] = await transaction.query(SELECT_NEXT_DUE_TIME);
        return { reports: appliedReports, nextDueAt: rows.readIntegerOrNull(next ?? { due_at: null }, 'due_at') };
      }),
  };
}
