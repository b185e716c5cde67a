/**
 * Marks, settles and releases leases. A settlement is valid only for the owner and the attempt count of the lease. Rows
 * are locked in order of id, so that batches of several nodes cannot deadlock.
 */

import { ATTEMPT_OWED, type SettleResult, type State, toParkedDueTime } from '../../model/message.ts';
import type { Store } from '../contract.ts';
import type { EndedMessage, NewEntry } from '../messages.ts';
import { countChanges } from '../reputation.ts';
import {
  getLane,
  getStateAfterChange,
  type PackedSettlement,
  packSettlements,
  requireTransition,
} from '../rules/messages.ts';
import { type CountedChange, getAttemptEvidence } from '../rules/reputation.ts';
import * as rows from '../rules/rows.ts';
import { ON_LISTED } from '../suppressions.ts';
import { appendEvents, endMessages } from './history.ts';
import { insertSuppressionEvents } from './outbox.ts';
import { type Database, forceDurableCommit, type Transaction, toColumns } from './session.ts';

// This query needs one index lookup per lease, in order of id. The condition on the state is written so that no partial
// index matches it. Because statistics about leases are outdated within a second, the planner would read all leases if
// it could use a partial index.
const SELECT_VALID_LEASES = `SELECT q.id, q.account_id, s.position
  FROM (SELECT * FROM unnest($1::uuid[], $2::text[], $3::int[]) WITH ORDINALITY AS u(id, owner, attempts, position) ORDER BY id, position) s
  CROSS JOIN LATERAL (
    SELECT w.id, w.account_id FROM queue w
    WHERE w.id = s.id AND w.owner = s.owner AND w.attempts = s.attempts AND w.state || '' = 'sending' FOR UPDATE) q`;
const MARK_TRANSMITTING = `WITH valid AS MATERIALIZED (${SELECT_VALID_LEASES}), lease AS (SELECT id, account_id, min(position) AS position FROM valid GROUP BY 1, 2)
    UPDATE queue q SET handing_over = true FROM lease l WHERE q.id = l.id AND q.account_id = l.account_id RETURNING l.position`;
// The due time of a first attempt is the time of acceptance, so that a released message returns to its position in the
// queue.
const RELEASE_LEASES = `WITH valid AS MATERIALIZED (${SELECT_VALID_LEASES}), lease AS (SELECT id, account_id, min(position) AS position FROM valid GROUP BY 1, 2)
    UPDATE queue q SET state = '${requireTransition('sending', 'queued', 'queue')}', due_at = CASE q.lane WHEN 0 THEN least(q.accepted_at, $4) ELSE $4 END,
      owner = NULL, handing_over = false, attempts = q.attempts - 1
    FROM lease l WHERE q.id = l.id AND q.account_id = l.account_id RETURNING l.position`;
const PARK_LEASES = `WITH valid AS MATERIALIZED (${SELECT_VALID_LEASES}), lease AS (SELECT id, account_id, min(position) AS position FROM valid GROUP BY 1, 2)
    UPDATE queue q SET state = '${requireTransition('sending', 'queued', 'queue')}', due_at = $4, owner = NULL, handing_over = false, attempts = q.attempts - 1,
      route = coalesce(($5::text[])[l.position::int], q.route)
    FROM lease l WHERE q.id = l.id AND q.account_id = l.account_id RETURNING l.position`;
const REQUEUE_MESSAGES = `UPDATE queue q SET state = s.state, due_at = s.due_at, owner = NULL, handing_over = false,
      lane = greatest(q.lane, s.lane)::smallint, held_ms = q.held_ms % ${ATTEMPT_OWED}, attempts = q.attempts - s.refund, route = s.route
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::int[], $5::int[], $6::text[]) AS s(id, state, due_at, lane, refund, route)
    WHERE q.id = s.id AND q.id = ANY($1::uuid[])`;
// This statement and imports of suppressions write rows in the same order, so that transactions cannot deadlock.
/** Returns the source and recipient of each report, and whether it added the entry. */
export const SUPPRESS_RECIPIENTS = `WITH reported AS MATERIALIZED (
      SELECT coalesce(m.recipient, m."to") AS recipient, m.account_id, s.reason, m.id::text AS source, s.at
      FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS s(id, reason, at) JOIN mail_request m ON m.id = s.id
      WHERE m.id = ANY($1::uuid[])
    ), added AS (INSERT INTO suppression (recipient, account_id, reason, source, at)
      SELECT DISTINCT ON (r.recipient COLLATE "C", r.account_id) r.recipient, r.account_id, r.reason, r.source, r.at
      FROM reported r ORDER BY r.recipient COLLATE "C", r.account_id, r.at
      ${ON_LISTED} RETURNING recipient, account_id, reason, source, at
    ), recorded AS (${insertSuppressionEvents('suppression.added', 'added', 's.at')})
    SELECT r.source, r.recipient, a.source IS NOT NULL AS is_new FROM reported r LEFT JOIN added a ON a.source = r.source`;
const ADD_REFERENCES = `INSERT INTO provider_reference (reference, id, at)
    SELECT DISTINCT ON (reference COLLATE "C") * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS r(reference, id, at)
    ORDER BY reference COLLATE "C" ON CONFLICT DO NOTHING`;

interface SettlementRows {
  readonly endedMessages: EndedMessage[];
  readonly requeuedMessages: {
    id: string;
    state: State;
    dueAt: number | null;
    lane: number;
    refundCount: number;
    route: string | null;
  }[];
  readonly events: NewEntry[];
  readonly suppressed: { id: string; reason: string; at: number }[];
  readonly providerReferences: { reference: string; id: string; at: number }[];
}

export function prepareLeaseEnds(database: Database): Pick<Store, 'markTransmitting' | 'settle' | 'release' | 'park'> {
  return {
    async markTransmitting(batch) {
      return toSettleResults(batch, await database.query(MARK_TRANSMITTING, toLeaseParameters(batch)));
    },
    async release(batch, now) {
      return toSettleResults(batch, await database.query(RELEASE_LEASES, [...toLeaseParameters(batch), now]));
    },
    async park(batch, reason, now) {
      const dueAt = toParkedDueTime(reason, now);
      const parameters = [...toLeaseParameters(batch), dueAt, batch.map(({ route = null }) => route)];
      return toSettleResults(batch, await database.query(PARK_LEASES, parameters));
    },
    settle: (batch) => database.transaction((transaction) => settleInTransaction(transaction, packSettlements(batch))),
  };
}

async function settleInTransaction(
  transaction: Transaction,
  batch: readonly PackedSettlement[],
): Promise<SettleResult[]> {
  const validLeases = await transaction.query(SELECT_VALID_LEASES, toLeaseParameters(batch));
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
  const [suppressedRows] = await Promise.all([
    suppressed.length === 0
      ? []
      : transaction.query(
          SUPPRESS_RECIPIENTS,
          toColumns(suppressed, ({ id, reason, at }) => [id, reason, at]),
        ),
    endMessages(transaction, settlementRows.endedMessages),
    requeuedMessages.length === 0
      ? []
      : transaction.query(
          REQUEUE_MESSAGES,
          toColumns(requeuedMessages, ({ id, state, dueAt, lane, refundCount, route }) => [
            id,
            state,
            dueAt,
            lane,
            refundCount,
            route,
          ]),
        ),
    appendEvents(transaction, settlementRows.events),
    providerReferences.length === 0
      ? []
      : transaction.query(
          ADD_REFERENCES,
          toColumns(providerReferences, ({ reference, id, at }) => [reference, id, at]),
        ),
  ]);
  const recipients = new Map(suppressedRows.map((row) => [rows.readText(row, 'source'), row]));
  const counted = validSettlements.flatMap(([{ id, changes, excludedFromReputation }, accountId]) =>
    excludedFromReputation
      ? []
      : changes.map(({ to, suppress, at }, index): CountedChange => {
          const row = suppress === null ? undefined : recipients.get(id);
          return {
            ...{ accountId, from: changes[index - 1]?.to ?? 'sending', to, at },
            ...{ isNew: row?.is_new === true, isCounted: true },
            evidence: getAttemptEvidence(to, row === undefined ? null : rows.readText(row, 'recipient')),
          };
        }),
  );
  await countChanges(transaction, counted);
  return results;
}

function collectRows(
  { id, attempts, refundAttempt, route, changes }: PackedSettlement,
  accountId: number,
  settlementRows: SettlementRows,
): void {
  let from: State = 'sending';
  let lane = 0;
  for (const [index, change] of changes.entries()) {
    const { to, at, verb, suppress, reference } = change;
    from = getStateAfterChange(from, to, index === 0);
    if (index === 0) lane = getLane(verb);
    settlementRows.events.push({ ...change, id, accountId, state: from, suppresses: suppress !== null });
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
      route,
    });
  else
    settlementRows.requeuedMessages.push({
      id,
      state: lastChange.to,
      dueAt: lastChange.dueAt,
      lane,
      refundCount,
      route,
    });
}

type LeaseBatch = Parameters<Store['markTransmitting']>[0];

function toLeaseParameters(batch: LeaseBatch): unknown[] {
  return [batch.map(({ id }) => id), batch.map(({ owner }) => owner), batch.map(({ attempts }) => attempts)];
}

/** `validLeases` contains positions in the batch from 1. */
function toSettleResults(batch: LeaseBatch, validLeases: readonly Readonly<Record<string, unknown>>[]): SettleResult[] {
  const validPositions = new Set(validLeases.map((row) => rows.readInteger(row, 'position')));
  return batch.map((_, index) => (validPositions.has(index + 1) ? 'settled' : 'lost'));
}
