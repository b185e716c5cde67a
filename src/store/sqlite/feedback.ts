/** Applies each report to its message exactly once. A report that cannot be applied is stored for the operator. */

import type { DatabaseSync } from 'node:sqlite';
import { type FeedbackReport, type FeedbackResult, type PackedReports, unpackReports } from '../../model/feedback.ts';
import { countReports, type ReportEffect } from '../reputation.ts';
import {
  computeNextPendingAttemptAt,
  computePrematureReportDigest,
  decideFeedback,
  decideWithoutMessage,
  type FeedbackDecision,
  formatPendingReport,
  isIdentifiedByHistory,
  maySuppress,
  toPendingReport,
} from '../rules/feedback.ts';
import { toSeq } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { ON_LISTED } from '../suppressions.ts';
import type { Transaction } from '../transaction.ts';
import { prepareAppend } from './history.ts';
import type { Outbox } from './outbox.ts';

const MIN_DELIVERY_ROW_INTERVAL_MS = 1_000;

/** The state of a batch of reports. The effects on accounts and sources are written once, after the reports. */
interface BatchState {
  readonly unchangedMessages: Map<string, rows.Row>;
  readonly effects: ReportEffect[];
  readonly suppressing: Set<ReportEffect>;
  /**
   * By source. At most one report a second that needs no digest has a row, from which the time of the last report is
   * read.
   */
  readonly lastDeliveries: Map<string, { readonly report: FeedbackReport; readonly messageId: string }>;
}

export function prepareFeedback(database: DatabaseSync, transaction: Transaction, outbox: Outbox) {
  const selectDigest = database.prepare('SELECT 1 AS one FROM feedback WHERE digest = ?');
  const selectByReference = database.prepare('SELECT id FROM provider_reference WHERE reference = ?');
  // CROSS JOIN makes SQLite read the list of sequence numbers first.
  const selectMessages = database.prepare(
    `SELECT seq, id, account_id, key_id, state, "to", "from", coalesce(recipient, "to") AS recipient, route, facts, reports
     FROM (SELECT value AS listed_seq FROM json_each(:seqs)) CROSS JOIN mail_request ON seq = listed_seq`,
  );
  const selectSuppression = database.prepare(
    'SELECT 1 AS one FROM suppression WHERE recipient = ? AND account_id = ? AND expires_at IS NULL',
  );
  const addReport = database.prepare(
    'UPDATE mail_request SET reports = CASE WHEN reports IS NULL THEN :report ELSE reports || char(10) || :report END WHERE seq = :seq',
  );
  const countReport = database.prepare(
    'UPDATE mail_request SET further_reports = further_reports + 1, facts = facts | ? WHERE seq = ?',
  );
  const updateState = database.prepare(
    'UPDATE mail_request SET state = ?, due_at = NULL, owner = NULL, handing_over = 0, ended_at = coalesce(ended_at, ?) WHERE seq = ?',
  );
  const appendEntry = prepareAppend(database, outbox);
  const suppressRecipient = database.prepare(
    `INSERT INTO suppression (recipient, account_id, reason, source, at)
     SELECT coalesce(recipient, "to"), account_id, ?, id, ? FROM mail_request WHERE seq = ? ${ON_LISTED}`,
  );
  const insertReport = database.prepare(
    'INSERT INTO feedback (digest, at, source, mail_id, reason, summary, raw) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const insertDelivery = database.prepare(
    `INSERT OR IGNORE INTO feedback (digest, at, source, mail_id)
     SELECT :digest, :at, :source, :messageId WHERE NOT EXISTS (
       SELECT 1 FROM feedback INDEXED BY feedback_at
       WHERE at > :at - ${MIN_DELIVERY_ROW_INTERVAL_MS} AND at < :at + ${MIN_DELIVERY_ROW_INTERVAL_MS}
         AND source = :source AND mail_id IS NOT NULL AND reason IS NULL)`,
  );
  const insertPending = database.prepare(
    `INSERT OR IGNORE INTO pending_report (digest, received_at, due_at, report) VALUES (?, ?, ?, ?)`,
  );

  function storeReport(report: FeedbackReport, messageId: string | null, reason: string): FeedbackResult {
    const { digest, at, source, summary, raw } = report;
    const rawBase64 = Buffer.from(raw).toString('base64');
    const { lastInsertRowid } = insertReport.run(digest, at, source, messageId, reason, summary, rawBase64);
    return { kind: 'stored', feedbackId: Number(lastInsertRowid), reason };
  }

  function storePrematureReport(report: FeedbackReport, messageId: string | null, reason: string): FeedbackResult {
    const digest = computePrematureReportDigest(report.digest);
    return selectDigest.get(digest) === undefined
      ? storeReport({ ...report, digest }, messageId, reason)
      : { kind: 'repeated' };
  }

  function findMessageId({ messageRef: messageReference }: FeedbackReport): string | null {
    if (messageReference === null) return null;
    if ('id' in messageReference) return messageReference.id;
    const row = selectByReference.get(messageReference.reference);
    return row === undefined ? null : rows.readText(row, 'id');
  }

  /**
   * One statement for all messages takes half of the time of two statements for each
   * (docs/decisions/provider-events.md).
   */
  function readMessages(ids: ReadonlySet<string>): Map<string, rows.Row> {
    const messageRows = selectMessages.all({ seqs: JSON.stringify(Array.from(ids, toSeq)) });
    return new Map(messageRows.map((row) => [rows.readText(row, 'id'), row]));
  }

  function decideOnReport(
    report: FeedbackReport,
    { unchangedMessages }: BatchState,
  ): { readonly decision: FeedbackDecision; readonly row: rows.Row } {
    const id = findMessageId(report);
    if (id === null) return { decision: decideWithoutMessage(report), row: {} };
    const row = unchangedMessages.get(id) ?? readMessages(new Set([id])).get(id);
    if (row === undefined) return { decision: decideFeedback(report, id, null, false), row: {} };
    const isSuppressed =
      maySuppress(report) &&
      selectSuppression.get(rows.readText(row, 'recipient'), rows.readInteger(row, 'account_id')) !== undefined;
    return { decision: decideFeedback(report, id, rows.toReportedMessage(row), isSuppressed), row };
  }

  function addToSummary(report: string | null, row: rows.Row, { unchangedMessages }: BatchState): void {
    if (report === null) return;
    addReport.run({ report, seq: rows.readInteger(row, 'seq') });
    unchangedMessages.delete(rows.readText(row, 'id'));
  }

  function applyReport(report: FeedbackReport, batchState: BatchState): FeedbackResult {
    const { digest, at, source } = report;
    const needsDigest = !isIdentifiedByHistory(report);
    if (needsDigest && selectDigest.get(digest) !== undefined) return { kind: 'repeated' };
    const { decision, row } = decideOnReport(report, batchState);
    switch (decision.kind) {
      case 'answer':
        return decision.answer;
      case 'digest':
        insertReport.run(digest, at, source, null, null, null, null);
        return decision.answer;
      case 'pending': {
        const pendingReport = toPendingReport(report);
        if (pendingReport.digest !== digest) insertReport.run(digest, at, source, null, null, null, null);
        insertPending.run(
          pendingReport.digest,
          at,
          computeNextPendingAttemptAt(at, decision.messageId, at),
          formatPendingReport(pendingReport),
        );
        return { kind: 'pending' };
      }
      case 'count':
        if (report.recordsDigestAlways === true) insertReport.run(digest, at, source, null, null, null, null);
        countReport.run(decision.facts, rows.readInteger(row, 'seq'));
        batchState.unchangedMessages.delete(decision.id);
        return { kind: 'repeated' };
      case 'store':
        addToSummary(decision.addedReport, row, batchState);
        return (decision.premature ? storePrematureReport : storeReport)(report, decision.messageId, decision.reason);
      case 'record': {
        const { effects, suppressing, lastDeliveries, unchangedMessages } = batchState;
        const seq = rows.readInteger(row, 'seq');
        unchangedMessages.delete(decision.id);
        addToSummary(decision.addedReport, row, batchState);
        if (needsDigest) insertReport.run(digest, at, source, decision.id, null, null, null);
        else lastDeliveries.set(source, { report, messageId: decision.id });
        if (decision.newState !== null) updateState.run(decision.newState, at, seq);
        const state = decision.newState ?? decision.from;
        for (const entry of decision.entries) appendEntry(seq, entry, state, decision.suppress !== null);
        const { accountId, suppress } = decision;
        const recipient = rows.readText(row, 'recipient');
        const isNewSuppression = suppress !== null && suppressRecipient.run(suppress, at, seq).changes > 0;
        if (suppress !== null && isNewSuppression)
          outbox.recordSuppression('suppression.added', accountId, at, {
            address: recipient,
            reason: suppress,
            source: decision.id,
          });
        const effect = { decision, recipient, at };
        effects.push(effect);
        if (isNewSuppression) suppressing.add(effect);
        return decision.createResult(isNewSuppression);
      }
    }
  }

  async function recordFeedback(batch: readonly FeedbackReport[]): Promise<FeedbackResult[]> {
    const ids = batch.flatMap(({ messageRef }) => (messageRef !== null && 'id' in messageRef ? [messageRef.id] : []));
    const unchangedMessages = readMessages(new Set(ids));
    const batchState: BatchState = {
      unchangedMessages,
      effects: [],
      suppressing: new Set(),
      lastDeliveries: new Map(),
    };
    const results = batch.map((report) => applyReport(report, batchState));
    await countReports(transaction, batchState.effects, batchState.suppressing);
    for (const { report, messageId } of batchState.lastDeliveries.values())
      insertDelivery.run({ digest: report.digest, at: report.at, source: report.source, messageId });
    return results;
  }

  return {
    recordFeedback,
    /** Returns the results as JSON, because copying a text to the caller's thread costs less than copying objects. */
    recordPackedFeedback: async (batch: PackedReports): Promise<string> =>
      JSON.stringify(await recordFeedback(unpackReports(batch))),
  };
}
