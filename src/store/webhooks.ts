/**
 * Stores the endpoints of webhooks, and carries out the operations of operators on deliveries. After a change of an
 * endpoint has resolved, the endpoint receives every event of its subscription that any node records.
 */
import type { ChangeResult } from '../model/account.ts';
import { type Actor, toAuditedWebhook } from '../model/audit.ts';
import { isUuid } from '../model/submission.ts';
import {
  type CreateWebhookResult,
  type DeliveryStatus,
  formatWebhookId,
  type LeasedDelivery,
  MAX_WEBHOOKS,
  type NewWebhook,
  type ReplaySelection,
  toEventMask,
  WEBHOOK_TEST_TYPE,
  type Webhook,
  type WebhookChange,
  type WebhookDelivery,
  type WebhookStatistics,
} from '../model/webhook.ts';
import { writeAudit } from './audit.ts';
import { writeSubscribedTypes } from './outbox.ts';
import { getMinIdAt } from './rules/messages.ts';
import * as rows from './rules/rows.ts';
import { SELECT_WEBHOOK, SELECT_WEBHOOKS, toDelivery, toWebhook } from './rules/webhooks.ts';
import type { Transaction } from './transaction.ts';

const MAX_LISTED_LEASES = 1_000;
const MIN_ID = '00000000-0000-0000-0000-000000000000';
const MAX_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The number from which an endpoint receives the events of the outbox: see `order` in `fanOutEvents`. */
const NEXT_ORDER = {
  sqlite: "coalesce((SELECT seq + 1 FROM sqlite_sequence WHERE name = 'outbox'), 0)",
  postgres: 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint',
} as const;

/** Selects deliveries without an attempt in progress. `$2` is the current time. */
const HAS_NO_LEASE = '(owner IS NULL OR due_at <= $2)';
const RESTART =
  "UPDATE webhook_delivery SET status = 'pending', due_at = $2, owner = NULL, attempt = 0, ended_at = NULL";

/** Serializes the changes of subscriptions. */
async function lockSubscriptions(tx: Transaction): Promise<void> {
  await tx.query('SELECT one FROM webhook_subscription FOR UPDATE');
}

export async function createWebhook(
  tx: Transaction,
  { url, sealedUrl, account, name, events, sealed }: NewWebhook,
  now: number,
  actor?: Actor,
): Promise<CreateWebhookResult> {
  await lockSubscriptions(tx);
  const [accountRow] = account === null ? [] : await tx.query('SELECT id FROM account WHERE name = $1', [account]);
  if (account !== null && accountRow === undefined) return { kind: 'missing' };
  const [stored = {}] = await tx.query('SELECT count(*)::int AS n FROM webhook WHERE id > 0 AND NOT removed');
  if (rows.readInteger(stored, 'n') >= MAX_WEBHOOKS) return { kind: 'too-many' };
  const [inserted = {}] = await tx.query(
    `INSERT INTO webhook (url, sealed_url, account_id, name, events, sealed, created_at, start)
     VALUES ($1, $2, $3, $4, $5, $6, $7, ${NEXT_ORDER[tx.dialect]}) RETURNING id`,
    [url, sealedUrl, accountRow?.id ?? null, name, toEventMask(events), sealed, now],
  );
  await writeSubscribedTypes(tx);
  const webhook = await findWebhook(tx, rows.readInteger(inserted, 'id'));
  if (webhook === null) return { kind: 'missing' };
  await writeAudit(tx, actor, 'webhook.create', formatWebhookId(webhook.id), null, toAuditedWebhook(webhook));
  return { kind: 'done', value: webhook };
}

/** In order of id. */
export async function listWebhooks(tx: Transaction): Promise<readonly Webhook[]> {
  return (await tx.query(`${SELECT_WEBHOOKS} WHERE w.id > 0 AND NOT w.removed ORDER BY w.id`)).map(toWebhook);
}

export async function findWebhook(tx: Transaction, id: number): Promise<Webhook | null> {
  const [row] = await tx.query(SELECT_WEBHOOK, [id]);
  return row === undefined ? null : toWebhook(row);
}

/** Changes an endpoint under the lock of its row. */
async function changeWebhook(
  tx: Transaction,
  id: number,
  action: string,
  actor: Actor | undefined,
  write: (before: Webhook) => Promise<unknown>,
): Promise<ChangeResult<Webhook>> {
  const [row] = await tx.query(`${SELECT_WEBHOOK} FOR UPDATE OF w`, [id]);
  if (row === undefined) return { kind: 'missing' };
  const before = toWebhook(row);
  await write(before);
  const after = await findWebhook(tx, id);
  const audited = after === null ? null : toAuditedWebhook(after);
  await writeAudit(tx, actor, action, formatWebhookId(id), toAuditedWebhook(before), audited);
  return { kind: 'done', value: after ?? before };
}

export function updateWebhook(
  tx: Transaction,
  id: number,
  changes: WebhookChange,
  actor?: Actor,
): Promise<ChangeResult<Webhook>> {
  return changeWebhook(tx, id, 'webhook.update', actor, async (before) => {
    const { url, sealedUrl, name, events } = { ...before, ...changes };
    await lockSubscriptions(tx);
    await tx.query('UPDATE webhook SET url = $2, sealed_url = $3, name = $4, events = $5 WHERE id = $1', [
      id,
      url,
      sealedUrl,
      name,
      toEventMask(events),
    ]);
    await writeSubscribedTypes(tx);
  });
}

/** The caller must then make the deliveries of the endpoint due (`releaseDeliveries`). */
export function enableWebhook(tx: Transaction, id: number, actor?: Actor): Promise<ChangeResult<Webhook>> {
  return changeWebhook(tx, id, 'webhook.enable', actor, () =>
    tx.query(
      `UPDATE webhook SET disabled_reason = NULL, disabled_at = NULL, failing_since = NULL
       WHERE id = $1 AND disabled_at IS NOT NULL`,
      [id],
    ),
  );
}

/** Events for the endpoint are still recorded. One that the service has disabled gets the reason `operator`. */
export function disableWebhook(
  tx: Transaction,
  id: number,
  now: number,
  actor?: Actor,
): Promise<ChangeResult<Webhook>> {
  return changeWebhook(tx, id, 'webhook.disable', actor, async ({ disabled }) => {
    if (disabled?.reason === 'operator') return;
    await tx.query(`UPDATE webhook SET disabled_reason = 'operator', disabled_at = $2 WHERE id = $1`, [id, now]);
  });
}

/** Attempts are also signed with the previous secret until `previousUntil`. */
export function rotateWebhookSecret(
  tx: Transaction,
  id: number,
  sealed: string,
  previousUntil: number,
  actor?: Actor,
): Promise<ChangeResult<Webhook>> {
  return changeWebhook(tx, id, 'webhook.rotate', actor, () =>
    tx.query('UPDATE webhook SET previous_sealed = sealed, previous_until = $2, sealed = $3 WHERE id = $1', [
      id,
      previousUntil,
      sealed,
    ]),
  );
}

/** After the deletion no claim returns deliveries of the endpoint; `purgeDeliveries` removes them. */
export function deleteWebhook(tx: Transaction, id: number, actor?: Actor): Promise<ChangeResult<Webhook>> {
  return changeWebhook(tx, id, 'webhook.delete', actor, async () => {
    await lockSubscriptions(tx);
    await tx.query(
      `UPDATE webhook SET removed = true, url = '', sealed_url = '', events = 0, sealed = '', previous_sealed = NULL
       WHERE id = $1`,
      [id],
    );
    await writeSubscribedTypes(tx);
  });
}

/** `deliveryId` is a UUIDv7. Resolves to `exists` if the endpoint is disabled. */
export async function addTestDelivery(
  tx: Transaction,
  id: number,
  deliveryId: string,
  now: number,
  actor?: Actor,
): Promise<ChangeResult<WebhookDelivery>> {
  const [webhook] = await tx.query(`${SELECT_WEBHOOK} FOR UPDATE OF w`, [id]);
  if (webhook === undefined) return { kind: 'missing' };
  if (webhook.disabled_at !== null) return { kind: 'exists' };
  const target = formatWebhookId(id);
  const [row = {}] = await tx.query(
    `INSERT INTO webhook_delivery (webhook_id, id, type, at, data, status, due_at, created_at)
     VALUES ($1, $2, '${WEBHOOK_TEST_TYPE}', $3, $4, 'pending', $3, $3) RETURNING *`,
    [id, deliveryId, now, JSON.stringify({ id: target })],
  );
  await writeAudit(tx, actor, 'webhook.test', target, null, { delivery: deliveryId });
  return { kind: 'done', value: toDelivery(row) };
}

/** Newest first, with ids less than `before`. */
export async function listDeliveries(
  tx: Transaction,
  id: number,
  status: DeliveryStatus | null,
  before: string | null,
  limit: number,
): Promise<ChangeResult<readonly WebhookDelivery[]>> {
  if ((await findWebhook(tx, id)) === null) return { kind: 'missing' };
  // The status is part of the text, so that the index of failed deliveries is used.
  const found = await tx.query(
    `SELECT * FROM webhook_delivery WHERE webhook_id = $1 AND id < $2::uuid
       ${status === null ? '' : `AND status = '${status}'`} ORDER BY id DESC LIMIT $3`,
    [id, before ?? MAX_ID, limit],
  );
  return { kind: 'done', value: found.map(toDelivery) };
}

async function selectDelivery(tx: Transaction, id: number, deliveryId: string): Promise<WebhookDelivery | null> {
  const [row] = await tx.query('SELECT * FROM webhook_delivery WHERE webhook_id = $1 AND id = $2::uuid', [
    id,
    deliveryId,
  ]);
  return row === undefined ? null : toDelivery(row);
}

export async function findDelivery(tx: Transaction, id: number, deliveryId: string): Promise<WebhookDelivery | null> {
  if (!isUuid(deliveryId) || (await findWebhook(tx, id)) === null) return null;
  return selectDelivery(tx, id, deliveryId);
}

/** The leases that end later than `after` and no later than `until`. The endpoint may already be deleted. */
export async function listDeliveryLeases(
  tx: Transaction,
  id: number,
  after: number,
  until: number,
): Promise<readonly Pick<LeasedDelivery, 'id' | 'lease'>[]> {
  const leases = await tx.query(
    `SELECT id, lease FROM webhook_delivery WHERE status = 'pending' AND webhook_id = $1 AND due_at > $2 AND due_at <= $3
       AND owner IS NOT NULL LIMIT ${MAX_LISTED_LEASES}`,
    [id, after, until],
  );
  return leases.map((row) => ({ id: rows.readText(row, 'id'), lease: rows.readInteger(row, 'lease') }));
}

/** Makes a delivery in any status due and restarts its schedule, unless its attempt is in progress. */
export async function replayDelivery(
  tx: Transaction,
  id: number,
  deliveryId: string,
  now: number,
  actor?: Actor,
): Promise<ChangeResult<WebhookDelivery>> {
  if (!isUuid(deliveryId) || (await findWebhook(tx, id)) === null) return { kind: 'missing' };
  await tx.query(`${RESTART} WHERE webhook_id = $1 AND id = $3::uuid AND ${HAS_NO_LEASE}`, [id, now, deliveryId]);
  const delivery = await selectDelivery(tx, id, deliveryId);
  if (delivery === null) return { kind: 'missing' };
  await writeAudit(tx, actor, 'webhook.replay', formatWebhookId(id), null, { delivery: deliveryId });
  return { kind: 'done', value: delivery };
}

/**
 * Replays the selected deliveries with ids greater than `after`, in order of id. Reads at most `limit` rows. `next` is the
 * id after which the next call continues, or null at the end. Only the call with `after` null writes an audit log entry.
 */
export async function replayDeliveries(
  tx: Transaction,
  id: number,
  selection: ReplaySelection,
  after: string | null,
  now: number,
  limit: number,
  actor?: Actor,
): Promise<ChangeResult<{ readonly replayed: number; readonly next: string | null }>> {
  if ((await findWebhook(tx, id)) === null) return { kind: 'missing' };
  if (after === null) await writeAudit(tx, actor, 'webhook.replay', formatWebhookId(id), null, selection);
  const following = await tx.query(
    `SELECT id FROM webhook_delivery WHERE webhook_id = $1 AND id > $2::uuid AND id >= $3::uuid
     ORDER BY id LIMIT $4 FOR UPDATE`,
    [id, after ?? MIN_ID, getMinIdAt(selection.since), limit],
  );
  const ids = following.map((row) => rows.readText(row, 'id'));
  const replayed = await tx.query(
    `${RESTART} WHERE webhook_id = $1 AND id = ANY($3::uuid[]) AND ($4 OR status <> 'delivered') AND ${HAS_NO_LEASE}
     RETURNING 1 AS one`,
    [id, now, ids, selection.includesDelivered],
  );
  const next = ids.length < limit ? null : (ids.at(-1) ?? null);
  return { kind: 'done', value: { replayed: replayed.length, next } };
}

/** Counts the deliveries that `replayDeliveries` would replay. */
export async function countReplayable(
  tx: Transaction,
  id: number,
  { since, includesDelivered }: ReplaySelection,
  now: number,
): Promise<ChangeResult<number>> {
  if ((await findWebhook(tx, id)) === null) return { kind: 'missing' };
  const [row = {}] = await tx.query(
    `SELECT count(*)::int AS n FROM webhook_delivery
     WHERE webhook_id = $1 AND id >= $3::uuid AND ${HAS_NO_LEASE} AND ($4 OR status <> 'delivered')`,
    [id, now, getMinIdAt(since), includesDelivered],
  );
  return { kind: 'done', value: rows.readInteger(row, 'n') };
}

/**
 * Makes up to `limit` pending deliveries without an attempt in progress due. Resolves to their number: more may remain if
 * it equals `limit`.
 */
export async function releaseDeliveries(tx: Transaction, id: number, now: number, limit: number): Promise<number> {
  const released = await tx.query(
    `UPDATE webhook_delivery SET due_at = $2 WHERE webhook_id = $1 AND id = ANY(ARRAY(
       SELECT id FROM webhook_delivery WHERE status = 'pending' AND webhook_id = $1 AND due_at > $2 AND owner IS NULL
       LIMIT $3 FOR UPDATE SKIP LOCKED)) RETURNING 1 AS one`,
    [id, now, limit],
  );
  return released.length;
}

/** Of every endpoint that has a pending or failed delivery, by id. */
export async function readWebhookStatistics(tx: Transaction): Promise<readonly WebhookStatistics[]> {
  const found = await tx.query(
    `SELECT w.id, coalesce(p.n, 0)::int AS pending, p.oldest, coalesce(f.n, 0)::int AS failed
     FROM webhook w LEFT JOIN (
         SELECT webhook_id, count(*) AS n, min(created_at) AS oldest FROM webhook_delivery
         WHERE status = 'pending' GROUP BY webhook_id) p ON p.webhook_id = w.id
       LEFT JOIN (SELECT webhook_id, count(*) AS n FROM webhook_delivery
         WHERE status = 'failed' GROUP BY webhook_id) f ON f.webhook_id = w.id
     WHERE w.id > 0 AND NOT w.removed AND (p.n > 0 OR f.n > 0) ORDER BY w.id`,
  );
  return found.map((row) => ({
    webhookId: rows.readInteger(row, 'id'),
    pendingCount: rows.readInteger(row, 'pending'),
    oldestPendingAt: rows.readIntegerOrNull(row, 'oldest'),
    failedCount: rows.readInteger(row, 'failed'),
  }));
}
