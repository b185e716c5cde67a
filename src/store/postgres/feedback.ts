/** Applies each feedback report once to its message, or stores the report for the operator. */

import { toComplainant } from '../../model/account.ts';
import type { AppliedReport, FeedbackReport, FeedbackResult } from '../../model/feedback.ts';
import { unpackReports } from '../../model/packed-reports.ts';
import type { FeedbackStore, MessageStore, RetentionStore } from '../contract.ts';
import {
  computeNextPendingAttemptAt,
  computePrematureReportDigest,
  countsTowardReputation,
  decideFeedback,
  decideWithoutMessage,
  formatPendingReport,
  isIdentifiedByHistory,
  MAX_SCANNED_REPORTS,
  needsHistory,
  parsePendingReport,
  type RecordDecision,
  summarizeHistory,
  toPendingReport,
} from '../rules/feedback.ts';
import { ReputationDeltas } from '../rules/reputation.ts';
import * as rows from '../rules/rows.ts';
import { appendEvents, endMessages, SUPPRESS_RECIPIENTS } from './queue.ts';
import { addReputationDelta, recordComplaint } from './reputation.ts';
import { type Database, forceDurableCommit, type Statement, type Transaction } from './session.ts';

const SELECT_DIGEST: Statement = {
  name: 'feedback_select_digest',
  text: 'SELECT 1 AS one FROM feedback WHERE digest = $1',
};
const SELECT_BY_REFERENCE: Statement = {
  name: 'feedback_by_reference',
  text: 'SELECT id FROM provider_reference WHERE reference = $1',
};
// The row in `queue` is locked before the row in `mail_request`. A settlement uses the same order.
const LOCK_QUEUE_ROW: Statement = {
  name: 'feedback_lock_queue_row',
  text: 'SELECT state, attempts FROM queue WHERE id = $1::uuid FOR UPDATE',
};
const LOCK_MESSAGE: Statement = {
  name: 'feedback_lock_message',
  text: `SELECT id, account_id, key_id, state, "to", "from", coalesce(recipient, "to") AS recipient
    FROM mail_request
    WHERE id = $1::uuid FOR UPDATE`,
};
const SELECT_HISTORY: Statement = {
  name: 'feedback_history',
  text: 'SELECT at, verb, by, detail, failure, attempt FROM event WHERE id = $1::uuid ORDER BY n',
};
const INSERT_PENDING: Statement = {
  name: 'feedback_insert_pending',
  text: `INSERT INTO pending_report (digest, received_at, due_at, report) VALUES ($1, $2, $3, $4)
    ON CONFLICT (digest) DO NOTHING`,
};
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
const INSERT_REPORT: Statement = {
  name: 'feedback_insert',
  text: `INSERT INTO feedback (digest, at, source, mail_id, reason, summary, raw) VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (digest) DO NOTHING RETURNING id`,
};
const UPDATE_STATE: Statement = {
  name: 'feedback_update_state',
  text: 'UPDATE mail_request SET state = $1 WHERE id = $2::uuid AND account_id = $3',
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
        const results =
          dueReports.length === 0
            ? []
            : await recordBatch(
                transaction,
                dueReports.map(({ report }) => report),
              );
        const appliedReports: AppliedReport[] = [];
        const endedDigests: string[] = [];
        const postponedReports: { readonly digest: string; readonly nextDueAt: number }[] = [];
        for (const [index, { digest, receivedAt, report }] of dueReports.entries()) {
          const result = results[index] ?? { kind: 'pending' };
          const messageId = result.kind === 'pending' ? await findMessageId(transaction, report.messageRef) : null;
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
        maxStored < 1 ? [] : database.query(PURGE_EXCESS_REPORTS, [maxStored - 1, limit]),
      ]);
      return Math.max(...purgedRowLists.map(({ length }) => length));
    },
  };
}

/** Applies the reports in the transaction. Resolves to their results in the order of the batch. */
async function recordBatch(
  transaction: Transaction,
  batch: readonly FeedbackReport[],
): Promise<readonly FeedbackResult[]> {
  const deltas = new ReputationDeltas();
  const results: FeedbackResult[] = [];
  const pendingEffects: { readonly at: number; readonly effect: Effect }[] = [];
  // Messages, suppressions, complainants and accounts are locked in this order, and the rows of each table in the
  // same order on every node, so that nodes cannot deadlock.
  const ids = await Promise.all(batch.map(({ messageRef }) => findMessageId(transaction, messageRef)));
  const sortedReports = batch.map((report, at) => ({
    report,
    at,
    id: ids[at] ?? null,
    key: `${ids[at] ?? '~'} ${report.digest}`,
  }));
  sortedReports.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0));
  for (const { report, at, id } of sortedReports) {
    const recordResult = await recordReport(transaction, report, id);
    if (recordResult.kind === 'answered') results[at] = recordResult.answer;
    else pendingEffects.push({ at, effect: recordResult.effect });
  }
  const suppressingEffects = await suppressRecipients(
    transaction,
    pendingEffects.map(({ effect }) => effect),
  );
  for (const { at, effect } of pendingEffects)
    results[at] = effect.decision.createResult(suppressingEffects.has(effect));
  await countReputation(
    transaction,
    pendingEffects.map(({ effect }) => effect),
    suppressingEffects,
    deltas,
  );
  for (const [accountId, delta, at] of deltas.listByAccount())
    await addReputationDelta(transaction, accountId, delta, at);
  const lastDeliveries = new Map<string, { readonly report: FeedbackReport; readonly messageId: string }>();
  for (const { at, effect } of pendingEffects) {
    const report = batch[at];
    if (report !== undefined && isIdentifiedByHistory(report))
      lastDeliveries.set(report.source, { report, messageId: effect.decision.id });
  }
  // Of the reports that need no digest, only the last report of each source is stored. The time of the last report is
  // read from this row.
  for (const { report, messageId } of lastDeliveries.values()) await insertReport(transaction, report, messageId, null);
  // The sender of a report deletes its copy of the report even after the result `repeated`. Therefore the stored report
  // must be durable.
  if (results.some(({ kind }) => kind === 'repeated')) await forceDurableCommit(transaction);
  return results;
}

interface Effect {
  readonly decision: RecordDecision;
  /** The canonical recipient. */
  readonly recipient: string;
  readonly at: number;
}

type RecordResult =
  | { readonly kind: 'answered'; readonly answer: FeedbackResult }
  | { readonly kind: 'open'; readonly effect: Effect };

async function recordReport(
  transaction: Transaction,
  report: FeedbackReport,
  id: string | null,
): Promise<RecordResult> {
  const { at } = report;
  const needsDigest = !isIdentifiedByHistory(report);
  if (needsDigest && (await transaction.query(SELECT_DIGEST, [report.digest])).length > 0)
    return createIneffectiveResult({ kind: 'repeated' });
  const [queueRow] = id === null ? [] : await transaction.query(LOCK_QUEUE_ROW, [id]);
  const [row] = id === null ? [] : await transaction.query(LOCK_MESSAGE, [id]);
  const storedMessage = row === undefined ? null : rows.toReportedMessage(row, queueRow);
  const entries =
    storedMessage === null || !needsHistory(report, storedMessage)
      ? []
      : await transaction.query(SELECT_HISTORY, [storedMessage.id]);
  const history = summarizeHistory(entries.map(rows.toHistoryEntry));
  const decision = id === null ? decideWithoutMessage(report) : decideFeedback(report, id, storedMessage, history);
  switch (decision.kind) {
    case 'answer':
      return createIneffectiveResult(decision.answer);
    case 'digest':
      if ((await insertReport(transaction, report, null, null)) === null)
        return createIneffectiveResult({ kind: 'repeated' });
      return createIneffectiveResult(decision.answer);
    case 'pending': {
      const pendingReport = toPendingReport(report);
      if (pendingReport.digest !== report.digest && (await insertReport(transaction, report, null, null)) === null)
        return createIneffectiveResult({ kind: 'repeated' });
      const dueAt = computeNextPendingAttemptAt(at, decision.messageId, at);
      await transaction.query(INSERT_PENDING, [pendingReport.digest, at, dueAt, formatPendingReport(pendingReport)]);
      return createIneffectiveResult({ kind: 'pending' });
    }
    case 'store': {
      const digest = decision.premature ? computePrematureReportDigest(report.digest) : report.digest;
      return createIneffectiveResult(
        await storeReport(transaction, { ...report, digest }, decision.messageId, decision.reason),
      );
    }
    case 'record': {
      if (needsDigest && (await insertReport(transaction, report, decision.id, null)) === null)
        return createIneffectiveResult({ kind: 'repeated' });
      const { accountId, newState } = decision;
      if (newState !== null && queueRow === undefined)
        await transaction.query(UPDATE_STATE, [newState, decision.id, accountId]);
      else if (newState !== null && queueRow !== undefined) {
        const attempts = rows.readInteger(queueRow, 'attempts');
        await endMessages(transaction, [{ id: decision.id, state: newState, endedAt: at, attempts }]);
      }
      const addedEntries = decision.entries.map((entry) => ({
        ...{ ...entry, id: decision.id, accountId },
        state: newState ?? decision.from,
        suppresses: decision.suppress !== null,
      }));
      await appendEvents(transaction, addedEntries);
      return { kind: 'open', effect: { decision, recipient: rows.readText(row ?? {}, 'recipient'), at } };
    }
  }
}

function createIneffectiveResult(answer: FeedbackResult): RecordResult {
  return { kind: 'answered', answer };
}

/**
 * Suppresses the recipients. Resolves to the effects that added an entry to a suppression list: at most one effect per
 * recipient, and no effect if the recipient was already suppressed.
 */
async function suppressRecipients(transaction: Transaction, effects: readonly Effect[]): Promise<ReadonlySet<Effect>> {
  // Only the first report per message is used, so that a retry of the transaction selects the same report as the source
  // of the entry.
  const effectsByMessageId = new Map<string, Effect>();
  for (const effect of effects)
    if (effect.decision.suppress !== null && !effectsByMessageId.has(effect.decision.id))
      effectsByMessageId.set(effect.decision.id, effect);
  if (effectsByMessageId.size === 0) return new Set();
  const suppressionEffects = [...effectsByMessageId.values()];
  const insertedRows = await transaction.query(SUPPRESS_RECIPIENTS, [
    suppressionEffects.map(({ decision: recording }) => recording.id),
    suppressionEffects.map(({ decision: recording }) => recording.suppress),
    suppressionEffects.map(({ at }) => at),
  ]);
  const sources = new Set(insertedRows.map((row) => rows.readText(row, 'source')));
  return new Set(suppressionEffects.filter(({ decision: recording }) => sources.has(recording.id)));
}

/**
 * Adds the effects that count towards the reputation (`countsTowardReputation`) to `deltas`. Complainants are locked in
 * the same order on every node.
 */
async function countReputation(
  transaction: Transaction,
  effects: readonly Effect[],
  suppressingEffects: ReadonlySet<Effect>,
  deltas: ReputationDeltas,
): Promise<void> {
  const countedEffects = effects
    .filter((effect) => countsTowardReputation(effect.decision, suppressingEffects.has(effect)))
    .map((effect) => ({ effect, key: `${effect.decision.accountId} ${toComplainant(effect.recipient)}` }));
  countedEffects.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0));
  for (const { effect } of countedEffects) {
    const { accountId, from, reputationState } = effect.decision;
    const { recipient, at } = effect;
    const isNewEvidence =
      reputationState === 'complained'
        ? await recordComplaint(transaction, accountId, recipient, at)
        : suppressingEffects.has(effect);
    deltas.add(accountId, from, reputationState, isNewEvidence, at);
  }
}

async function findMessageId(
  transaction: Transaction,
  messageRef: FeedbackReport['messageRef'],
): Promise<string | null> {
  if (messageRef === null) return null;
  if ('id' in messageRef) return messageRef.id;
  const [row] = await transaction.query(SELECT_BY_REFERENCE, [messageRef.reference]);
  return row === undefined ? null : rows.readText(row, 'id');
}

async function storeReport(
  transaction: Transaction,
  report: FeedbackReport,
  messageId: string | null,
  reason: string,
): Promise<FeedbackResult> {
  const feedbackId = await insertReport(transaction, report, messageId, reason);
  return feedbackId === null ? { kind: 'repeated' } : { kind: 'stored', feedbackId, reason };
}

/**
 * Stores the report and resolves to its id, or to null if another transaction has stored it. If `reason` is not null,
 * the summary and the bytes of the report are also stored.
 */
async function insertReport(
  transaction: Transaction,
  { digest, at, source, summary, raw }: FeedbackReport,
  messageId: string | null,
  reason: string | null,
): Promise<number | null> {
  const content = reason === null ? [null, null] : [summary, Buffer.from(raw).toString('base64')];
  const [row] = await transaction.query(INSERT_REPORT, [digest, at, source, messageId, reason, ...content]);
  return row === undefined ? null : rows.readInteger(row, 'id');
}
