/**
 * Implements the queue: claims, marks before transmission, settlements, and the release and recovery of leases. A
 * settlement is valid only for the owner and the attempt count of the lease. This file also writes the events of
 * messages and records their end. A claim skips rows that another node is leasing (`FOR UPDATE SKIP LOCKED`), so that
 * nodes neither wait for each other nor lease the same message. All other statements lock rows in order of id, so that
 * batches of several nodes cannot deadlock.
 *
 * Fairness: the queue has two lanes, one for first attempts and one for retries. The lane with which a claim starts
 * alternates from claim to claim. This lane receives half of the claim's limits, and the other lane receives the limits
 * that remain. Within a lane, accounts are served round-robin, a few rows at a time (`getRowsPerTurn`). If few accounts
 * have due messages, each account receives an equal share.
 */

import type { RecordedFailure } from '../../model/failure.ts';
import {
  createSuppressedEntry,
  type Lease,
  resolveLostLease,
  type SettleResult,
  type State,
} from '../../model/message.ts';
import { getEventBit } from '../../model/webhook.ts';
import type { ClaimedMessages, ClaimLimits, Store } from '../contract.ts';
import type { ServerTimeOverride } from '../environment.ts';
import {
  getLane,
  getRowsPerTurn,
  getStateAfterChange,
  inheritsFailure,
  type PackedSettlement,
  packSettlements,
  requireTransition,
  setsLastFailure,
} from '../rules/messages.ts';
import { ReputationDeltas } from '../rules/reputation.ts';
import * as rows from '../rules/rows.ts';
import { findEventType } from '../rules/webhooks.ts';
import { insertSuppressionEvents } from './outbox.ts';
import { addReputationDelta } from './reputation.ts';
import {
  type Database,
  forceDurableCommit,
  type Row,
  type Session,
  type Statement,
  type Transaction,
} from './session.ts';

export interface NewEvent {
  readonly id: string;
  readonly accountId: number;
  readonly at: number;
  readonly verb: string;
  readonly by: string;
  readonly detail: string | null;
  readonly failure: RecordedFailure | null;
  /** JSON. */
  readonly attempt: string | null;
  /** The state of the message after the change. */
  readonly state: State;
  /** True if the change suppresses the recipient. */
  readonly suppresses: boolean;
}

const APPEND_EVENTS: Statement = {
  name: 'event_append',
  text: `WITH entries AS MATERIALIZED (
      SELECT e.*, nextval('event_n') AS n
      FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[], $9::text[],
        $10::text[], $11::boolean[], $12::int[])
        WITH ORDINALITY AS e(id, account_id, at, verb, by, detail, failure, inherits, attempt, state, suppresses, bit, o) ORDER BY e.o
    ), history AS (
      INSERT INTO event (id, account_id, n, at, verb, by, detail, failure, attempt)
      SELECT id, account_id, n, at, verb, by, detail, CASE WHEN inherits THEN (
          SELECT h.failure FROM event h WHERE h.id = e.id AND h.failure IS NOT NULL ORDER BY h.n DESC LIMIT 1
        ) ELSE failure END, attempt
      FROM entries e ORDER BY n
    )
    INSERT INTO outbox (type, account_id, message_id, n, state, suppressed)
    SELECT 'message.' || e.verb, e.account_id, e.id, e.n, e.state, e.suppresses
    FROM webhook_subscription s CROSS JOIN entries e WHERE s.events & e.bit <> 0 ORDER BY e.n`,
};

// The array condition makes the planner skip partitions, as in `WRITE_END`. A row that already has this failure is not
// written.
const SET_FAILURES: Statement = {
  name: 'event_set_failures',
  text: `UPDATE mail_request m SET failure_class = f.class, failure_category = f.category
    FROM unnest($1::uuid[], $2::text[], $3::text[]) AS f(id, class, category)
    WHERE m.id = f.id AND m.id = ANY($1::uuid[])
      AND (m.failure_class IS DISTINCT FROM f.class OR m.failure_category IS DISTINCT FROM f.category)`,
};

/**
 * Appends entries to message histories, and records the corresponding events in the outbox. The entries of one message
 * keep the given order. The last failure among these entries becomes the last failure of the message
 * (`setsLastFailure`). An entry `expired` without a failure receives the last failure of its message. The transaction
 * must have locked the message or its queue row.
 */
export async function appendEvents(session: Session, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return;
  await Promise.all([insertEvents(session, events), setFailures(session, events)]);
}

async function setFailures(session: Session, events: readonly NewEvent[]): Promise<void> {
  const failures = new Map(
    events.flatMap(({ id, verb, state, failure }) =>
      failure === null || !setsLastFailure(verb, state, failure.class) ? [] : [[id, failure] as const],
    ),
  );
  if (failures.size === 0) return;
  const values = [...failures.values()];
  await session.query(SET_FAILURES, [
    [...failures.keys()],
    values.map(({ class: failureClass }) => failureClass),
    values.map(({ category }) => category),
  ]);
}

async function insertEvents(session: Session, events: readonly NewEvent[]): Promise<void> {
  await session.query(APPEND_EVENTS, [
    events.map(({ id }) => id),
    events.map(({ accountId }) => accountId),
    events.map(({ at }) => at),
    events.map(({ verb }) => verb),
    events.map(({ by }) => by),
    events.map(({ detail }) => detail),
    events.map(({ failure }) => rows.toFailureColumn(failure)),
    events.map(({ verb, failure }) => failure === null && inheritsFailure(verb)),
    events.map(({ attempt }) => attempt),
    events.map(({ state }) => state),
    events.map(({ suppresses }) => suppresses),
    events.map(({ verb }) => {
      const type = findEventType(verb);
      return type === null ? 0 : getEventBit(type);
    }),
  ]);
}

export interface EndedMessage {
  readonly id: string;
  readonly state: State;
  readonly endedAt: number;
  readonly attempts: number;
}

const DELETE_QUEUE_ROWS: Statement = { name: 'end_leave', text: 'DELETE FROM queue WHERE id = ANY($1::uuid[])' };
// The array condition is redundant because of the join. With this condition the planner skips the partitions that
// contain none of the ids.
const WRITE_END: Statement = {
  name: 'end_write',
  text: `UPDATE mail_request m SET state = e.state, ended_at = e.ended_at, attempts = e.attempts
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::int[]) AS e(id, state, ended_at, attempts)
    WHERE m.id = e.id AND m.id = ANY($1::uuid[])`,
};

/** Ends messages. The transaction must have locked the queue rows of these messages. */
export async function endMessages(session: Session, endedMessages: readonly EndedMessage[]): Promise<void> {
  if (endedMessages.length === 0) return;
  const ids = endedMessages.map(({ id }) => id);
  await Promise.all([
    session.query(DELETE_QUEUE_ROWS, [ids]),
    session.query(WRITE_END, [
      ids,
      endedMessages.map(({ state }) => state),
      endedMessages.map(({ endedAt }) => endedAt),
      endedMessages.map(({ attempts }) => attempts),
    ]),
  ]);
}

/** Maximum number of accounts that one statement examines. */
const MAX_EXAMINED_ACCOUNTS = 2_000;

/**
 * Selects the accounts of a lane whose ids are greater than $2 and at most $3, in order of id. Each row has the due
 * time of the account's earliest message, and states whether the account is unlocked.
 */
const EXAMINE_ACCOUNTS: Statement = {
  name: 'claim_examine_accounts',
  text: `WITH RECURSIVE seen AS (
      (SELECT account_id, due_at FROM queue WHERE state = 'queued' AND lane = $1 AND account_id > $2 AND account_id <= $3
       ORDER BY account_id, due_at LIMIT 1)
      UNION ALL
      SELECT n.account_id, n.due_at FROM seen s CROSS JOIN LATERAL (
        SELECT q.account_id, q.due_at FROM queue q
        WHERE q.state = 'queued' AND q.lane = $1 AND q.account_id > s.account_id AND q.account_id <= $3
        ORDER BY q.account_id, q.due_at LIMIT 1) n
    ), examined AS (SELECT * FROM seen LIMIT ${MAX_EXAMINED_ACCOUNTS})
    SELECT e.account_id, e.due_at, a.locked_at IS NULL AS unlocked FROM examined e JOIN account a ON a.id = e.account_id
    ORDER BY e.account_id`,
};
const MAX_ACCOUNT_ID = 2_147_483_647;

interface AccountRotation {
  /**
   * Resolves to up to `maxAccounts` accounts with due messages, in round-robin order. `hasMore` is true if other
   * accounts may have due messages.
   */
  next(
    session: Session,
    now: number,
    maxAccounts: number,
  ): Promise<{ readonly accounts: readonly number[]; readonly hasMore: boolean }>;
  /** The next call of `next` continues the rotation after this account. */
  resumeAfter(account: number): void;
}

/** Creates a rotation over the accounts of `lane`, starting with the first account. */
function createAccountRotation(lane: number): AccountRotation {
  /** The account that was examined last, or 0 before the first account. */
  let lastExamined = 0;
  /**
   * The account after which the current search for accounts with due messages started, or null if the last search found
   * such an account.
   */
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
const LEASE_MESSAGES: Statement = {
  name: 'claim_lease',
  text: `WITH candidates AS MATERIALIZED (
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
      RETURNING q.id, q.account_id, q.attempts, q.accepted_at, q.bytes, f.position, f.n
    )
    SELECT l.*, m."to", m."from", m.subject, b.message, EXISTS (SELECT 1 FROM suppression s
        WHERE s.recipient = coalesce(m.recipient, m."to") AND s.account_id IN (l.account_id, 0)) AS suppressed
    FROM leased l JOIN mail_request m ON m.id = l.id AND m.account_id = l.account_id
      JOIN body b ON b.id = l.id AND b.account_id = l.account_id ORDER BY l.position`,
};

interface RemainingLimits {
  messageCount: number;
  bytes: number;
  isNothingLeased: boolean;
}

const SUPPRESSED_STATE = requireTransition('queued', 'suppressed', 'queue');
requireTransition('queued', 'sending', 'queue');

export function prepareClaim(database: Database): Store['claim'] {
  const lanes = [0, 1].map((lane) => ({ lane, rotation: createAccountRotation(lane) }));

  /**
   * Leases messages of one lane within the limits `remaining`. Resolves to true if more messages of the lane may be
   * due.
   */
  async function claimLane(
    transaction: Transaction,
    { lane, rotation }: { readonly lane: number; readonly rotation: AccountRotation },
    rowsPerTurn: number,
    remaining: RemainingLimits,
    lease: Lease,
    now: number,
    leasedRows: Row[],
  ): Promise<boolean> {
    if (remaining.messageCount <= 0 || (remaining.bytes <= 0 && !remaining.isNothingLeased)) return true;
    const nextAccounts = await rotation.next(transaction, now, remaining.messageCount);
    let waitingAccounts = nextAccounts.accounts;
    while (waitingAccounts.length > 0) {
      const rowsPerAccount = Math.max(
        waitingAccounts === nextAccounts.accounts ? rowsPerTurn : 1,
        Math.floor(remaining.messageCount / waitingAccounts.length),
      );
      /** The accounts whose share was leased completely and that may have more due messages. */
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
    const remaining: RemainingLimits = {
      messageCount: limits.maxMessages,
      bytes: limits.maxBytes,
      isNothingLeased: true,
    };
    const [firstLane, secondLane] = lanes;
    if (firstLane === undefined || secondLane === undefined) return { messages: [], suppressed: [], hasMore: false };
    const firstLaneLimits: RemainingLimits = {
      messageCount: Math.ceil(limits.maxMessages / 2),
      bytes: Math.ceil(limits.maxBytes / 2),
      isNothingLeased: true,
    };
    const initialLimits = { ...firstLaneLimits };
    const rowsPerTurn = getRowsPerTurn(limits.maxMessages);
    let firstLaneHasMore = await claimLane(
      transaction,
      firstLane,
      rowsPerTurn,
      firstLaneLimits,
      lease,
      now,
      leasedRows,
    );
    remaining.messageCount -= initialLimits.messageCount - firstLaneLimits.messageCount;
    remaining.bytes -= initialLimits.bytes - firstLaneLimits.bytes;
    remaining.isNothingLeased = firstLaneLimits.isNothingLeased;
    const secondLaneHasMore = await claimLane(transaction, secondLane, rowsPerTurn, remaining, lease, now, leasedRows);
    // The first lane receives the limits that the second lane did not use.
    if (firstLaneHasMore)
      firstLaneHasMore = await claimLane(transaction, firstLane, rowsPerTurn, remaining, lease, now, leasedRows);
    const suppressedRows = leasedRows.filter((row) => row.suppressed === true);
    await endSuppressedMessages(transaction, suppressedRows, now);
    return {
      messages: leasedRows
        .filter((row) => row.suppressed !== true)
        .map((row) => rows.toLeasedMessage(row, lease, rows.readInteger(row, 'attempts'))),
      suppressed: suppressedRows.map((row) => ({
        id: rows.readText(row, 'id'),
        accountId: rows.readInteger(row, 'account_id'),
        to: rows.readText(row, 'to'),
      })),
      hasMore: firstLaneHasMore || secondLaneHasMore,
    };
  }

  return async (limits, lease, now) => {
    lanes.reverse();
    return database.transaction((transaction) => claimInTransaction(transaction, limits, lease, now));
  };
}

async function endSuppressedMessages(transaction: Transaction, suppressed: readonly Row[], now: number): Promise<void> {
  if (suppressed.length === 0) return;
  await Promise.all([
    endMessages(
      transaction,
      suppressed.map((row) => ({
        id: rows.readText(row, 'id'),
        state: SUPPRESSED_STATE,
        endedAt: now,
        attempts: rows.readInteger(row, 'attempts') - 1,
      })),
    ),
    appendEvents(
      transaction,
      suppressed.map((row) => ({
        ...createSuppressedEntry(now, 'store'),
        id: rows.readText(row, 'id'),
        accountId: rows.readInteger(row, 'account_id'),
        ...{ state: SUPPRESSED_STATE, suppresses: false },
      })),
    ),
  ]);
}

// This query needs one index lookup per lease, in order of id. The condition on the state is written so that no partial
// index matches it. Because statistics about leases are outdated within a second, the planner would read all leases if
// it could use a partial index.
const SELECT_VALID_LEASES = `SELECT q.id, q.account_id, s.position
  FROM (SELECT * FROM unnest($1::uuid[], $2::text[], $3::int[]) WITH ORDINALITY AS u(id, owner, attempts, position) ORDER BY id, position) s
  CROSS JOIN LATERAL (
    SELECT w.id, w.account_id FROM queue w
    WHERE w.id = s.id AND w.owner = s.owner AND w.attempts = s.attempts AND w.state || '' = 'sending' FOR UPDATE) q`;
const LOCK_LEASES: Statement = { name: 'settle_lock_leases', text: SELECT_VALID_LEASES };
const MARK_TRANSMITTING: Statement = {
  name: 'settle_mark',
  text: `WITH valid AS MATERIALIZED (${SELECT_VALID_LEASES}), lease AS (SELECT id, account_id, min(position) AS position FROM valid GROUP BY 1, 2)
    UPDATE queue q SET handing_over = true FROM lease l WHERE q.id = l.id AND q.account_id = l.account_id RETURNING l.position`,
};
// The due time of a first attempt is the time of acceptance, so that a released message returns to its position in the
// queue.
const RELEASE_LEASES: Statement = {
  name: 'settle_release',
  text: `WITH valid AS MATERIALIZED (${SELECT_VALID_LEASES}), lease AS (SELECT id, account_id, min(position) AS position FROM valid GROUP BY 1, 2)
    UPDATE queue q SET state = '${requireTransition('sending', 'queued', 'queue')}', due_at = CASE q.lane WHEN 0 THEN least(q.accepted_at, $4) ELSE $4 END,
      owner = NULL, handing_over = false, attempts = q.attempts - 1
    FROM lease l WHERE q.id = l.id AND q.account_id = l.account_id RETURNING l.position`,
};
const REQUEUE_MESSAGES: Statement = {
  name: 'settle_requeue',
  text: `UPDATE queue q SET state = s.state, due_at = s.due_at, owner = NULL, handing_over = false,
      lane = greatest(q.lane, s.lane)::smallint, attempts = q.attempts - s.refund
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::int[], $5::int[]) AS s(id, state, due_at, lane, refund)
    WHERE q.id = s.id AND q.id = ANY($1::uuid[])`,
};
// This statement and imports of suppressions write rows in the same order, so that transactions cannot deadlock.
/** Adds the recipients of messages to their accounts' suppression lists. Returns the source of each new entry. */
export const SUPPRESS_RECIPIENTS: Statement = {
  name: 'settle_suppress',
  text: `WITH added AS (INSERT INTO suppression (recipient, account_id, reason, source, at)
    SELECT DISTINCT ON (r.recipient COLLATE "C", m.account_id) r.recipient, m.account_id, s.reason, m.id, s.at
    FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS s(id, reason, at) JOIN mail_request m ON m.id = s.id
      CROSS JOIN LATERAL (SELECT coalesce(m.recipient, m."to") AS recipient) r
    WHERE m.id = ANY($1::uuid[]) ORDER BY r.recipient COLLATE "C", m.account_id, s.at
    ON CONFLICT DO NOTHING RETURNING recipient, account_id, reason, source, at
    ), recorded AS (${insertSuppressionEvents('suppression.added', 'added', 's.at')})
    SELECT source FROM added`,
};
const LOCK_RECOVERABLE_LEASES: Statement = {
  name: 'recover_lock_leases',
  text: `SELECT q.id, q.account_id, q.owner, q.handing_over FROM queue q
    WHERE q.state = 'sending' AND NOT q.id = ANY($1::uuid[]) AND ($2
      OR (q.owner = $3 AND q.due_at <= $7)
      OR (q.owner <> $3 AND ($5 OR q.due_at <= $4) AND NOT EXISTS (SELECT 1 FROM node n
        WHERE n.name = q.owner AND n.alive_until > coalesce($8::bigint, extract(epoch FROM clock_timestamp()) * 1000))))
    ORDER BY q.id LIMIT $6 FOR UPDATE OF q SKIP LOCKED`,
};
const RECOVER_LEASES: Statement = {
  name: 'recover_leases',
  text: `UPDATE queue q SET state = s.state, due_at = CASE s.state WHEN 'queued' THEN $3::bigint END, owner = NULL, handing_over = false,
      attempts = q.attempts - s.refund
    FROM unnest($1::uuid[], $2::text[], $4::int[]) AS s(id, state, refund)
    WHERE q.id = s.id AND q.id = ANY($1::uuid[])`,
};
const ADD_REFERENCES: Statement = {
  name: 'settle_add_references',
  text: `INSERT INTO provider_reference (reference, id, at)
    SELECT DISTINCT ON (reference COLLATE "C") * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS r(reference, id, at)
    ORDER BY reference COLLATE "C" ON CONFLICT DO NOTHING`,
};
/** Maximum number of leases that one transaction recovers. */
const MAX_RECOVERED_LEASES = 2_000;

/** The rows that one batch of settlements writes. */
interface SettlementRows {
  readonly endedMessages: EndedMessage[];
  readonly requeuedMessages: { id: string; state: State; dueAt: number | null; lane: number; refundCount: number }[];
  readonly events: NewEvent[];
  readonly suppressed: { id: string; reason: string; at: number }[];
  readonly providerReferences: { reference: string; id: string; at: number }[];
}

export function prepareLeaseEnds(
  database: Database,
  serverTime: ServerTimeOverride,
): Pick<Store, 'markTransmitting' | 'settle' | 'release' | 'recover'> {
  return {
    async markTransmitting(batch) {
      return toSettleResults(batch, await database.query(MARK_TRANSMITTING, toLeaseParameters(batch)));
    },
    async release(batch, now) {
      return toSettleResults(batch, await database.query(RELEASE_LEASES, [...toLeaseParameters(batch), now]));
    },
    settle: (batch) => database.transaction((transaction) => settleInTransaction(transaction, packSettlements(batch))),
    async recover(options) {
      let recoveredCount = 0;
      for (;;) {
        const batchCount = await database.transaction((transaction) =>
          recoverInTransaction(transaction, options, serverTime()),
        );
        recoveredCount += batchCount;
        if (batchCount < MAX_RECOVERED_LEASES) return recoveredCount;
      }
    },
  };
}

async function settleInTransaction(
  transaction: Transaction,
  batch: readonly PackedSettlement[],
): Promise<SettleResult[]> {
  const validLeases = await transaction.query(LOCK_LEASES, toLeaseParameters(batch));
  const accounts = new Map(
    validLeases.map((row) => [rows.readInteger(row, 'position'), rows.readInteger(row, 'account_id')]),
  );
  const settledIds = new Set<string>();
  const settlementRows: SettlementRows = {
    endedMessages: [],
    requeuedMessages: [],
    events: [],
    suppressed: [],
    providerReferences: [],
  };
  const validSettlements: (readonly [settlement: PackedSettlement, accountId: number])[] = [];
  const results = batch.map((settlement, index): SettleResult => {
    const accountId = accounts.get(index + 1);
    // A lease can be settled only once.
    if (accountId === undefined || settledIds.has(settlement.id)) return 'lost';
    settledIds.add(settlement.id);
    collectRows(settlement, accountId, settlementRows);
    validSettlements.push([settlement, accountId]);
    return 'settled';
  });
  // The caller discards the outcome of a lost lease, so the transaction that ended the lease must be durable.
  if (validSettlements.length === 0) await forceDurableCommit(transaction);
  const { requeuedMessages, suppressed, providerReferences } = settlementRows;
  const [newSuppressions] = await Promise.all([
    suppressed.length === 0
      ? []
      : transaction.query(SUPPRESS_RECIPIENTS, [
          suppressed.map(({ id }) => id),
          suppressed.map(({ reason }) => reason),
          suppressed.map(({ at }) => at),
        ]),
    endMessages(transaction, settlementRows.endedMessages),
    requeuedMessages.length === 0
      ? []
      : transaction.query(REQUEUE_MESSAGES, [
          requeuedMessages.map(({ id }) => id),
          requeuedMessages.map(({ state }) => state),
          requeuedMessages.map(({ dueAt }) => dueAt),
          requeuedMessages.map(({ lane }) => lane),
          requeuedMessages.map(({ refundCount }) => refundCount),
        ]),
    appendEvents(transaction, settlementRows.events),
    providerReferences.length === 0
      ? []
      : transaction.query(ADD_REFERENCES, [
          providerReferences.map(({ reference }) => reference),
          providerReferences.map(({ id }) => id),
          providerReferences.map(({ at }) => at),
        ]),
  ]);
  const newlySuppressed = new Set(newSuppressions.map((row) => rows.readText(row, 'source')));
  const deltas = new ReputationDeltas();
  for (const [{ id, changes, excludedFromReputation }, accountId] of validSettlements) {
    if (excludedFromReputation) continue;
    // A bounce of an address that is already suppressed does not count against the account again.
    let from: State = 'sending';
    for (const { to, suppress, at } of changes) {
      deltas.add(accountId, from, to, suppress !== null && newlySuppressed.has(id), at);
      from = to;
    }
  }
  for (const [accountId, delta, at] of deltas.listByAccount())
    await addReputationDelta(transaction, accountId, delta, at);
  return results;
}

/** Adds the rows that one settlement writes to `settlementRows`. */
function collectRows(
  { id, attempts, refundAttempt, changes }: PackedSettlement,
  accountId: number,
  settlementRows: SettlementRows,
): void {
  let from: State = 'sending';
  let lane = 0;
  for (const [index, { to, at, verb, by, detail, failure, attempt, suppress, reference }] of changes.entries()) {
    from = getStateAfterChange(from, to, index === 0);
    if (index === 0) lane = getLane(verb);
    settlementRows.events.push({
      id,
      accountId,
      at,
      verb,
      by,
      detail,
      failure,
      attempt,
      state: from,
      suppresses: suppress !== null,
    });
    if (reference !== null) settlementRows.providerReferences.push({ reference, id, at });
    if (suppress !== null) settlementRows.suppressed.push({ id, reason: suppress, at });
  }
  const lastChange = changes.at(-1);
  if (lastChange === undefined) return;
  const refundCount = refundAttempt ? 1 : 0;
  if (lastChange.isTerminal)
    settlementRows.endedMessages.push({
      id,
      state: lastChange.to,
      endedAt: lastChange.at,
      attempts: attempts - refundCount,
    });
  else settlementRows.requeuedMessages.push({ id, state: lastChange.to, dueAt: lastChange.dueAt, lane, refundCount });
}

async function recoverInTransaction(
  transaction: Transaction,
  {
    now,
    includeAllLeases,
    includeDeadNodes,
    onUncertain,
    node,
    ownLeasesUntil,
    excludedIds = [],
  }: Parameters<Store['recover']>[0],
  serverNow: number | null,
): Promise<number> {
  const leaseRows = await transaction.query(LOCK_RECOVERABLE_LEASES, [
    excludedIds,
    includeAllLeases,
    node,
    now,
    includeDeadNodes,
    MAX_RECOVERED_LEASES,
    ownLeasesUntil ?? now,
    serverNow,
  ]);
  if (leaseRows.length === 0) return 0;
  const recoveredMessages = leaseRows.map((row) => {
    const { to, entry, ...lost } = resolveLostLease(onUncertain, row.handing_over === true, now, node);
    requireTransition('sending', to, 'queue');
    // The attempt count of a node's own lease is not reduced, so that a late settlement of that lease is rejected.
    const refundCount = lost.refundAttempt && row.owner !== node ? 1 : 0;
    return { id: rows.readText(row, 'id'), accountId: rows.readInteger(row, 'account_id'), to, entry, refundCount };
  });
  await Promise.all([
    transaction.query(RECOVER_LEASES, [
      recoveredMessages.map(({ id }) => id),
      recoveredMessages.map(({ to }) => to),
      now,
      recoveredMessages.map(({ refundCount }) => refundCount),
    ]),
    appendEvents(
      transaction,
      recoveredMessages.map(({ id, accountId, entry, to }) => ({
        ...entry,
        id,
        accountId,
        state: to,
        suppresses: false,
      })),
    ),
  ]);
  return leaseRows.length;
}

type LeaseBatch = Parameters<Store['markTransmitting']>[0];

function toLeaseParameters(batch: LeaseBatch): unknown[] {
  return [batch.map(({ id }) => id), batch.map(({ owner }) => owner), batch.map(({ attempts }) => attempts)];
}

/**
 * Returns the result for each lease of the batch. `validLeases` contains the positions in the batch, starting at 1,
 * of the leases that were valid.
 */
function toSettleResults(batch: LeaseBatch, validLeases: readonly Readonly<Record<string, unknown>>[]): SettleResult[] {
  const validPositions = new Set(validLeases.map((row) => rows.readInteger(row, 'position')));
  return batch.map((_, index) => (validPositions.has(index + 1) ? 'settled' : 'lost'));
}
