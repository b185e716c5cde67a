/**
 * Reputation of accounts: emails, hard bounces and complaints in hourly buckets, counted in the transaction that ends the
 * mail request, and the lock that follows from them in the same transaction.
 */
import type { DatabaseSync } from 'node:sqlite';
import { BUCKET_MS, DEFAULT_THRESHOLDS, standing, type WindowCounts, WINDOW_HOURS } from '../../record/reputation.ts';
import * as rows from './rows.ts';

/** What ended mail requests add to an account's reputation. */
export interface Tally {
  emails: number;
  bounces: number;
  complaints: number;
}

/** `nextRevision` is the directory's counter: every node learns of a lock within a second. */
export function prepareReputation(database: DatabaseSync, nextRevision: () => number) {
  const add = database.prepare(
    `INSERT INTO reputation (account_id, hour, emails, bounces, complaints) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (account_id, hour) DO UPDATE SET emails = emails + excluded.emails, bounces = bounces + excluded.bounces,
       complaints = complaints + excluded.complaints`,
  );
  const sum = database.prepare(
    `SELECT coalesce(sum(emails), 0) AS emails, coalesce(sum(bounces), 0) AS bounces, coalesce(sum(complaints), 0) AS complaints
     FROM reputation WHERE account_id = ? AND hour > ?`,
  );
  const old = database.prepare('DELETE FROM reputation WHERE account_id = ? AND hour <= ?');
  const account = database.prepare(
    'SELECT locked_at, bounce_rate, complaint_rate, warning, reputation_from FROM account WHERE id = ?',
  );
  const lock = database.prepare('UPDATE account SET locked_reason = ?, locked_at = ?, warning = NULL, revision = ? WHERE id = ?');
  const warn = database.prepare('UPDATE account SET warning = ?, revision = ? WHERE id = ?');

  function windowOf(accountId: number, now: number, from: number): WindowCounts {
    const row = sum.get(accountId, Math.max(Math.floor(now / BUCKET_MS) - WINDOW_HOURS, from)) ?? {};
    return { emails: rows.int(row, 'emails'), bounces: rows.int(row, 'bounces'), complaints: rows.int(row, 'complaints') };
  }

  /** Adds a tally and locks or warns where it makes the account reach a threshold. */
  function count(accountId: number, { emails, bounces, complaints }: Tally, now: number): void {
    const hour = Math.floor(now / BUCKET_MS);
    add.run(accountId, hour, emails, bounces, complaints);
    if (bounces === 0 && complaints === 0) return;
    const row = account.get(accountId);
    if (row === undefined || rows.intOrNull(row, 'locked_at') !== null) return;
    old.run(accountId, hour - 2 * WINDOW_HOURS);
    const thresholds = {
      bounceRate: rows.numberOrNull(row, 'bounce_rate') ?? DEFAULT_THRESHOLDS.bounceRate,
      complaintRate: rows.numberOrNull(row, 'complaint_rate') ?? DEFAULT_THRESHOLDS.complaintRate,
    };
    const verdict = standing(windowOf(accountId, now, rows.int(row, 'reputation_from')), thresholds);
    if (verdict.kind === 'lock') lock.run(verdict.reason, now, nextRevision(), accountId);
    else if (verdict.kind === 'warning' && rows.textOrNull(row, 'warning') === null) warn.run(verdict.reason, nextRevision(), accountId);
  }

  return { count, windowOf };
}
