/**
 * Claiming: due mail requests leased to one node, fairly over lanes and accounts. The embedded store has one writer, so
 * a few indexed statements in its transaction do what one statement with SKIP LOCKED does on PostgreSQL.
 *
 * Fairness: each lane (first attempts, retries) gets half of what is asked for, and what one leaves the other takes;
 * within a lane, accounts take turns starting after the account served last, so no backlog of one starves another.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Lease, LeasedMail } from '../store.ts';
import { APPEND_EVENT } from './event.ts';
import * as rows from './rows.ts';

/** Accounts served by one claim, and accounts looked at for them; the turn goes on from there. */
const ACCOUNTS_PER_CLAIM = 64;
const ACCOUNTS_LOOKED_AT = 2_000;

const LANES = [0, 1] as const;

export function prepareClaim(database: DatabaseSync): (limit: number, lease: Lease, now: number) => LeasedMail[] {
  const nextAccount = database.prepare(
    `SELECT m.account_id, m.due_at FROM mail_request m INDEXED BY mail_request_due JOIN account a ON a.id = m.account_id
     WHERE m.state = 'queued' AND m.lane = ? AND m.account_id > ? AND a.locked_at IS NULL ORDER BY m.account_id, m.due_at LIMIT 1`,
  );
  const due = database.prepare(
    `SELECT m.seq, m.id, m.account_id, m."to", m.recipient, m."from", m.subject, m.accepted_at, m.attempts, b.message
     FROM mail_request m INDEXED BY mail_request_due JOIN body b ON b.seq = m.seq
     WHERE m.state = 'queued' AND m.lane = ? AND m.account_id = ? AND m.due_at <= ? ORDER BY m.due_at LIMIT ?`,
  );
  const isSuppressed = database.prepare(
    'SELECT 1 AS found FROM suppression WHERE recipient = ? AND account_id IN (?, 0) LIMIT 1',
  );
  const lend = database.prepare(
    `UPDATE mail_request SET state = 'sending', due_at = ?, owner = ?, attempts = attempts + 1, handing_over = 0 WHERE seq = ?`,
  );
  const suppress = database.prepare(
    `UPDATE mail_request SET state = 'suppressed', due_at = NULL, ended_at = ? WHERE seq = ?`,
  );
  const writeEvent = database.prepare(APPEND_EVENT);
  const lastServed = new Map<number, number>();

  /** Accounts with something due, in turn after the one served last. Each step is one seek: it meets the earliest due row of the next account. */
  function accountsInTurn(lane: number, now: number): number[] {
    const start = lastServed.get(lane) ?? 0;
    const found: number[] = [];
    let after = start;
    let wrapped = start === 0;
    for (let looks = 0; looks < ACCOUNTS_LOOKED_AT && found.length < ACCOUNTS_PER_CLAIM; looks += 1) {
      const row = nextAccount.get(lane, after);
      const id = row === undefined ? null : rows.int(row, 'account_id');
      if (row === undefined || id === null || (wrapped && start > 0 && id > start)) {
        if (wrapped) break;
        wrapped = true;
        after = 0;
        continue;
      }
      after = id;
      if (rows.int(row, 'due_at') <= now) found.push(id);
    }
    // Where nothing was due among those looked at, the next claim goes on behind them.
    if (found.length === 0) lastServed.set(lane, after);
    return found;
  }

  function lendOne(row: rows.Row, lease: Lease, now: number): LeasedMail | null {
    const seq = rows.int(row, 'seq');
    const to = rows.text(row, 'to');
    const accountId = rows.int(row, 'account_id');
    if (isSuppressed.get(rows.textOrNull(row, 'recipient') ?? to, accountId) !== undefined) {
      suppress.run(now, seq);
      writeEvent.run(seq, seq, now, 'suppressed', 'store', 'the recipient is on the suppression list', null);
      return null;
    }
    lend.run(lease.until, lease.owner, seq);
    return {
      id: rows.text(row, 'id'),
      accountId,
      to,
      from: rows.text(row, 'from'),
      subject: rows.text(row, 'subject'),
      message: rows.text(row, 'message'),
      acceptedAt: rows.int(row, 'accepted_at'),
      attempts: rows.int(row, 'attempts') + 1,
      lease,
    };
  }

  function claimLane(lane: number, limit: number, lease: Lease, now: number): LeasedMail[] {
    const leased: LeasedMail[] = [];
    let accounts = limit > 0 ? accountsInTurn(lane, now) : [];
    while (accounts.length > 0 && leased.length < limit) {
      const share = Math.max(1, Math.floor((limit - leased.length) / accounts.length));
      const more: number[] = [];
      for (const account of accounts) {
        if (leased.length >= limit) break;
        const wanted = Math.min(share, limit - leased.length);
        const found = due.all(lane, account, now, wanted);
        for (const row of found) {
          const mail = lendOne(row, lease, now);
          if (mail !== null) leased.push(mail);
        }
        if (found.length > 0) lastServed.set(lane, account);
        if (found.length === wanted) more.push(account);
      }
      accounts = more;
    }
    return leased;
  }

  return function claim(limit, lease, now) {
    const [first, retries] = LANES;
    const half = claimLane(first, Math.ceil(limit / 2), lease, now);
    const others = claimLane(retries, limit - half.length, lease, now);
    const rest = claimLane(first, limit - half.length - others.length, lease, now);
    return [...half, ...others, ...rest];
  };
}
