/** Applies each feedback report once to its message, or stores the report for the operator. */

import { toComplainant } from '../../model/account.ts';
import type { FeedbackReport, FeedbackResult } from '../../model/feedback.ts';
import type { FeedbackStore, MessageStore, RetentionStore } from '../contract.ts';
import {
  countsTowardReputation,
  decideFeedback,
  decideWithoutMessage,
  prematureReportDigest,
  type RecordDecision,
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
// The queue row is locked before the message, as in a settlement.
const LOCK_QUEUE_ROW: Statement = {
  name: 'feedback_lock_queue_row',
  text: 'SELECT state, attempts FROM queue WHERE id = $1::uuid FOR UPDATE',
};
const LOCK_MESSAGE: Statement = {
  name: 'feedback_lock_message',
  text: `SELECT id, account_id, key_id, state, "to", coalesce(recipient, "to") AS recipient FROM mail_request
    WHERE id = $1::uuid FOR UPDATE`,
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
const SELECT_LAST: Statement = { name: 'feedback_last', text: 'SELECT max(at) AS at FROM feedback' };
const PURGE_OLD: Statement = {
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
const PURGE_STORED: Statement = {
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
    recordFeedback: (batch) =>
      database.transaction(async (transaction) => {
        const deltas = new ReputationDeltas();
        const answers: FeedbackResult[] = [];
        const pendingEffects: { readonly at: number; readonly effect: Effect }[] = [];
        // Messages, suppressions, complainants and accounts are locked in this order, and the rows of each table in the
        // same order on every node, so that nodes cannot deadlock.
        const ids = await Promise.all(batch.map(({ messageRef }) => findMessageId(transaction, messageRef)));
        const sorted = batch.map((report, at) => ({
          report,
          at,
          id: ids[at] ?? null,
          key: `${ids[at] ?? '~'} ${report.digest}`,
        }));
        sorted.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0));
        for (const { report, at, id } of sorted) {
          const recorded = await recordReport(transaction, report, id);
          if (recorded.kind === 'answered') answers[at] = recorded.answer;
          else pendingEffects.push({ at, effect: recorded.effect });
        }
        const suppressed = await suppress(
          transaction,
          pendingEffects.map(({ effect }) => effect),
        );
        for (const { at, effect } of pendingEffects) answers[at] = effect.decision.answer(suppressed.has(effect));
        await countReputation(
          transaction,
          pendingEffects.map(({ effect }) => effect),
          suppressed,
          deltas,
        );
        for (const [accountId, delta, at] of deltas.listByAccount())
          await addReputationDelta(transaction, accountId, delta, at);
        // The sender of a report deletes its copy of the report even after the result `repeated`. Therefore the earlier
        // report must be stored durably.
        if (answers.some(({ kind }) => kind === 'repeated')) await forceDurableCommit(transaction);
        return answers;
      }),
    async listFeedback(before, limit) {
      return (await database.query(LIST_REPORTS, [before, limit])).map(rows.toUnprocessedReport);
    },
    async findFeedback(id) {
      const [row] = await database.query(SELECT_REPORT, [id]);
      return row === undefined ? null : rows.toRawReport(row);
    },
    async lastFeedbackAt() {
      const [row] = await database.query(SELECT_LAST, []);
      return rows.readIntegerOrNull(row ?? { at: null }, 'at');
    },
    async purgeFeedback(before, maxStored, limit) {
      const purged = await Promise.all([
        database.query(PURGE_OLD, [before, limit]),
        database.query(PURGE_REFERENCES, [before, limit]),
        database.query(PURGE_COMPLAINANTS, [before, limit]),
        maxStored < 1 ? [] : database.query(PURGE_STORED, [maxStored - 1, limit]),
      ]);
      return Math.max(...purged.map(({ length }) => length));
    },
  };
}

/** A decision. Its effects on suppression and reputation are applied after all messages of the batch are locked. */
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
  if ((await transaction.query(SELECT_DIGEST, [report.digest])).length > 0) return answered({ kind: 'repeated' });
  const [queueRow] = id === null ? [] : await transaction.query(LOCK_QUEUE_ROW, [id]);
  const [row] = id === null ? [] : await transaction.query(LOCK_MESSAGE, [id]);
  const found = row === undefined ? null : rows.toReportedMessage(row, queueRow);
  const decision = id === null ? decideWithoutMessage(report) : decideFeedback(report, id, found);
  switch (decision.kind) {
    case 'answer':
      return answered(decision.answer);
    case 'store': {
      const digest = decision.premature ? prematureReportDigest(report.digest) : report.digest;
      return answered(await maxStored(transaction, { ...report, digest }, decision.messageId, decision.reason));
    }
    case 'record': {
      if ((await insertReport(transaction, report, decision.id, null)) === null) return answered({ kind: 'repeated' });
      const { accountId, newState, entry } = decision;
      if (newState !== null && queueRow === undefined)
        await transaction.query(UPDATE_STATE, [newState, decision.id, accountId]);
      else if (newState !== null && queueRow !== undefined) {
        const attempts = rows.readInteger(queueRow, 'attempts');
        await endMessages(transaction, [{ id: decision.id, state: newState, endedAt: at, attempts }]);
      }
      await appendEvents(transaction, [{ ...entry, id: decision.id, accountId }]);
      return { kind: 'open', effect: { decision, recipient: rows.readText(row ?? {}, 'recipient'), at } };
    }
  }
}

function answered(answer: FeedbackResult): RecordResult {
  return { kind: 'answered', answer };
}

/**
 * Suppresses the recipients. Resolves to the effects that added an entry to a suppression list: at most one effect per
 * recipient, and no effect if the recipient was already suppressed.
 */
async function suppress(transaction: Transaction, effects: readonly Effect[]): Promise<ReadonlySet<Effect>> {
  // Only the first report per message is used, so that a retry selects the same report as the source of the entry.
  const byMessage = new Map<string, Effect>();
  for (const effect of effects)
    if (effect.decision.suppress !== null && !byMessage.has(effect.decision.id))
      byMessage.set(effect.decision.id, effect);
  if (byMessage.size === 0) return new Set();
  const requested = [...byMessage.values()];
  const inserted = await transaction.query(SUPPRESS_RECIPIENTS, [
    requested.map(({ decision: recording }) => recording.id),
    requested.map(({ decision: recording }) => recording.suppress),
    requested.map(({ at }) => at),
  ]);
  const sources = new Set(inserted.map((row) => rows.readText(row, 'source')));
  return new Set(requested.filter(({ decision: recording }) => sources.has(recording.id)));
}

/**
 * Adds the effects that count towards the reputation (`countsTowardReputation`) to `deltas`. Complainants are locked in
 * the same order on every node.
 */
async function countReputation(
  transaction: Transaction,
  effects: readonly Effect[],
  suppressed: ReadonlySet<Effect>,
  deltas: ReputationDeltas,
): Promise<void> {
  const counted = effects
    .filter((effect) => countsTowardReputation(effect.decision, suppressed.has(effect)))
    .map((effect) => ({ effect, key: `${effect.decision.accountId} ${toComplainant(effect.recipient)}` }));
  counted.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0));
  for (const { effect } of counted) {
    const { accountId, from, countedAs } = effect.decision;
    const { recipient, at } = effect;
    const isNewEvidence =
      countedAs === 'complained'
        ? await recordComplaint(transaction, accountId, recipient, at)
        : suppressed.has(effect);
    deltas.add(accountId, from, countedAs, isNewEvidence, at);
  }
}

async function findMessageId(transaction: Transaction, about: FeedbackReport['messageRef']): Promise<string | null> {
  if (about === null) return null;
  if ('id' in about) return about.id;
  const [row] = await transaction.query(SELECT_BY_REFERENCE, [about.reference]);
  return row === undefined ? null : rows.readText(row, 'id');
}

async function maxStored(
  transaction: Transaction,
  report: FeedbackReport,
  messageId: string | null,
  reason: string,
): Promise<FeedbackResult> {
  const feedbackId = await insertReport(transaction, report, messageId, reason);
  return feedbackId === null ? { kind: 'repeated' } : { kind: 'stored', feedbackId, reason };
}

/**
 * Stores the report and resolves to its id, or to null if another transaction has stored it. With a reason, the summary
 * and the bytes of the report are stored as well.
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
