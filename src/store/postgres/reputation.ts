/**
 * Stores the reputation of accounts: counts of messages, hard bounces and complaints in hourly buckets. The transaction
 * that ends a message also counts the message and, if a threshold is reached, locks the account. Each connection slot
 * has its own buckets, so that nodes do not wait for each other. A batch that may change the status of an account locks
 * the row of the account, so that the evaluated sum is exact.
 */
import { type ReputationDelta, toComplainant, type WindowCounts } from '../../model/account.ts';
import { buildAccountData } from '../../model/webhook-payload.ts';
import {
  evaluateReputation,
  getComplaintWindowStart,
  getLastExpiredHour,
  getLastHourBeforeWindow,
  needsEvaluation,
  toHourSinceEpoch,
} from '../rules/reputation.ts';
import * as rows from '../rules/rows.ts';
import { incrementRevision } from './directory.ts';
import { recordResourceEvent } from './outbox.ts';
import type { Session, Statement, Transaction } from './session.ts';

const ADD_COUNTS: Statement = {
  name: 'reputation_add',
  text: `INSERT INTO reputation AS r (account_id, hour, slot, emails, bounces, complaints) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (account_id, hour, slot) DO UPDATE SET emails = r.emails + excluded.emails,
      bounces = r.bounces + excluded.bounces, complaints = r.complaints + excluded.complaints`,
};
const SUM_ACCOUNT: Statement = {
  name: 'reputation_sum',
  text: `SELECT coalesce(sum(emails), 0)::bigint AS emails, coalesce(sum(bounces), 0)::bigint AS bounces,
      coalesce(sum(complaints), 0)::bigint AS complaints
    FROM reputation WHERE account_id = $1 AND hour > $2`,
};
const SUM_ALL_ACCOUNTS: Statement = {
  name: 'reputation_sums',
  text: `SELECT account_id, sum(emails)::bigint AS emails, sum(bounces)::bigint AS bounces, sum(complaints)::bigint AS complaints
    FROM reputation WHERE hour > $1 GROUP BY account_id`,
};
const DELETE_OLD_COUNTS: Statement = {
  name: 'reputation_delete_old',
  text: 'DELETE FROM reputation WHERE account_id = $1 AND hour <= $2',
};
const DELETE_ALL_COUNTS: Statement = {
  name: 'reputation_delete',
  text: 'DELETE FROM reputation WHERE account_id = $1',
};
const RECORD_COMPLAINT: Statement = {
  name: 'reputation_record_complaint',
  text: `INSERT INTO complainant AS c (account_id, recipient, at) VALUES ($1, $2, $3)
    ON CONFLICT (account_id, recipient) DO UPDATE SET at = excluded.at WHERE c.at <= $4 RETURNING 1 AS one`,
};
const READ_STATUS: Statement = {
  name: 'reputation_status',
  text: 'SELECT locked_at, warning FROM account WHERE id = $1',
};
const LOCK_ACCOUNT_ROW: Statement = {
  name: 'reputation_lock_account',
  text: 'SELECT name, locked_at, bounce_rate, complaint_rate, warning FROM account WHERE id = $1 FOR NO KEY UPDATE',
};
const MARK_ACCOUNT_LOCKED: Statement = {
  name: 'reputation_write_lock',
  text: 'UPDATE account SET locked_reason = $1, locked_at = $2, warning = NULL, revision = $3 WHERE id = $4',
};
const WRITE_WARNING: Statement = {
  name: 'reputation_write_warning',
  text: 'UPDATE account SET warning = $1, revision = $2 WHERE id = $3',
};

/** Returns the sums of the window that ends at `now`. */
export async function readWindow(session: Session, accountId: number, now: number): Promise<WindowCounts> {
  const [row = {}] = await session.query(SUM_ACCOUNT, [accountId, getLastHourBeforeWindow(now)]);
  return rows.toWindowCounts(row);
}

/** Returns the sums of the window that ends at `now` for every account with counts in the window, by account id. */
export async function readAllWindows(session: Session, now: number): Promise<Map<number, WindowCounts>> {
  const sumRows = await session.query(SUM_ALL_ACCOUNTS, [getLastHourBeforeWindow(now)]);
  return new Map(sumRows.map((row) => [rows.readInteger(row, 'account_id'), rows.toWindowCounts(row)]));
}

/** Adds the counts of a batch. Locks the account or sets its warning if it reaches a threshold. */
export async function addReputationDelta(
  transaction: Transaction,
  accountId: number,
  delta: ReputationDelta,
  now: number,
): Promise<void> {
  const { emails, bounces, complaints } = delta;
  const [, [status]] = await Promise.all([
    transaction.query(ADD_COUNTS, [accountId, toHourSinceEpoch(now), transaction.slot, emails, bounces, complaints]),
    transaction.query(READ_STATUS, [accountId]),
  ]);
  if (status === undefined || status.locked_at !== null || !needsEvaluation(delta, status.warning !== null)) return;
  const [row] = await transaction.query(LOCK_ACCOUNT_ROW, [accountId]);
  if (row === undefined || rows.readIntegerOrNull(row, 'locked_at') !== null) return;
  await transaction.query(DELETE_OLD_COUNTS, [accountId, getLastExpiredHour(now)]);
  const window = await readWindow(transaction, accountId, now);
  const thresholds = rows.toThresholds(row);
  const decision = evaluateReputation(window, thresholds, row.warning !== null);
  const recordAccountEvent = (type: 'account.locked' | 'account.warned', reason: string) =>
    recordResourceEvent(
      transaction,
      type,
      accountId,
      now,
      buildAccountData(rows.readText(row, 'name'), reason, window, thresholds),
    );
  switch (decision.kind) {
    case 'lock':
      await transaction.query(MARK_ACCOUNT_LOCKED, [
        decision.reason,
        now,
        await incrementRevision(transaction),
        accountId,
      ]);
      await recordAccountEvent('account.locked', decision.reason);
      return;
    case 'warn':
      await transaction.query(WRITE_WARNING, [decision.warning, await incrementRevision(transaction), accountId]);
      if (decision.warning !== null) await recordAccountEvent('account.warned', decision.warning);
      return;
    case 'none':
      return;
  }
}

/**
 * Records a complaint. Resolves to true if the canonical recipient has no earlier complaint in the window. Only the
 * first complaint counts.
 */
export async function recordComplaint(
  transaction: Transaction,
  accountId: number,
  recipient: string,
  at: number,
): Promise<boolean> {
  const windowStart = getComplaintWindowStart(at);
  return (await transaction.query(RECORD_COMPLAINT, [accountId, toComplainant(recipient), at, windowStart])).length > 0;
}

/**
 * Deletes the counts of an account, so that its window restarts. The complainants are kept, so that a further complaint
 * by one of them within the window is not counted.
 */
export async function resetReputation(session: Session, accountId: number): Promise<void> {
  await session.query(DELETE_ALL_COUNTS, [accountId]);
}
