/**
 * The claim of due messages. Rows that another node is leasing are skipped (`FOR UPDATE SKIP LOCKED`), so that nodes
 * neither wait for each other nor lease the same message. Lanes and accounts take turns as in sqlite/claim.ts.
 */

import { mayReceiveFrom } from '../../model/account.ts';
import { createSuppressedEntry, type Lease, NOT_ALLOWED } from '../../model/message.ts';
import { claimLanes, isExhausted, type RemainingLimits } from '../claim-lanes.ts';
import type { ClaimedMessages, ClaimLimits, Store } from '../contract.ts';
import { getRowsPerTurn, requireTransition } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { readSuppressions } from '../suppressions.ts';
import { appendEvents, endMessages } from './history.ts';
import type { Database, Row, Session, Transaction } from './session.ts';

const MAX_EXAMINED_ACCOUNTS = 2_000;

/** With ids above $2 up to $3, the due time of the earliest message, and whether the account is unlocked. */
const EXAMINE_ACCOUNTS = `WITH RECURSIVE seen AS (
      (SELECT account_id, due_at FROM queue WHERE state = 'queued' AND lane = $1 AND account_id > $2 AND account_id <= $3
       ORDER BY account_id, due_at LIMIT 1)
      UNION ALL
      SELECT n.account_id, n.due_at FROM seen s CROSS JOIN LATERAL (
        SELECT q.account_id, q.due_at FROM queue q
        WHERE q.state = 'queued' AND q.lane = $1 AND q.account_id > s.account_id AND q.account_id <= $3
        ORDER BY q.account_id, q.due_at LIMIT 1) n
    ), examined AS (SELECT * FROM seen LIMIT ${MAX_EXAMINED_ACCOUNTS})
    SELECT e.account_id, e.due_at, a.locked_at IS NULL AS unlocked FROM examined e JOIN account a ON a.id = e.account_id
    ORDER BY e.account_id`;
const MAX_ACCOUNT_ID = 2_147_483_647;

interface AccountRotation {
  /** Up to `maxAccounts` accounts with due messages, in round-robin order. */
  next(
    session: Session,
    now: number,
    maxAccounts: number,
  ): Promise<{ readonly accounts: readonly number[]; readonly hasMore: boolean }>;
  resumeAfter(account: number): void;
}

function createAccountRotation(lane: number): AccountRotation {
  let lastExamined = 0;
  /** Where the current search for accounts with due messages began; null if the last search found one. */
  let searchStart: number | null = null;
  return {
    async next(session, now, maxAccounts) {
      const end = searchStart ?? lastExamined;
      const hasWrapped = searchStart !== null && lastExamined < end;
      const [afterPosition, beforePosition] = await Promise.all([
        hasWrapped ? [] : session.query(EXAMINE_ACCOUNTS, [lane, lastExamined, MAX_ACCOUNT_ID]),
        end === 0 ? [] : session.query(EXAMINE_ACCOUNTS, [lane, hasWrapped ? lastExamined : 0, end]),
      ]);
      const examinedRows =
        afterPosition.length >= MAX_EXAMINED_ACCOUNTS ? afterPosition : [...afterPosition, ...beforePosition];
      const isFull = afterPosition.length >= MAX_EXAMINED_ACCOUNTS || beforePosition.length >= MAX_EXAMINED_ACCOUNTS;
      const dueRows = examinedRows.filter((row) => row.unlocked === true && rows.readInteger(row, 'due_at') <= now);
      const accounts = dueRows.slice(0, maxAccounts).map((row) => rows.readInteger(row, 'account_id'));
      const lastAccount = accounts.at(-1);
      // If the maximum number of accounts was examined and no examined account has a due message, the next calls
      // continue after the last examined account, until every account has been examined.
      searchStart = isFull && lastAccount === undefined ? end : null;
      const lastRow = examinedRows.at(-1);
      if (lastAccount !== undefined) lastExamined = lastAccount;
      else if (isFull && lastRow !== undefined) lastExamined = rows.readInteger(lastRow, 'account_id');
      return { accounts, hasMore: isFull || dueRows.length > accounts.length };
    },
    resumeAfter(account) {
      lastExamined = account;
      searchStart = null;
    },
  };
}

// The first row is leased regardless of its size ($7), so that a large message cannot stay in the queue forever. Rows
// that exceed the limits are unlocked by the commit.
const LEASE_MESSAGES = `WITH candidates AS MATERIALIZED (
      SELECT q.id, q.account_id, q.bytes, q.due_at, t.turn FROM unnest($1::int[]) WITH ORDINALITY AS t(account_id, turn)
      CROSS JOIN LATERAL (
        SELECT w.id, w.account_id, w.bytes, w.due_at FROM queue w
        WHERE w.state = 'queued' AND w.lane = $2 AND w.account_id = t.account_id AND w.due_at <= $3
        ORDER BY w.due_at LIMIT $4 FOR UPDATE SKIP LOCKED) q
    ), fitting AS (
      SELECT id, account_id, turn, due_at, count(*) OVER all_candidates AS n,
        row_number() OVER in_turn AS position, sum(bytes) OVER in_turn AS bytes FROM candidates
      WINDOW in_turn AS (ORDER BY turn, due_at, id), all_candidates AS ()
    ), leased AS (
      UPDATE queue q SET state = 'sending', due_at = $5, owner = $6, attempts = q.attempts + 1, handing_over = false
      FROM fitting f WHERE q.id = f.id AND q.account_id = f.account_id
        AND (f.bytes <= $8 OR ($7 AND f.position = 1)) AND f.position <= $9
      RETURNING q.id, q.account_id, q.attempts, q.accepted_at, q.held_ms, q.bytes, q.route, f.position, f.n
    )
    SELECT l.*, m.key_id, m."to", m.recipient, m."from", m.subject, m.expires_at, m.sender, b.message, a.only_to
    FROM leased l JOIN mail_request m ON m.id = l.id AND m.account_id = l.account_id
      JOIN body b ON b.id = l.id AND b.account_id = l.account_id JOIN account a ON a.id = l.account_id ORDER BY l.position`;

const SUPPRESSED_STATE = requireTransition('queued', 'suppressed', 'queue');
requireTransition('queued', 'sending', 'queue');

export function prepareClaim(database: Database): Store['claim'] {
  const createLane = (lane: number) => ({ lane, rotation: createAccountRotation(lane) });
  let lanes = [createLane(0), createLane(1)] as const;

  /** Resolves to true if more messages of the lane may be due. */
  async function claimLane(
    transaction: Transaction,
    { lane, rotation }: { readonly lane: number; readonly rotation: AccountRotation },
    rowsPerTurn: number,
    remaining: RemainingLimits,
    lease: Lease,
    now: number,
    leasedRows: Row[],
  ): Promise<boolean> {
    if (isExhausted(remaining)) return true;
    const nextAccounts = await rotation.next(transaction, now, remaining.messageCount);
    let waitingAccounts = nextAccounts.accounts;
    while (waitingAccounts.length > 0) {
      const rowsPerAccount = Math.max(
        waitingAccounts === nextAccounts.accounts ? rowsPerTurn : 1,
        Math.floor(remaining.messageCount / waitingAccounts.length),
      );
      const accountsWithMore: number[] = [];
      /** The expected number of due rows per account. It limits the number of rows that are locked but not leased. */
      let expectedRows = rowsPerAccount;
      for (let index = 0; index < waitingAccounts.length; ) {
        const batch = waitingAccounts.slice(index, index + Math.ceil(remaining.messageCount / expectedRows));
        index += batch.length;
        const { until, owner } = lease;
        const values = [
          batch,
          lane,
          now,
          rowsPerAccount,
          until,
          owner,
          remaining.isNothingLeased,
          remaining.bytes,
          remaining.messageCount,
        ];
        const newlyLeasedRows = await transaction.query(LEASE_MESSAGES, values);
        const leasedCountByAccount = new Map<number, number>();
        for (const row of newlyLeasedRows) {
          const account = rows.readInteger(row, 'account_id');
          leasedCountByAccount.set(account, (leasedCountByAccount.get(account) ?? 0) + 1);
          remaining.messageCount -= 1;
          remaining.bytes -= rows.readInteger(row, 'bytes');
          remaining.isNothingLeased = false;
          leasedRows.push(row);
        }
        const lastLeasedRow = newlyLeasedRows.at(-1);
        // No row was leased, because the first row exceeds the limits or because other nodes are leasing the same rows.
        // The rotation continues with the first account of the batch.
        if (lastLeasedRow === undefined && !remaining.isNothingLeased) rotation.resumeAfter((batch[0] ?? 1) - 1);
        // A row exceeds the limits. The rotation continues after the account of the last leased row.
        else if (lastLeasedRow !== undefined && newlyLeasedRows.length < rows.readInteger(lastLeasedRow, 'n'))
          rotation.resumeAfter(rows.readInteger(lastLeasedRow, 'account_id'));
        else if (remaining.messageCount <= 0) rotation.resumeAfter(batch.at(-1) ?? 0);
        else {
          accountsWithMore.push(...batch.filter((account) => leasedCountByAccount.get(account) === rowsPerAccount));
          expectedRows = Math.max(1, expectedRows / 4, newlyLeasedRows.length / batch.length);
          continue;
        }
        return true;
      }
      // Other nodes are leasing all due rows.
      if (remaining.isNothingLeased) return false;
      waitingAccounts = accountsWithMore;
    }
    return nextAccounts.hasMore;
  }

  async function claimInTransaction(
    transaction: Transaction,
    limits: ClaimLimits,
    lease: Lease,
    now: number,
  ): Promise<ClaimedMessages> {
    const leasedRows: Row[] = [];
    const rowsPerTurn = getRowsPerTurn(limits.maxMessages);
    const hasMore = await claimLanes(lanes, limits, (lane, remaining) =>
      claimLane(transaction, lane, rowsPerTurn, remaining, lease, now, leasedRows),
    );
    const suppressions = await findSuppressions(transaction, leasedRows, now);
    await endSuppressedMessages(transaction, suppressions, now);
    const suppressedRows = new Set(suppressions.map(({ row }) => row));
    return {
      messages: leasedRows
        .filter((row) => !suppressedRows.has(row))
        .map((row) => rows.toLeasedMessage(row, lease, rows.readInteger(row, 'attempts'))),
      suppressed: suppressions.map(({ row }) => ({
        id: rows.readText(row, 'id'),
        accountId: rows.readInteger(row, 'account_id'),
        to: rows.readText(row, 'to'),
      })),
      hasMore,
    };
  }

  return async (limits, lease, now) => {
    lanes = [lanes[1], lanes[0]];
    return database.transaction((transaction) => claimInTransaction(transaction, limits, lease, now));
  };
}

async function findSuppressions(
  transaction: Transaction,
  leasedRows: readonly Row[],
  now: number,
): Promise<readonly { readonly row: Row; readonly by: string }[]> {
  const toRecipient = (row: Row) => rows.readTextOrNull(row, 'recipient') ?? rows.readText(row, 'to');
  const isSuppressed =
    leasedRows.length === 0 ? () => false : await readSuppressions(transaction, leasedRows.map(toRecipient));
  return leasedRows.flatMap((row) => {
    const recipient = toRecipient(row);
    if (!mayReceiveFrom({ onlyTo: rows.readOnlyTo(row) }, recipient, rows.readInteger(row, 'key_id')))
      return [{ row, by: NOT_ALLOWED }];
    return isSuppressed(rows.readInteger(row, 'account_id'), recipient, now) ? [{ row, by: 'store' }] : [];
  });
}

async function endSuppressedMessages(
  transaction: Transaction,
  suppressed: readonly { readonly row: Row; readonly by: string }[],
  now: number,
): Promise<void> {
  if (suppressed.length === 0) return;
  await Promise.all([
    endMessages(
      transaction,
      suppressed.map(({ row }) => ({
        id: rows.readText(row, 'id'),
        state: SUPPRESSED_STATE,
        endedAt: now,
        attempts: rows.readInteger(row, 'attempts') - 1,
      })),
    ),
    appendEvents(
      transaction,
      suppressed.map(({ row, by }) => ({
        ...createSuppressedEntry(now, by),
        id: rows.readText(row, 'id'),
        accountId: rows.readInteger(row, 'account_id'),
        state: SUPPRESSED_STATE,
      })),
    ),
  ]);
}
