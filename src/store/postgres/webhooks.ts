/** Stores the endpoints of webhooks, and carries out the operations of operators on deliveries. */
import type { ChangeResult } from '../../model/account.ts';
import { type Actor, toAuditedWebhook } from '../../model/audit.ts';
import { isUuid } from '../../model/submission.ts';
import {
  type DeliveryStatus,
  formatWebhookId,
  MAX_WEBHOOKS,
  toEventMask,
  WEBHOOK_TEST_TYPE,
  type Webhook,
  type WebhookStatistics,
} from '../../model/webhook.ts';
import { writeAudit } from '../audit.ts';
import { getMinIdAt } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { MAX_LISTED_LEASES, toDelivery, toWebhook } from '../rules/webhooks.ts';
import type { WebhookStore } from '../webhook-store.ts';
import { waitForEarlierTransactions } from './outbox.ts';
import type { Database, Row, Session, Statement, Transaction } from './session.ts';

/** Selects endpoints as `w`, with the names of their accounts. */
export const SELECT_WEBHOOKS =
  'SELECT w.*, a.name AS account FROM webhook w LEFT JOIN account a ON a.id = w.account_id';
const SELECT_ALL: Statement = { name: 'webhook_all', text: `${SELECT_WEBHOOKS} WHERE NOT w.removed ORDER BY w.id` };
/** Selects an endpoint. The id may be any number that an operator has entered. */
export const SELECT_WEBHOOK: Statement = {
  name: 'webhook_by_id',
  text: `${SELECT_WEBHOOKS} WHERE w.id = $1::bigint AND NOT w.removed`,
};
/** Selects and locks an endpoint. */
export const LOCK_WEBHOOK: Statement = {
  name: 'webhook_lock',
  text: `${SELECT_WEBHOOKS} WHERE w.id = $1::bigint AND NOT w.removed FOR UPDATE OF w`,
};
// The lock on this row serializes the changes of subscriptions.
const LOCK_TYPES: Statement = { name: 'webhook_lock_types', text: 'SELECT one FROM webhook_subscription FOR UPDATE' };
const WRITE_TYPES: Statement = {
  name: 'webhook_write_types',
  text: 'UPDATE webhook_subscription SET events = (SELECT coalesce(bit_or(events), 0) FROM webhook WHERE NOT removed)',
};
/** Writes the event types to which the endpoints subscribe. */
export async function writeSubscribedTypes(session: Session): Promise<void> {
  await session.query(WRITE_TYPES, []);
}

const SELECT_ACCOUNT_ID: Statement = { name: 'webhook_account', text: 'SELECT id FROM account WHERE name = $1' };
const COUNT_WEBHOOKS: Statement = {
  name: 'webhook_count',
  text: 'SELECT count(*)::int AS n FROM webhook WHERE NOT removed',
};
const INSERT_WEBHOOK: Statement = {
  name: 'webhook_insert',
  text: `INSERT INTO webhook (url, sealed_url, account_id, name, events, sealed, created_at, start)
    VALUES ($1, $2, $3, $4, $5, $6, $7, pg_snapshot_xmin(pg_current_snapshot())::text::bigint) RETURNING id`,
};
const UPDATE_WEBHOOK: Statement = {
  name: 'webhook_update',
  text: 'UPDATE webhook SET url = $2, sealed_url = $3, name = $4, events = $5 WHERE id = $1',
};
const ENABLE_WEBHOOK: Statement = {
  name: 'webhook_enable',
  text: `UPDATE webhook SET disabled_reason = NULL, disabled_at = NULL, failing_since = NULL
    WHERE id = $1 AND disabled_at IS NOT NULL`,
};
const DISABLE_WEBHOOK: Statement = {
  name: 'webhook_disable',
  text: `UPDATE webhook SET disabled_reason = 'operator', disabled_at = $2
    WHERE id = $1 AND disabled_reason IS DISTINCT FROM 'operator'`,
};
const ROTATE_SECRET: Statement = {
  name: 'webhook_rotate',
  text: 'UPDATE webhook SET previous_sealed = sealed, previous_until = $2, sealed = $3 WHERE id = $1',
};
const MARK_WEBHOOK_REMOVED: Statement = {
  name: 'webhook_mark_removed',
  text: `UPDATE webhook SET removed = true, url = '', sealed_url = '', events = 0, sealed = '', previous_sealed = NULL WHERE id = $1`,
};

const INSERT_TEST_DELIVERY: Statement = {
  name: 'webhook_insert_test',
  text: `INSERT INTO webhook_delivery (webhook_id, id, type, at, data, status, due_at, created_at)
    VALUES ($1, $2, '${WEBHOOK_TEST_TYPE}', $3, $4, 'pending', $3, $3) RETURNING *`,
};
const LIST_DELIVERIES: Statement = {
  name: 'webhook_deliveries',
  text: 'SELECT * FROM webhook_delivery WHERE webhook_id = $1 AND id < $2::uuid ORDER BY id DESC LIMIT $3',
};
const LIST_FAILED_DELIVERIES: Statement = {
  name: 'webhook_failed_deliveries',
  text: `SELECT * FROM webhook_delivery WHERE webhook_id = $1 AND id < $2::uuid AND status = 'failed' ORDER BY id DESC LIMIT $3`,
};
const LIST_DELIVERIES_BY_STATUS: Statement = {
  name: 'webhook_deliveries_by_status',
  text: 'SELECT * FROM webhook_delivery WHERE webhook_id = $1 AND id < $2::uuid AND status = $4 ORDER BY id DESC LIMIT $3',
};
const SELECT_DELIVERY: Statement = {
  name: 'webhook_delivery',
  text: 'SELECT * FROM webhook_delivery WHERE webhook_id = $1 AND id = $2::uuid',
};
const LIST_LEASES: Statement = {
  name: 'webhook_leases',
  text: `SELECT id, lease FROM webhook_delivery WHERE status = 'pending' AND webhook_id = $1 AND due_at > $2 AND due_at <= $3
    AND owner IS NOT NULL LIMIT ${MAX_LISTED_LEASES}`,
};
const HAS_NO_LEASE = '(owner IS NULL OR due_at <= $3)';
const REPLAY_DELIVERY: Statement = {
  name: 'webhook_replay_one',
  text: `UPDATE webhook_delivery SET status = 'pending', due_at = $3, owner = NULL, attempt = 0, ended_at = NULL
    WHERE webhook_id = $1 AND id = $2::uuid AND ${HAS_NO_LEASE} RETURNING *`,
};
const REPLAY_FOLLOWING_DELIVERIES: Statement = {
  name: 'webhook_replay_following',
  text: `WITH following AS MATERIALIZED (
      SELECT id, status, owner, due_at FROM webhook_delivery
      WHERE webhook_id = $1 AND id > $2::uuid AND id >= $5::uuid ORDER BY id LIMIT $4 FOR UPDATE
    ), replayed AS (
      UPDATE webhook_delivery d SET status = 'pending', due_at = $3, owner = NULL, attempt = 0, ended_at = NULL
      WHERE d.webhook_id = $1 AND d.id = ANY(ARRAY(
        SELECT id FROM following WHERE ($6 OR status <> 'delivered') AND ${HAS_NO_LEASE}))
      RETURNING 1
    )
    SELECT (SELECT count(*) FROM replayed)::int AS replayed, (SELECT count(*) FROM following)::int AS read,
      (SELECT id FROM following ORDER BY id DESC LIMIT 1) AS last`,
};
const COUNT_REPLAYABLE_DELIVERIES: Statement = {
  name: 'webhook_count_replayable',
  text: `SELECT count(*)::int AS n FROM webhook_delivery
    WHERE webhook_id = $1 AND id >= $2::uuid AND ${HAS_NO_LEASE} AND ($4 OR status <> 'delivered')`,
};
const MAKE_PENDING_DELIVERIES_DUE: Statement = {
  name: 'webhook_release_due',
  text: `UPDATE webhook_delivery SET due_at = $2 WHERE webhook_id = $1 AND id = ANY(ARRAY(
      SELECT id FROM webhook_delivery WHERE status = 'pending' AND webhook_id = $1 AND due_at > $2 AND owner IS NULL
      LIMIT $3 FOR UPDATE SKIP LOCKED)) RETURNING 1 AS one`,
};
const COUNT_PENDING_DELIVERIES: Statement = {
  name: 'webhook_count_pending',
  text: `SELECT webhook_id, count(*)::int AS pending, min(created_at) AS oldest FROM webhook_delivery
    WHERE status = 'pending' GROUP BY webhook_id`,
};
const COUNT_FAILED_DELIVERIES: Statement = {
  name: 'webhook_count_failed',
  text: `SELECT webhook_id, count(*)::int AS failed FROM webhook_delivery WHERE status = 'failed' GROUP BY webhook_id`,
};

/** The remedies if the wait for earlier transactions fails after a change, by the verb of the change. */
const DEFAULT_REMEDY = 'then repeat the command';
const REMEDIES_BY_VERB: Readonly<Record<string, string>> = {
  delete: 'which completes the change',
  rotate: 'then rotate the signing secret again, because the new secret was not shown',
};

const MIN_ID = '00000000-0000-0000-0000-000000000000';
const MAX_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

export function prepareWebhooks(database: Database): WebhookStore {
  /**
   * Changes an endpoint under the lock of its row, and writes the audit log entry. Resolves when no
   * transaction still uses the previous version of the endpoint.
   */
  async function changeWebhook(
    id: number,
    action: string,
    actor: Actor | undefined,
    write: (transaction: Transaction, before: Webhook) => Promise<unknown>,
  ): Promise<ChangeResult<Webhook>> {
    const result = await database.transaction(async (transaction): Promise<ChangeResult<Webhook>> => {
      const [row] = await transaction.query(LOCK_WEBHOOK, [id]);
      if (row === undefined) return { kind: 'missing' };
      const before = toWebhook(row);
      await write(transaction, before);
      const after = await findWebhook(transaction, id);
      const auditedWebhook = after === null ? null : toAuditedWebhook(after);
      await writeAudit(transaction, actor, action, formatWebhookId(id), toAuditedWebhook(before), auditedWebhook);
      return { kind: 'done', value: after ?? before };
    });
    if (result.kind === 'done') {
      const verb = action.slice('webhook.'.length);
      await waitForEarlierTransactions(
        database,
        `the change of endpoint ${formatWebhookId(id)} (${verb})`,
        REMEDIES_BY_VERB[verb] ?? DEFAULT_REMEDY,
      );
    }
    return result;
  }

  /** Changes an endpoint and updates the stored set of subscribed event types. */
  function changeSubscription(
    id: number,
    action: string,
    actor: Actor | undefined,
    write: (transaction: Transaction, before: Webhook) => Promise<unknown>,
  ): Promise<ChangeResult<Webhook>> {
    return changeWebhook(id, action, actor, async (transaction, before) => {
      await transaction.query(LOCK_TYPES, []);
      await write(transaction, before);
      await writeSubscribedTypes(transaction);
    });
  }

  return {
    async createWebhook({ url, sealedUrl, account, name, events, sealed }, now, actor) {
      const result = await database.transaction(async (transaction) => {
        await transaction.query(LOCK_TYPES, []);
        const [accountRow] = account === null ? [] : await transaction.query(SELECT_ACCOUNT_ID, [account]);
        if (account !== null && accountRow === undefined) return { kind: 'missing' } as const;
        const [count = {}] = await transaction.query(COUNT_WEBHOOKS, []);
        if (rows.readInteger(count, 'n') >= MAX_WEBHOOKS) return { kind: 'too-many' } as const;
        const accountId = accountRow === undefined ? null : rows.readInteger(accountRow, 'id');
        const values = [url, sealedUrl, accountId, name, toEventMask(events), sealed, now];
        const [inserted = {}] = await transaction.query(INSERT_WEBHOOK, values);
        await writeSubscribedTypes(transaction);
        const createdWebhook = await findWebhook(transaction, rows.readInteger(inserted, 'id'));
        if (createdWebhook === null) return { kind: 'missing' } as const;
        const target = formatWebhookId(createdWebhook.id);
        await writeAudit(transaction, actor, 'webhook.create', target, null, toAuditedWebhook(createdWebhook));
        return { kind: 'done', value: createdWebhook } as const;
      });
      if (result.kind === 'done') {
        const webhookId = formatWebhookId(result.value.id);
        const remedy = 'then rotate the signing secret of the endpoint, because the secret was not shown';
        await waitForEarlierTransactions(database, `the creation of endpoint ${webhookId}`, remedy);
      }
      return result;
    },
    listWebhooks: async () => (await database.query(SELECT_ALL, [])).map(toWebhook),
    findWebhook: (id) => findWebhook(database, id),
    updateWebhook: (id, changes, actor) =>
      changeSubscription(id, 'webhook.update', actor, (transaction, before) => {
        const { url, sealedUrl, name, events } = { ...before, ...changes };
        return transaction.query(UPDATE_WEBHOOK, [id, url, sealedUrl, name, toEventMask(events)]);
      }),
    enableWebhook: (id, actor) =>
      changeWebhook(id, 'webhook.enable', actor, (transaction) => transaction.query(ENABLE_WEBHOOK, [id])),
    disableWebhook: (id, now, actor) =>
      changeWebhook(id, 'webhook.disable', actor, (transaction) => transaction.query(DISABLE_WEBHOOK, [id, now])),
    rotateWebhookSecret: (id, sealed, previousUntil, actor) =>
      changeWebhook(id, 'webhook.rotate', actor, (transaction) =>
        transaction.query(ROTATE_SECRET, [id, previousUntil, sealed]),
      ),
    deleteWebhook: (id, actor) =>
      changeSubscription(id, 'webhook.delete', actor, (transaction) => transaction.query(MARK_WEBHOOK_REMOVED, [id])),
    addTestDelivery(id, deliveryId, now, actor) {
      return database.transaction(async (transaction) => {
        const [webhook] = await transaction.query(LOCK_WEBHOOK, [id]);
        if (webhook === undefined) return { kind: 'missing' };
        if (webhook.disabled_at !== null) return { kind: 'exists' };
        const data = JSON.stringify({ id: formatWebhookId(id) });
        const [row = {}] = await transaction.query(INSERT_TEST_DELIVERY, [id, deliveryId, now, data]);
        const target = formatWebhookId(id);
        await writeAudit(transaction, actor, 'webhook.test', target, null, { delivery: deliveryId });
        return { kind: 'done', value: toDelivery(row) };
      });
    },
    async listDeliveries(id, status: DeliveryStatus | null, before, limit) {
      if ((await findWebhook(database, id)) === null) return { kind: 'missing' };
      const values = [id, before ?? MAX_ID, limit];
      const deliveryRows =
        status === null
          ? await database.query(LIST_DELIVERIES, values)
          : status === 'failed'
            ? await database.query(LIST_FAILED_DELIVERIES, values)
            : await database.query(LIST_DELIVERIES_BY_STATUS, [...values, status]);
      return { kind: 'done', value: deliveryRows.map(toDelivery) };
    },
    async findDelivery(id, deliveryId) {
      if (!isUuid(deliveryId) || (await findWebhook(database, id)) === null) return null;
      const [row] = await database.query(SELECT_DELIVERY, [id, deliveryId]);
      return row === undefined ? null : toDelivery(row);
    },
    async listDeliveryLeases(id, after, until) {
      const leaseRows = await database.query(LIST_LEASES, [id, after, until]);
      return leaseRows.map((row) => ({ id: rows.readText(row, 'id'), lease: rows.readInteger(row, 'lease') }));
    },
    replayDelivery(id, deliveryId, now, actor) {
      if (!isUuid(deliveryId)) return Promise.resolve({ kind: 'missing' });
      return database.transaction(async (transaction) => {
        if ((await findWebhook(transaction, id)) === null) return { kind: 'missing' };
        const [replayed] = await transaction.query(REPLAY_DELIVERY, [id, deliveryId, now]);
        const [row] = replayed === undefined ? await transaction.query(SELECT_DELIVERY, [id, deliveryId]) : [replayed];
        if (row === undefined) return { kind: 'missing' };
        const target = formatWebhookId(id);
        await writeAudit(transaction, actor, 'webhook.replay', target, null, { delivery: deliveryId });
        return { kind: 'done', value: toDelivery(row) };
      });
    },
    replayDeliveries(id, selection, after, now, limit, actor) {
      return database.transaction(async (transaction) => {
        if ((await findWebhook(transaction, id)) === null) return { kind: 'missing' };
        if (after === null)
          await writeAudit(transaction, actor, 'webhook.replay', formatWebhookId(id), null, selection);
        const minId = getMinIdAt(selection.since);
        const values = [id, after ?? MIN_ID, now, limit, minId, selection.includesDelivered];
        const [row = {}] = await transaction.query(REPLAY_FOLLOWING_DELIVERIES, values);
        const next = rows.readInteger(row, 'read') < limit ? null : rows.readText(row, 'last');
        return { kind: 'done', value: { replayed: rows.readInteger(row, 'replayed'), next } };
      });
    },
    async countReplayable(id, selection, now) {
      if ((await findWebhook(database, id)) === null) return { kind: 'missing' };
      const values = [id, getMinIdAt(selection.since), now, selection.includesDelivered];
      const [row = {}] = await database.query(COUNT_REPLAYABLE_DELIVERIES, values);
      return { kind: 'done', value: rows.readInteger(row, 'n') };
    },
    releaseDeliveries: async (id, now, limit) =>
      (await database.query(MAKE_PENDING_DELIVERIES_DUE, [id, now, limit])).length,
    async readWebhookStatistics() {
      const [webhooks, pending, failed] = await Promise.all([
        database.query(SELECT_ALL, []),
        database.query(COUNT_PENDING_DELIVERIES, []),
        database.query(COUNT_FAILED_DELIVERIES, []),
      ]);
      const mapByWebhookId = (found: readonly Row[]) =>
        new Map(found.map((row) => [rows.readInteger(row, 'webhook_id'), row]));
      const [pendingRows, failedRows] = [mapByWebhookId(pending), mapByWebhookId(failed)];
      return webhooks.flatMap((webhook): WebhookStatistics[] => {
        const webhookId = rows.readInteger(webhook, 'id');
        const [pendingRow, failedRow] = [pendingRows.get(webhookId), failedRows.get(webhookId)];
        if (pendingRow === undefined && failedRow === undefined) return [];
        return [
          {
            webhookId,
            pendingCount: pendingRow === undefined ? 0 : rows.readInteger(pendingRow, 'pending'),
            oldestPendingAt: pendingRow === undefined ? null : rows.readInteger(pendingRow, 'oldest'),
            failedCount: failedRow === undefined ? 0 : rows.readInteger(failedRow, 'failed'),
          },
        ];
      });
    },
  };
}

async function findWebhook(session: Session, id: number): Promise<Webhook | null> {
  const [row] = await session.query(SELECT_WEBHOOK, [id]);
  return row === undefined ? null : toWebhook(row);
}
