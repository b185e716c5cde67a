/**
 * Stores the reputation of accounts: the numbers of messages, hard bounces and complaints in hourly buckets. The
 * transaction that ends a message also counts the message, and locks the account if the account reaches a threshold.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { ReputationDelta, WindowCounts } from '../../model/account.ts';
import { type EvidenceKind, toComplainant, toEvidenceSource } from '../../model/address.ts';
import { buildAccountData } from '../../model/webhook-payload.ts';
import {
  evaluateReputation,
  getEvidenceWindowStart,
  getLastExpiredHour,
  getLastHourBeforeWindow,
  needsEvaluation,
  toHourSinceEpoch,
} from '../rules/reputation.ts';
import * as rows from '../rules/rows.ts';
import type { Outbox } from './outbox.ts';

export function prepareReputation(database: DatabaseSync, outbox: Outbox) {
  const updateRevision = database.prepare('UPDATE installation SET revision = revision + 1 RETURNING revision');
  const incrementRevision = () => rows.readInteger(updateRevision.get() ?? {}, 'revision');
  const addCounts = database.prepare(
    `INSERT INTO reputation (account_id, hour, emails, bounces, complaints, proven_bounces, proven_complaints)
     VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (account_id, hour) DO UPDATE SET emails = emails + excluded.emails, bounces = bounces + excluded.bounces,
       complaints = complaints + excluded.complaints, proven_bounces = proven_bounces + excluded.proven_bounces,
       proven_complaints = proven_complaints + excluded.proven_complaints`,
  );
  const sumAccount = database.prepare(
    `SELECT coalesce(sum(emails), 0) AS emails, coalesce(sum(bounces), 0) AS bounces, coalesce(sum(complaints), 0) AS complaints,
       coalesce(sum(proven_bounces), 0) AS proven_bounces, coalesce(sum(proven_complaints), 0) AS proven_complaints
     FROM reputation WHERE account_id = ? AND hour > ?`,
  );
  const deleteExpired = database.prepare('DELETE FROM reputation WHERE account_id = ? AND hour <= ?');
  const insertComplainant = database.prepare(
    `INSERT INTO complainant (account_id, recipient, at) VALUES (:account, :recipient, :at)
     ON CONFLICT (account_id, recipient) DO UPDATE SET at = excluded.at WHERE at <= :before`,
  );
  const insertEvidence = database.prepare(
    `INSERT INTO evidence (account_id, kind, source, at) VALUES (:account, :kind, :source, :at)
     ON CONFLICT (account_id, kind, source) DO UPDATE SET at = excluded.at WHERE at <= :before`,
  );
  const selectAccount = database.prepare(
    'SELECT name, locked_at, bounce_rate, complaint_rate, on_reputation, warning FROM account WHERE id = ?',
  );
  const lockAccount = database.prepare(
    'UPDATE account SET locked_reason = ?, locked_at = ?, warning = NULL, revision = ? WHERE id = ?',
  );
  const updateWarning = database.prepare('UPDATE account SET warning = ?, revision = ? WHERE id = ?');

  function readWindow(accountId: number, now: number): WindowCounts {
    return rows.toWindowCounts(sumAccount.get(accountId, getLastHourBeforeWindow(now)) ?? {});
  }

  /** Adds counts to the current hour. Locks the account or sets its warning if the account reaches a threshold. */
  function addToReputation(accountId: number, delta: ReputationDelta, now: number): void {
    const { emails, bounces, complaints, provenBounces, provenComplaints } = delta;
    addCounts.run(accountId, toHourSinceEpoch(now), emails, bounces, complaints, provenBounces, provenComplaints);
    const row = selectAccount.get(accountId);
    if (row === undefined || rows.readIntegerOrNull(row, 'locked_at') !== null) return;
    const isWarned = row.warning !== null;
    if (!needsEvaluation(delta, isWarned)) return;
    deleteExpired.run(accountId, getLastExpiredHour(now));
    const window = readWindow(accountId, now);
    const thresholds = rows.toThresholds(row);
    const evaluation = evaluateReputation(window, thresholds, rows.readOnReputation(row), isWarned);
    const recordAccountEvent = (type: 'account.locked' | 'account.warned', reason: string) =>
      outbox.recordResource(type, accountId, now, () =>
        buildAccountData(rows.readText(row, 'name'), reason, window, thresholds),
      );
    switch (evaluation.kind) {
      case 'lock':
        lockAccount.run(evaluation.reason, now, incrementRevision(), accountId);
        recordAccountEvent('account.locked', evaluation.reason);
        return;
      case 'warn':
        updateWarning.run(evaluation.warning, incrementRevision(), accountId);
        if (evaluation.warning !== null) recordAccountEvent('account.warned', evaluation.warning);
        return;
      case 'none':
        return;
    }
  }

  /**
   * Records a complaint. Returns true if the canonical recipient has no earlier complaint in the window. Only the first
   * complaint counts.
   */
  function recordComplaint(accountId: number, recipient: string, at: number): boolean {
    const windowStart = getEvidenceWindowStart(at);
    return (
      insertComplainant.run({ account: accountId, recipient: toComplainant(recipient), at, before: windowStart })
        .changes > 0
    );
  }

  /** Records evidence. Returns true if its source has no earlier evidence of this kind in the window. */
  function recordEvidence(accountId: number, kind: EvidenceKind, recipient: string, at: number): boolean {
    const [source, before] = [toEvidenceSource(recipient), getEvidenceWindowStart(at)];
    return insertEvidence.run({ account: accountId, kind, source, at, before }).changes > 0;
  }

  return { addToReputation, recordComplaint, recordEvidence };
}
