/**
 * Marks, settles, releases and recovers leases. A settlement is valid only for the owner and the attempt count of the
 * lease. Rows are locked in order of id, so that batches of several nodes cannot deadlock.
 */

import type { EvidenceKind } from '../../model/address.ts';
import { resolveLostLease, type SettleResult, type State } from '../../model/message.ts';
import type { Store } from '../contract.ts';
import type { ServerTimeOverride } from '../environment.ts';
import {
  getLane,
  getStateAfterChange,
  type PackedSettlement,
  packSettlements,
  requireTransition,
} from '../rules/messages.ts';
import { ReputationDeltas } from '../rules/reputation.ts';
import * as rows from '../rules/rows.ts';
import { appendEvents, type EndedMessage, endMessages, type NewEvent } from './history.ts';
import { insertSuppressionEvents } from './outbox.ts';
import { addReputation, recordEvidence } from './reputation.ts';
import { type Database, forceDurableCommit, type Transaction } from './session.ts';

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
const REQUEUE_MESSAGES = `UPDATE queue q SET state = s.state, due_at = s.due_at, owner = NULL, handing_over = false,
      lane = greatest(q.lane, s.lane)::smallint, attempts = q.attempts - s.refund
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::int[], $5::int[]) AS s(id, state, due_at, lane, refund)
    WHERE q.id = s.id AND q.id = ANY($1::uuid[])`;
// This statement and imports of suppressions write rows in the same order, so that transactions cannot deadlock.
/** Returns the source and recipient of each new entry. */
export const SUPPRESS_RECIPIENTS = `WITH added AS (INSERT INTO suppression (recipient, account_id, reason, source, at)
    SELECT DISTINCT ON (r.recipient COLLATE "C", m.account_id) r.recipient, m.account_id, s.reason, m.id, s.at
    FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS s(id, reason, at) JOIN mail_request m ON m.id = s.id
      CROSS JOIN LATERAL (SELECT coalesce(m.recipient, m."to") AS recipient) r
    WHERE m.id = ANY($1::uuid[]) ORDER BY r.recipient COLLATE "C", m.account_id, s.at
    ON CONFLICT DO NOTHING RETURNING recipient, account_id, reason, source, at
    ), recorded AS (${insertSuppressionEvents('suppression.added', 'added', 's.at')})
    SELECT source, recipient FROM added`;
const LOCK_RECOVERABLE_LEASES = `SELECT q.id, q.account_id, q.owner, q.handing_over FROM queue q
    WHERE q.state = 'sending' AND NOT q.id = ANY($1::uuid[]) AND ($2
      OR (q.owner = $3 AND q.due_at <= $7)
      OR (q.owner <> $3 AND ($5 OR q.due_at <= $4) AND NOT EXISTS (SELECT 1 FROM node n
        WHERE n.name = q.owner AND n.alive_until > coalesce($8::bigint, extract(epoch FROM clock_timestamp()) * 1000))))
    ORDER BY q.id LIMIT $6 FOR UPDATE OF q SKIP LOCKED`;
const RECOVER_LEASES = `UPDATE queue q SET state = s.state, due_at = CASE s.state WHEN 'queued' THEN $3::bigint END, owner = NULL, handing_over = false,
      attempts = q.attempts - s.refund
    FROM unnest($1::uuid[], $2::text[], $4::int[]) AS s(id, state, refund)
    WHERE q.id = s.id AND q.id = ANY($1::uuid[])`;
const ADD_REFERENCES = `INSERT INTO provider_reference (reference, id, at)
    SELECT DISTINCT ON (reference COLLATE "C") * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS r(reference, id, at)
    ORDER BY reference COLLATE "C" ON CONFLICT DO NOTHING`;
const MAX_RECOVERED_LEASES = 2_000;

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
  const newlySuppressed = new Map(
    newSuppressions.map((row) => [rows.readText(row, 'source'), rows.readText(row, 'recipient')]),
  );
  const counted = validSettlements.flatMap(([{ id, changes, excludedFromReputation }, accountId]) =>
    excludedFromReputation
      ? []
      : changes.map(({ to, suppress, at }, index) => {
          // A bounce of an address that is already suppressed does not count against the account again.
          const recipient = suppress === null ? null : (newlySuppressed.get(id) ?? null);
          const kind: EvidenceKind = to === 'complained' ? 'complaint' : 'bounce';
          const evidence = recipient === null ? null : { accountId, kind, recipient, at };
          return { accountId, from: changes[index - 1]?.to ?? ('sending' as const), to, at, evidence };
        }),
  );
  const proven = await recordEvidence(
    transaction,
    counted.flatMap(({ evidence }) => evidence ?? []),
  );
  const deltas = new ReputationDeltas();
  for (const { accountId, from, to, at, evidence } of counted)
    deltas.add(
      accountId,
      from,
      to,
      { isNew: evidence !== null, isProven: evidence !== null && proven.has(evidence) },
      at,
    );
  await addReputation(transaction, deltas);
  return results;
}

function collectRows(
  { id, attempts, refundAttempt, changes }: PackedSettlement,
  accountId: number,
  settlementRows: SettlementRows,
): void {
  let from: State = 'sending';
  let lane = 0;
  for (const [index, change] of changes.entries()) {
    const { to, at, verb, by, detail, failure, attempt, isUnanswered, suppress, reference } = change;
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
      isUnanswered,
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

/** `validLeases` contains positions in the batch from 1. */
function toSettleResults(batch: LeaseBatch, validLeases: readonly Readonly<Record<string, unknown>>[]): SettleResult[] {
  const validPositions = new Set(validLeases.map((row) => rows.readInteger(row, 'position')));
  return batch.map((_, index) => (validPositions.has(index + 1) ? 'settled' : 'lost'));
}
