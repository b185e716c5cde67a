/**
 * Moves events from the outbox to deliveries, and leases, settles and purges deliveries. A lease is a due time in the
 * future and an owner: after the lease has expired, the delivery is due again.
 *
 * An event is removed from the outbox in the transaction that adds its deliveries. The worker keeps no position in the
 * outbox, so an event that becomes visible after later events is not skipped (docs/decisions/webhooks.md).
 */
import {
  type DeliverySettlement,
  type DeliverySettleResult,
  type DisabledReason,
  getEventBit,
  type LeasedDelivery,
  WEBHOOK_TEST_TYPE,
  type Webhook,
  type WebhookAttempt,
} from '../../model/webhook.ts';
import { buildWebhookDisabledData } from '../../model/webhook-payload.ts';
import { recordResourceEvent } from '../outbox.ts';
import { getMinIdAt } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import {
  addAttempt,
  collectEffects,
  decideFailingSince,
  type EndpointEffect,
  MAX_DELIVERIES_PER_STEP,
  mustStoreSuccess,
  receivesEvent,
  SERVICE_ACCOUNT_ID,
  toDeliveryId,
  toOutboxEvent,
  toRecordedEvent,
  toSubscriber,
  toWebhook,
} from '../rules/webhooks.ts';
import type { DeliveryClaimLimits, WebhookWorkerStore } from '../webhook-store.ts';
import { type Database, forceDurableCommit, type Row, type Statement, type Transaction } from './session.ts';
import { LOCK_WEBHOOK, SELECT_WEBHOOKS } from './webhooks.ts';

// The position of an entry in the history of its message is the number of entries up to and including this entry. The
// entries of a message are written under a lock, so if an entry is visible, all earlier entries of the message are
// visible.
const LOCK_EVENTS: Statement = {
  name: 'outbox_lock',
  text: `SELECT o.position, o.xid::text::bigint AS "order", o.type, o.account_id, o.message_id, o.state, o.suppressed, o.at, o.data,
      o.webhook_id, CASE WHEN o.n IS NULL THEN o.sequence
        ELSE (SELECT count(*) FROM event e WHERE e.id = o.message_id AND e.n <= o.n)::int END AS sequence,
      CASE WHEN o.message_id IS NULL THEN o.at < $2
        WHEN o.message_id >= $3::uuid THEN false
        WHEN o.n IS NOT NULL THEN (SELECT e.at < $2 FROM event e WHERE e.id = o.message_id AND e.n = o.n)
        WHEN o.sequence = 0 THEN true
        ELSE (SELECT v.at < $2 FROM event v WHERE v.id = o.message_id ORDER BY v.n OFFSET greatest(o.sequence - 1, 0) LIMIT 1)
      END AS expired
    FROM outbox o ORDER BY o.position LIMIT $1 FOR UPDATE OF o SKIP LOCKED`,
};
const SELECT_SUBSCRIBERS: Statement = {
  name: 'outbox_subscribers',
  text: 'SELECT id, account_id, events, start FROM webhook WHERE NOT removed ORDER BY id',
};
const INSERT_DELIVERIES: Statement = {
  name: 'outbox_deliveries',
  text: `INSERT INTO webhook_delivery (webhook_id, id, type, message_id, sequence, state, suppressed, at, data, status, due_at, created_at)
    SELECT webhook_id, id, type, message_id, sequence, state, suppressed, at, data, 'pending', $10, $10
    FROM unnest($1::int[], $2::uuid[], $3::text[], $4::uuid[], $5::int[], $6::text[], $7::boolean[],
      $8::bigint[], $9::text[]) AS d(webhook_id, id, type, message_id, sequence, state, suppressed, at, data)`,
};
const DELETE_EVENTS: Statement = {
  name: 'outbox_delete',
  text: 'DELETE FROM outbox WHERE position = ANY($1::bigint[])',
};

/** The maximum number of endpoints that one claim examines. */
const MAX_EXAMINED_WEBHOOKS = 1_000;
// Selects the next endpoints with pending deliveries in order of id, with the earliest due time of each.
const EXAMINE_WEBHOOKS: Statement = {
  name: 'webhook_examine',
  text: `WITH RECURSIVE seen AS (
      (SELECT webhook_id, due_at FROM webhook_delivery WHERE status = 'pending' AND webhook_id > $1
       ORDER BY webhook_id, due_at LIMIT 1)
      UNION ALL
      SELECT n.webhook_id, n.due_at FROM seen s CROSS JOIN LATERAL (
        SELECT d.webhook_id, d.due_at FROM webhook_delivery d WHERE d.status = 'pending' AND d.webhook_id > s.webhook_id
        ORDER BY d.webhook_id, d.due_at LIMIT 1) n
    ), examined AS (SELECT * FROM seen LIMIT ${MAX_EXAMINED_WEBHOOKS})
    SELECT e.webhook_id, e.due_at, w.id IS NOT NULL AS enabled FROM examined e
      LEFT JOIN webhook w ON w.id = e.webhook_id AND w.disabled_at IS NULL AND NOT w.removed ORDER BY e.webhook_id`,
};
// The statement reads the endpoints in the order of $1 until it reaches the limit $6. The rows are locked, so their
// positions in the table (ctid) cannot change. A join by key would read the whole table, because the planner
// overestimates the number of joined rows.
const LEASE_DELIVERIES: Statement = {
  name: 'webhook_lease',
  text: `WITH due AS MATERIALIZED (
      SELECT d.row FROM unnest($1::int[], $2::int[]) AS t(webhook_id, share) CROSS JOIN LATERAL (
        SELECT p.ctid AS row FROM webhook_delivery p
        WHERE p.status = 'pending' AND p.webhook_id = t.webhook_id AND p.due_at <= $3
        ORDER BY p.due_at LIMIT t.share FOR UPDATE SKIP LOCKED) d
      LIMIT $6
    ), leased AS (
      UPDATE webhook_delivery d SET due_at = $4, owner = $5, lease = d.lease + 1
      WHERE d.ctid = ANY(ARRAY(SELECT row FROM due)) RETURNING d.*
    )
    SELECT l.id, l.webhook_id, l.type, l.message_id, l.sequence, l.state, l.suppressed, l.at, l.data, l.lease, l.attempt,
      w.sealed_url, w.sealed, w.previous_sealed, w.previous_until,
      m.key_id, m.accepted_at, m."to", m."from", m.subject, a.name AS account,
      e.at AS entry_at, e.verb, e.by, e.detail, e.failure, e.attempt AS entry_attempt
    FROM leased l JOIN webhook w ON w.id = l.webhook_id
      LEFT JOIN mail_request m ON m.id = l.message_id
      LEFT JOIN account a ON a.id = m.account_id
      LEFT JOIN LATERAL (SELECT v.at, v.verb, v.by, v.detail, v.failure, v.attempt FROM event v
        WHERE l.sequence > 0 AND v.id = l.message_id ORDER BY v.n OFFSET greatest(l.sequence - 1, 0) LIMIT 1) e ON true
    ORDER BY l.webhook_id, l.id`,
};
// A change of an endpoint waits for transactions that have an id (`waitForEarlierTransactions`). The transaction that
// leases deliveries must therefore have an id before its snapshot reads the endpoints.
const ASSIGN_ID: Statement = { name: 'webhook_assign_id', text: 'SELECT pg_current_xact_id()' };
const VALID_LEASES = `SELECT d.webhook_id, d.id, d.type, d.attempts, s.position
  FROM (SELECT * FROM unnest($1::int[], $2::uuid[], $3::text[], $4::int[]) WITH ORDINALITY AS u(webhook_id, id, owner, lease, position)
    ORDER BY webhook_id, id) s
  CROSS JOIN LATERAL (
    SELECT w.webhook_id, w.id, w.type, w.attempts FROM webhook_delivery w
    WHERE w.webhook_id = s.webhook_id AND w.id = s.id AND w.owner = s.owner AND w.lease = s.lease AND w.status || '' = 'pending'
    FOR UPDATE) d`;
const LOCK_LEASES: Statement = { name: 'webhook_lock_leases', text: VALID_LEASES };
const SETTLE_DELIVERIES: Statement = {
  name: 'webhook_settle',
  text: `UPDATE webhook_delivery d SET status = s.status, due_at = s.due_at, owner = NULL, attempt = d.attempt + 1,
      attempts = s.attempts, ended_at = s.ended_at
    FROM unnest($1::int[], $2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::bigint[])
      AS s(webhook_id, id, status, due_at, attempts, ended_at)
    WHERE d.webhook_id = s.webhook_id AND d.id = s.id`,
};
const RELEASE_LEASES: Statement = {
  name: 'webhook_release_leases',
  text: `WITH valid AS MATERIALIZED (${VALID_LEASES})
    UPDATE webhook_delivery d SET due_at = $5, owner = NULL FROM valid v WHERE d.webhook_id = v.webhook_id AND d.id = v.id`,
};
const READ_FAILING_SINCE: Statement = {
  name: 'webhook_read_failing',
  text: 'SELECT id, failing_since, last_success_at FROM webhook WHERE id = ANY($1::int[]) AND NOT removed',
};
const SET_LAST_SUCCESS: Statement = {
  name: 'webhook_set_last_success',
  text: 'UPDATE webhook SET last_success_at = greatest(last_success_at, $2) WHERE id = $1',
};
const SET_FAILING_SINCE: Statement = {
  name: 'webhook_set_failing',
  text: 'UPDATE webhook SET failing_since = $2 WHERE id = $1',
};
const DISABLE_WEBHOOK: Statement = {
  name: 'webhook_disable_for',
  text: 'UPDATE webhook SET disabled_reason = $2, disabled_at = $3 WHERE id = $1',
};
const LOCK_FAILING_WEBHOOKS: Statement = {
  name: 'webhook_lock_failing',
  text: `${SELECT_WEBHOOKS} WHERE NOT w.removed AND w.disabled_at IS NULL AND w.failing_since <= $1
    ORDER BY w.id LIMIT $2 FOR UPDATE OF w SKIP LOCKED`,
};

const PURGE_DELIVERED_DELIVERIES: Statement = {
  name: 'webhook_purge_delivered',
  text: `DELETE FROM webhook_delivery WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM webhook_delivery WHERE status = 'delivered' AND ended_at <= $1 ORDER BY ended_at LIMIT $2
      FOR UPDATE SKIP LOCKED)) RETURNING 1 AS one`,
};
const PURGE_OLD_DELIVERIES: Statement = {
  name: 'webhook_purge_old',
  text: `DELETE FROM webhook_delivery WHERE ctid = ANY(ARRAY(
      SELECT d.row FROM webhook w CROSS JOIN LATERAL (
        SELECT o.ctid AS row FROM webhook_delivery o WHERE o.webhook_id = w.id
          AND o.id < CASE WHEN w.removed THEN 'ffffffff-ffff-ffff-ffff-ffffffffffff' ELSE $1::uuid END
        ORDER BY o.id LIMIT $2 FOR UPDATE SKIP LOCKED) d LIMIT $2)) RETURNING 1 AS one`,
};

// The column `start` of an endpoint excludes events that were recorded before the endpoint was created. When the outbox
// no longer contains such an event, the value has no effect and is cleared. In a database that was restored from a
// dump, transaction ids start from a small number again, so a value that was not cleared would exclude every new event.
const CLEAR_STARTS: Statement = {
  name: 'webhook_clear_starts',
  text: `UPDATE webhook w SET start = 0 WHERE w.start > 0 AND (
      w.start > pg_snapshot_xmax(pg_current_snapshot())::text::bigint
      OR NOT EXISTS (SELECT 1 FROM outbox o WHERE o.xid::text::bigint < w.start))`,
};

type LeaseReference = Pick<LeasedDelivery, 'id' | 'webhookId' | 'owner' | 'lease'>;

export function prepareWebhookWorker(database: Database): Omit<WebhookWorkerStore, 'recoverDeliveries'> {
  return {
    fanOutEvents: (now, seed, limit, keptSince) =>
      database.transaction(async (transaction) => {
        const eventRows = await transaction.query(LOCK_EVENTS, [limit, keptSince, getMinIdAt(keptSince)]);
        if (eventRows.length === 0) return { events: 0, deliveries: 0, hasMore: false };
        // This statement runs after the events are locked, so it reads every change of a subscription that was
        // committed before one of the events was recorded.
        const subscribers = (await transaction.query(SELECT_SUBSCRIBERS, [])).map(toSubscriber);
        const deliveries: { readonly webhookId: number; readonly row: Row }[] = [];
        const positions: number[] = [];
        for (const row of eventRows) {
          if (deliveries.length >= MAX_DELIVERIES_PER_STEP) break;
          const event = toOutboxEvent(row);
          const bit = getEventBit(event.type);
          for (const subscriber of row.expired === true ? [] : subscribers)
            if (receivesEvent(subscriber, event, bit)) deliveries.push({ webhookId: subscriber.id, row });
          positions.push(rows.readInteger(row, 'position'));
        }
        await Promise.all([
          deliveries.length === 0
            ? []
            : transaction.query(INSERT_DELIVERIES, [
                deliveries.map(({ webhookId }) => webhookId),
                deliveries.map((_, index) => toDeliveryId(now, index, seed)),
                ...['type', 'message_id', 'sequence', 'state', 'suppressed', 'at', 'data'].map((column) =>
                  deliveries.map(({ row }) => row[column]),
                ),
                now,
              ]),
          transaction.query(DELETE_EVENTS, [positions]),
        ]);
        const hasMore = positions.length < eventRows.length || eventRows.length === limit;
        return { events: positions.length, deliveries: deliveries.length, hasMore };
      }),
    claimDeliveries: (limits, owner, leaseUntil, now) =>
      database.transaction(async (transaction) => {
        const examinedRows = await transaction.query(EXAMINE_WEBHOOKS, [limits.after]);
        const waitingEndpoints = listWaitingEndpoints(examinedRows, limits, now);
        const values = [
          waitingEndpoints.map(({ id }) => id),
          waitingEndpoints.map(({ free }) => free),
          now,
          leaseUntil,
          owner,
          limits.maxDeliveries,
        ];
        const [, leased] =
          waitingEndpoints.length === 0
            ? [[], []]
            : await Promise.all([transaction.query(ASSIGN_ID, []), transaction.query(LEASE_DELIVERIES, values)]);
        const deliveries = leased.map((row) => toLeasedDelivery(row, owner, now));
        const lastServedId = deliveries.at(-1)?.webhookId;
        if (deliveries.length >= limits.maxDeliveries && lastServedId !== undefined)
          return { deliveries, next: lastServedId };
        const lastExaminedRow = examinedRows.length < MAX_EXAMINED_WEBHOOKS ? undefined : examinedRows.at(-1);
        return {
          deliveries,
          next: lastExaminedRow === undefined ? null : rows.readInteger(lastExaminedRow, 'webhook_id'),
        };
      }),
    settleDeliveries: (batch, now) =>
      database.transaction((transaction) => settleInTransaction(transaction, batch, now)),
    disableFailingWebhooks: (failedBefore, now, limit) =>
      database.transaction(async (transaction) => {
        const failingWebhooks = (await transaction.query(LOCK_FAILING_WEBHOOKS, [failedBefore, limit])).map(toWebhook);
        for (const webhook of failingWebhooks) await disableForReason(transaction, webhook, 'failing', now);
        return failingWebhooks.map(({ id }) => id);
      }),
    async releaseDeliveryLeases(batch, now) {
      if (batch.length > 0) await database.query(RELEASE_LEASES, [...toLeaseParameters(batch), now]);
    },
    async purgeDeliveries(deliveredBefore, createdBefore, limit) {
      const purgedRowLists = await Promise.all([
        database.query(PURGE_DELIVERED_DELIVERIES, [deliveredBefore, limit]),
        database.query(PURGE_OLD_DELIVERIES, [getMinIdAt(createdBefore + 1), limit]),
        database.query(CLEAR_STARTS, []),
      ]);
      return Math.max(...purgedRowLists.map(({ length }) => length));
    },
  };
}

/** Returns the enabled endpoints with due deliveries and free slots. */
function listWaitingEndpoints(
  examinedRows: readonly Row[],
  { freeSlots, defaultFreeSlots }: DeliveryClaimLimits,
  now: number,
): readonly { readonly id: number; readonly free: number }[] {
  const freeSlotsByWebhookId = new Map(freeSlots.map(({ webhookId, count }) => [webhookId, count]));
  return examinedRows.flatMap((row) => {
    const id = rows.readInteger(row, 'webhook_id');
    const freeCount = freeSlotsByWebhookId.get(id) ?? defaultFreeSlots;
    return row.enabled === true && rows.readInteger(row, 'due_at') <= now && freeCount > 0
      ? [{ id, free: freeCount }]
      : [];
  });
}

function toLeasedDelivery(row: Row, owner: string, now: number): LeasedDelivery {
  const previousSecret = rows.readTextOrNull(row, 'previous_sealed');
  const isPreviousValid = previousSecret !== null && (rows.readIntegerOrNull(row, 'previous_until') ?? 0) > now;
  return {
    id: rows.readText(row, 'id'),
    webhookId: rows.readInteger(row, 'webhook_id'),
    owner,
    lease: rows.readInteger(row, 'lease'),
    sealedUrl: rows.readText(row, 'sealed_url'),
    sealed: [rows.readText(row, 'sealed'), ...(isPreviousValid ? [previousSecret] : [])],
    attempt: rows.readInteger(row, 'attempt') + 1,
    event: readEvent(row),
  };
}

function readEvent(row: Row) {
  // The columns of a message or an entry that is no longer stored are null.
  const message = row.accepted_at === null ? null : { ...row, id: rows.readTextOrNull(row, 'message_id') };
  if (message !== null && row.sequence === 0) return toRecordedEvent(row, message, rows.toAcceptedEntry(message));
  const entry =
    row.verb === null ? null : rows.toHistoryEntry({ ...row, at: row.entry_at, attempt: row.entry_attempt });
  return toRecordedEvent(row, message, entry);
}

function toLeaseParameters(batch: readonly LeaseReference[]): unknown[] {
  return [
    batch.map(({ webhookId }) => webhookId),
    batch.map(({ id }) => id),
    batch.map(({ owner }) => owner),
    batch.map(({ lease }) => lease),
  ];
}

async function settleInTransaction(
  transaction: Transaction,
  batch: readonly DeliverySettlement[],
  now: number,
): Promise<readonly DeliverySettleResult[]> {
  const validRows = await transaction.query(LOCK_LEASES, toLeaseParameters(batch));
  const rowsByPosition = new Map(validRows.map((row) => [rows.readInteger(row, 'position'), row]));
  const validSettlements = batch.flatMap((settlement, index) => {
    const row = rowsByPosition.get(index + 1);
    return row === undefined ? [] : [{ settlement, row, isTest: row.type === WEBHOOK_TEST_TYPE }];
  });
  if (validSettlements.length === 0) {
    // The caller discards the attempts, so the transaction that ended the leases must be durable.
    await forceDurableCommit(transaction);
    return batch.map(() => ({ kind: 'lost' }));
  }
  const attempts = validSettlements.map(({ row, settlement: { attempt } }) => withAttempt(row, attempt));
  const [, endpointRows] = await Promise.all([
    transaction.query(SETTLE_DELIVERIES, [
      validSettlements.map(({ settlement }) => settlement.webhookId),
      validSettlements.map(({ settlement }) => settlement.id),
      validSettlements.map(({ settlement: { result } }) => (result.kind === 'retry' ? 'pending' : result.kind)),
      validSettlements.map(({ settlement: { result } }) => (result.kind === 'retry' ? result.dueAt : null)),
      attempts,
      validSettlements.map(({ settlement: { result } }) => (result.kind === 'retry' ? null : now)),
    ]),
    transaction.query(READ_FAILING_SINCE, [
      [...new Set(validSettlements.map(({ settlement }) => settlement.webhookId))],
    ]),
  ]);
  const endpoints = new Map(endpointRows.map((row) => [rows.readInteger(row, 'id'), row]));
  const disabledReasons = new Map<number, DisabledReason>();
  // Only the endpoints that change are locked, in order of id.
  for (const [id, effect] of collectEffects(validSettlements)) {
    const endpoint = endpoints.get(id);
    if (endpoint === undefined) continue;
    const failingSince = rows.readIntegerOrNull(endpoint, 'failing_since');
    if (mustStoreSuccess(rows.readIntegerOrNull(endpoint, 'last_success_at'), effect, now))
      await transaction.query(SET_LAST_SUCCESS, [id, now]);
    if (decideFailingSince(failingSince, effect) === failingSince && !effect.isGone) continue;
    const reason = await applyEffect(transaction, id, effect, now);
    if (reason !== null) disabledReasons.set(id, reason);
  }
  return batch.map(({ webhookId }, index): DeliverySettleResult => {
    if (!rowsByPosition.has(index + 1)) return { kind: 'lost' };
    const reason = disabledReasons.get(webhookId) ?? null;
    // Only one settlement of the batch reports that the endpoint was disabled.
    disabledReasons.delete(webhookId);
    return { kind: 'settled', disabled: reason };
  });
}

function withAttempt(row: Row, attempt: WebhookAttempt): string {
  return addAttempt(rows.readText(row, 'attempts'), attempt);
}

/**
 * Locks the row of an endpoint, and writes the effect of attempts on the endpoint. Resolves to the reason if the effect
 * disables the endpoint, and otherwise to null.
 */
async function applyEffect(
  transaction: Transaction,
  id: number,
  effect: EndpointEffect,
  now: number,
): Promise<DisabledReason | null> {
  const [row] = await transaction.query(LOCK_WEBHOOK, [id]);
  if (row === undefined) return null;
  const webhook = toWebhook(row);
  const failingSince = decideFailingSince(webhook.failingSince, effect);
  if (failingSince !== webhook.failingSince) await transaction.query(SET_FAILING_SINCE, [id, failingSince]);
  if (!effect.isGone || webhook.disabled !== null) return null;
  await disableForReason(transaction, webhook, 'gone', now);
  return 'gone';
}

/** Disables an endpoint whose row the transaction has locked. */
async function disableForReason(
  transaction: Transaction,
  webhook: Webhook,
  reason: DisabledReason,
  now: number,
): Promise<void> {
  await transaction.query(DISABLE_WEBHOOK, [webhook.id, reason, now]);
  const accountId = webhook.accountId ?? SERVICE_ACCOUNT_ID;
  const data = buildWebhookDisabledData(webhook, reason);
  await recordResourceEvent(transaction, 'webhook.disabled', accountId, now, data, webhook.id);
}
