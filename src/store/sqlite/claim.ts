/**
 * The claim of due messages, where one writer needs no SKIP LOCKED. Claims begin with first attempts and retries in
 * turn (claim-lanes.ts). Within a lane accounts take turns, a few rows at a
 * time, so that no backlog delays another account.
 */

import type { DatabaseSync } from 'node:sqlite';
import { mayReceiveFrom } from '../../model/account.ts';
import { createSuppressedEntry, type Lease, type LeasedMessage, NOT_ALLOWED } from '../../model/message.ts';
import { claimLanes, isExhausted, type RemainingLimits } from '../claim-lanes.ts';
import type { ClaimedMessages, ClaimLimits } from '../contract.ts';
import { getRowsPerTurn, requireTransition } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { prepareSuppressionCheck } from './accept.ts';
import { prepareAppend } from './history.ts';
import type { Outbox } from './outbox.ts';

interface ClaimResult {
  readonly messages: LeasedMessage[];
  readonly suppressed: Pick<LeasedMessage, 'id' | 'accountId' | 'to'>[];
  readonly isSuppressed: ReturnType<ReturnType<typeof prepareSuppressionCheck>>;
  /** Of the accounts of this claim. */
  readonly onlyTo: Map<number, readonly string[] | null>;
}

export function prepareClaim(
  database: DatabaseSync,
  outbox: Outbox,
): (limits: ClaimLimits, lease: Lease, now: number) => Promise<ClaimedMessages> {
  const SENDING_STATE = requireTransition('queued', 'sending', 'queue');
  const SUPPRESSED_STATE = requireTransition('queued', 'suppressed', 'queue');
  const selectDue = database.prepare(
    `SELECT m.seq, m.id, m.account_id, m.key_id, m."to", m.recipient, m."from", m.subject, m.accepted_at, m.expires_at,
       m.sender, m.held_ms, m.attempts, m.route, b.message,
       octet_length(b.message) AS bytes
     FROM mail_request m INDEXED BY mail_request_due JOIN body b ON b.seq = m.seq
     WHERE m.state = 'queued' AND m.lane = ? AND m.account_id = ? AND m.due_at <= ? ORDER BY m.due_at LIMIT ?`,
  );
  const openSuppressionCheck = prepareSuppressionCheck(database);
  const selectOnlyTo = database.prepare('SELECT only_to FROM account WHERE id = ?');
  const leaseRow = database.prepare(
    `UPDATE mail_request SET state = '${SENDING_STATE}', due_at = ?, owner = ?, attempts = attempts + 1, handing_over = 0 WHERE seq = ?`,
  );
  const suppressMessage = database.prepare(
    `UPDATE mail_request SET state = '${SUPPRESSED_STATE}', due_at = NULL, ended_at = ? WHERE seq = ?`,
  );
  const appendEntry = prepareAppend(database, outbox);
  const createLane = (lane: number) => ({ lane, rotation: createAccountRotation(database, lane) });
  let lanes = [createLane(0), createLane(1)] as const;

  function findSuppression(
    row: rows.Row,
    recipient: string,
    accountId: number,
    now: number,
    { isSuppressed, onlyTo: known }: ClaimResult,
  ): string | null {
    let onlyTo = known.get(accountId);
    if (onlyTo === undefined) {
      onlyTo = rows.readOnlyTo(selectOnlyTo.get(accountId) ?? { only_to: null });
      known.set(accountId, onlyTo);
    }
    if (!mayReceiveFrom({ onlyTo }, recipient, rows.readInteger(row, 'key_id'))) return NOT_ALLOWED;
    return isSuppressed(accountId, recipient, now) ? 'store' : null;
  }

  function leaseMessage(row: rows.Row, lease: Lease, now: number, claimedMessages: ClaimResult): void {
    const seq = rows.readInteger(row, 'seq');
    const id = rows.readText(row, 'id');
    const to = rows.readText(row, 'to');
    const accountId = rows.readInteger(row, 'account_id');
    const suppressedBy = findSuppression(
      row,
      rows.readTextOrNull(row, 'recipient') ?? to,
      accountId,
      now,
      claimedMessages,
    );
    if (suppressedBy !== null) {
      suppressMessage.run(now, seq);
      appendEntry(seq, createSuppressedEntry(now, suppressedBy), SUPPRESSED_STATE);
      claimedMessages.suppressed.push({ id, accountId, to });
      return;
    }
    leaseRow.run(lease.until, lease.owner, seq);
    claimedMessages.messages.push(rows.toLeasedMessage(row, lease, rows.readInteger(row, 'attempts') + 1));
  }

  /** In order of due times. `isFull`: a row did not fit. */
  function selectFitting(lane: number, account: number, rowLimit: number, remaining: RemainingLimits, now: number) {
    const fittingRows: rows.Row[] = [];
    // Rows are read one at a time, so that at most one message beyond the limit is in memory.
    for (const row of selectDue.iterate(lane, account, now, rowLimit)) {
      const bytes = rows.readInteger(row, 'bytes');
      if (bytes > remaining.bytes && !remaining.isNothingLeased) return { found: fittingRows, isFull: true };
      remaining.isNothingLeased = false;
      remaining.bytes -= bytes;
      remaining.messageCount -= 1;
      fittingRows.push(row);
    }
    return { found: fittingRows, isFull: false };
  }

  /**
   * First up to `rowsPerAccount` rows of each account, then equal shares of the rest. Returns true if more messages may
   * be due.
   */
  function claimLane(
    { lane, rotation }: { readonly lane: number; readonly rotation: AccountRotation },
    rowsPerAccount: number,
    remaining: RemainingLimits,
    lease: Lease,
    now: number,
    claimedMessages: ClaimResult,
  ): boolean {
    if (isExhausted(remaining)) return true;
    let accountsWithMore: number[] = [];
    let lastServedAccount: number | null = null;
    rotation.beginRound();
    for (let account = rotation.next(now); account !== null; account = rotation.next(now)) {
      const rowLimit = Math.min(rowsPerAccount, remaining.messageCount);
      const { found, isFull } = selectFitting(lane, account, rowLimit, remaining, now);
      for (const row of found) leaseMessage(row, lease, now, claimedMessages);
      if (isFull) {
        // If a row of this account was leased, the next round begins after this account; otherwise it begins with this
        // account.
        rotation.resumeAfter(found.length > 0 ? account : (lastServedAccount ?? account - 1));
        return true;
      }
      if (remaining.messageCount === 0) return true;
      lastServedAccount = account;
      if (found.length === rowLimit) accountsWithMore.push(account);
    }
    // The next claim first examines the accounts that this round has not examined.
    if (rotation.hasMore) return true;
    while (accountsWithMore.length > 0) {
      const equalShare = Math.max(1, Math.floor(remaining.messageCount / accountsWithMore.length));
      const nextAccounts: number[] = [];
      for (const account of accountsWithMore) {
        const rowLimit = Math.min(equalShare, remaining.messageCount);
        const { found, isFull } = selectFitting(lane, account, rowLimit, remaining, now);
        for (const row of found) leaseMessage(row, lease, now, claimedMessages);
        if (isFull || remaining.messageCount === 0) return true;
        if (found.length === rowLimit) nextAccounts.push(account);
      }
      accountsWithMore = nextAccounts;
    }
    return false;
  }

  return async function claim(limits, lease, now) {
    const isSuppressed = openSuppressionCheck();
    const claimResult: ClaimResult = { messages: [], suppressed: [], isSuppressed, onlyTo: new Map() };
    const rowsPerAccount = getRowsPerTurn(limits.maxMessages);
    const order = lanes;
    lanes = [lanes[1], lanes[0]];
    const hasMore = await claimLanes(order, limits, (lane, remaining) =>
      claimLane(lane, rowsPerAccount, remaining, lease, now, claimResult),
    );
    const { messages, suppressed } = claimResult;
    return { messages, suppressed, hasMore };
  };
}

/** Maximum number of accounts that one round examines. A round of this size takes about 5 ms. */
const MAX_ACCOUNTS_PER_ROUND = 2_000;

export interface AccountRotation {
  /** Starts a round after the last account that was returned. */
  beginRound(): void;
  /** Null at the end of the round. */
  next(now: number): number | null;
  resumeAfter(account: number): void;
  readonly hasMore: boolean;
}

export function createAccountRotation(database: DatabaseSync, lane: number): AccountRotation {
  const selectNextAccount = database.prepare(
    `SELECT account_id, due_at FROM mail_request INDEXED BY mail_request_due
     WHERE state = 'queued' AND lane = ? AND account_id > ? ORDER BY account_id, due_at LIMIT 1`,
  );
  const selectLock = database.prepare('SELECT locked_at FROM account WHERE id = ?');
  let position = 0;
  /** Where the current search for a due account began; null after a hit. */
  let searchStart: number | null = null;
  let hasMore = false;
  /** The variables of the round. `hasWrapped` is true if the round has continued at the first account. */
  let roundEnd = 0;
  let hasWrapped = false;
  let examinedCount = 0;
  let lastFoundAccount: number | null = null;

  function isLocked(account: number): boolean {
    const row = selectLock.get(account);
    return row === undefined || rows.readIntegerOrNull(row, 'locked_at') !== null;
  }

  return {
    beginRound() {
      roundEnd = searchStart ?? position;
      hasWrapped = searchStart !== null && position < roundEnd;
      examinedCount = 0;
      lastFoundAccount = null;
      hasMore = true;
    },
    next(now) {
      while (examinedCount < MAX_ACCOUNTS_PER_ROUND) {
        examinedCount += 1;
        const row = selectNextAccount.get(lane, position);
        if (row === undefined && !hasWrapped && roundEnd > 0) {
          hasWrapped = true;
          position = 0;
          continue;
        }
        const account = row === undefined ? null : rows.readInteger(row, 'account_id');
        // The round is complete: every account has been examined.
        if (row === undefined || account === null || (hasWrapped && account > roundEnd)) {
          hasMore = false;
          searchStart = null;
          position = lastFoundAccount ?? roundEnd;
          return null;
        }
        position = account;
        if (rows.readInteger(row, 'due_at') <= now && !isLocked(account)) {
          lastFoundAccount = account;
          searchStart = null;
          return account;
        }
      }
      searchStart = lastFoundAccount === null ? roundEnd : null;
      return null;
    },
    resumeAfter(account) {
      position = account;
      hasMore = true;
    },
    get hasMore() {
      return hasMore;
    },
  };
}
