/**
 * Reputation of accounts: emails, hard bounces and complaints in hourly buckets, counted in the transaction that ends the
 * mail request, and the lock that follows from them in the same transaction.
 */
import type { DatabaseSync } from 'node:sqlite';
import {
  BUCKET_MS,
  complainantOf,
  DEFAULT_THRESHOLDS,
  standing,
  type Tally,
  WINDOW_HOURS,
  type WindowCounts,
} from '../../model/reputation.ts';
import * as rows from './rows.ts';

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
  const sums = database.prepare(
    `SELECT account_id, sum(emails) AS emails, sum(bounces) AS bounces, sum(complaints) AS complaints
     FROM reputation WHERE hour > ? GROUP BY account_id`,
  );
  const old = database.prepare('DELETE FROM reputation WHERE account_id = ? AND hour <= ?');
  const clear = database.prepare('DELETE FROM reputation WHERE account_id = ?');
  const complain = database.prepare(
    `INSERT INTO complainant (account_id, recipient, at) VALUES (:account, :recipient, :at)
     ON CONFLICT (account_id, recipient) DO UPDATE SET at = excluded.at WHERE at <= :before`,
  );
  const account = database.prepare('SELECT locked_at, bounce_rate, complaint_rate, warning FROM account WHERE id = ?');
  const lock = database.prepare(
    'UPDATE account SET locked_reason = ?, locked_at = ?, warning = NULL, revision = ? WHERE id = ?',
  );
  const warn = database.prepare('UPDATE account SET warning = ?, revision = ? WHERE id = ?');

  function windowOf(accountId: number, now: number): WindowCounts {
    return countsOf(sum.get(accountId, beginOf(now)) ?? {});
  }

  function windows(now: number): Map<number, WindowCounts> {
    return new Map(sums.all(beginOf(now)).map((row) => [rows.int(row, 'account_id'), countsOf(row)]));
  }

  /** Adds a tally and locks or warns where it makes the account reach a threshold. */
  function count(accountId: number, { emails, bounces, complaints }: Tally, now: number): void {
    const hour = Math.floor(now / BUCKET_MS);
    add.run(accountId, hour, emails, bounces, complaints);
    const row = account.get(accountId);
    if (row === undefined || rows.intOrNull(row, 'locked_at') !== null) return;
    // Good mail alone cannot lock, but it can end a warning.
    if (bounces === 0 && complaints === 0 && row.warning === null) return;
    old.run(accountId, hour - 2 * WINDOW_HOURS);
    const thresholds = {
      bounceRate: rows.intOrNull(row, 'bounce_rate') ?? DEFAULT_THRESHOLDS.bounceRate,
      complaintRate: rows.intOrNull(row, 'complaint_rate') ?? DEFAULT_THRESHOLDS.complaintRate,
    };
    const verdict = standing(windowOf(accountId, now), thresholds);
    if (verdict.kind === 'lock') lock.run(verdict.reason, now, nextRevision(), accountId);

    const warning = verdict.kind === 'warning' ? verdict.reason : null;
    const before = rows.textOrNull(row, 'warning');
    // The first warning is kept as it was: one line for the operator, not one for each further bounce.
    if (verdict.kind !== 'lock' && (warning === null) !== (before === null))
      warn.run(warning, nextRevision(), accountId);
  }

  /** True if this is the first complaint of the canonical recipient in the window. Only the first complaint counts. */
  function complained(accountId: number, recipient: string, at: number): boolean {
    const before = at - WINDOW_HOURS * BUCKET_MS;
    return complain.run({ account: accountId, recipient: complainantOf(recipient), at, before }).changes > 0;
  }

  /** The window begins anew: what an unlock forgives. Who has complained in it still counts once. */
  function forgive(accountId: number): void {
    clear.run(accountId);
  }

  return { count, complained, windowOf, windows, forgive };
}

/** The hour before the window that ends at `now`. */
function beginOf(now: number): number {
  return Math.floor(now / BUCKET_MS) - WINDOW_HOURS;
}

function countsOf(row: rows.Row): WindowCounts {
  return {
    emails: rows.int(row, 'emails'),
    bounces: rows.int(row, 'bounces'),
    complaints: rows.int(row, 'complaints'),
  };
}
