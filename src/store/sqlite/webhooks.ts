/**
 * Stores the endpoints of webhooks and their deliveries, and moves events from the outbox to deliveries. A lease is a
 * due time in the future and an owner: after the lease has expired, the delivery is due again.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { ChangeResult } from '../../model/account.ts';
import { type Actor, toAuditedWebhook } from '../../model/audit.ts';
import {
  type CreateWebhookResult,
  type DeliverySettlement,
  type DeliverySettleResult,
  type DeliveryStatus,
  type DisabledReason,
  formatWebhookId,
  getEventBit,
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
} from '../../model/webhook.ts';
import { buildWebhookDisabledData } from '../../model/webhook-payload.ts';
import { getMinIdAt, toSeq } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import {
  addAttempt,
  collectEffects,
  decideFailingSince,
  type EndpointEffect,
  MAX_DELIVERIES_PER_STEP,
  MAX_LISTED_LEASES,
  mustStoreSuccess,
  receivesEvent,
  SERVICE_ACCOUNT_ID,
  toDelivery,
  toDeliveryId,
  toOutboxEvent,
  toRecordedEvent,
  toSubscriber,
  toWebhook,
} from '../rules/webhooks.ts';
import type { ClaimedDeliveries, DeliveryClaimLimits } from '../webhook-store.ts';
import type { Audit } from './audit.ts';
import type { Outbox } from './outbox.ts';

/** The maximum number of endpoints that one claim examines. */
const MAX_EXAMINED_WEBHOOKS = 1_000;

/** Selects endpoints under the alias `w`, with the names of their accounts. */
export const SELECT_WEBHOOKS =
  'SELECT w.*, a.name AS account FROM webhook w LEFT JOIN account a ON a.id = w.account_id';

type LeaseReference = Pick<LeasedDelivery, 'id' | 'webhookId' | 'owner' | 'lease'>;

export function prepareWebhooks(database: DatabaseSync, audit: Audit, outbox: Outbox) {
  const selectAccountId = database.prepare('SELECT id FROM account WHERE name = ?');
  const countWebhooks = database.prepare('SELECT count(*) AS n FROM webhook WHERE removed = 0');
  const insertWebhook = database.prepare(
    `INSERT INTO webhook (url, sealed_url, account_id, name, events, sealed, created_at, start)
     VALUES (?, ?, ?, ?, ?, ?, ?, coalesce((SELECT seq + 1 FROM sqlite_sequence WHERE name = 'outbox'), 0))`,
  );
  const selectAll = database.prepare(`${SELECT_WEBHOOKS} WHERE w.removed = 0 ORDER BY w.id`);
  const selectById = database.prepare(`${SELECT_WEBHOOKS} WHERE w.id = ? AND w.removed = 0`);
  const updateById = database.prepare('UPDATE webhook SET url = ?, sealed_url = ?, name = ?, events = ? WHERE id = ?');
  const enableById = database.prepare(
    'UPDATE webhook SET disabled_reason = NULL, disabled_at = NULL, failing_since = NULL WHERE id = ?',
  );
  const disableById = database.prepare('UPDATE webhook SET disabled_reason = ?, disabled_at = ? WHERE id = ?');
  const rotateSecret = database.prepare(
    'UPDATE webhook SET previous_sealed = sealed, previous_until = ?, sealed = ? WHERE id = ?',
  );
  const markWebhookRemoved = database.prepare(
    `UPDATE webhook SET removed = 1, url = '', sealed_url = '', events = 0, sealed = '', previous_sealed = NULL WHERE id = ?`,
  );
  const writeTypes = database.prepare('UPDATE webhook_subscription SET events = ?');
  const selectTypes = database.prepare('SELECT DISTINCT events FROM webhook WHERE removed = 0');
  const setLastSuccess = database.prepare('UPDATE webhook SET last_success_at = ? WHERE id = ?');
  const setFailingSince = database.prepare('UPDATE webhook SET failing_since = ? WHERE id = ?');

  const selectFailing = database.prepare(
    `${SELECT_WEBHOOKS} WHERE w.removed = 0 AND w.disabled_at IS NULL AND w.failing_since <= ? ORDER BY w.id LIMIT ?`,
  );

  const selectEvents = database.prepare(
    'SELECT position AS "order", position, type, account_id, message_id, sequence, state, suppressed, at, data, webhook_id FROM outbox ORDER BY position LIMIT ?',
  );
  const deleteEvents = database.prepare('DELETE FROM outbox WHERE position <= ?');
  const selectSubscribers = database.prepare(
    'SELECT id, account_id, events, start FROM webhook WHERE removed = 0 ORDER BY id',
  );
  const insertDelivery = database.prepare(
    `INSERT INTO webhook_delivery (webhook_id, id, type, message_id, sequence, state, suppressed, at, data, status, due_at, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)`,
  );

  // Selects the next endpoints with pending deliveries in order of id, with the earliest due time of each. Each
  // endpoint needs two index lookups.
  const selectExaminedEndpoints = database.prepare(
    `WITH RECURSIVE seen(webhook_id) AS (
       SELECT min(webhook_id) FROM webhook_delivery INDEXED BY webhook_delivery_due
       WHERE status = 'pending' AND webhook_id > ?
       UNION ALL
       SELECT (SELECT min(d.webhook_id) FROM webhook_delivery d INDEXED BY webhook_delivery_due
         WHERE d.status = 'pending' AND d.webhook_id > s.webhook_id)
       FROM seen s WHERE s.webhook_id IS NOT NULL
       LIMIT ${MAX_EXAMINED_WEBHOOKS}
     )
     SELECT s.webhook_id, (SELECT min(d.due_at) FROM webhook_delivery d INDEXED BY webhook_delivery_due
       WHERE d.status = 'pending' AND d.webhook_id = s.webhook_id) AS due_at
     FROM seen s WHERE s.webhook_id IS NOT NULL`,
  );
  const selectDue = database.prepare(
    `SELECT * FROM webhook_delivery INDEXED BY webhook_delivery_due
     WHERE status = 'pending' AND webhook_id = ? AND due_at <= ? ORDER BY due_at LIMIT ?`,
  );
  const leaseDelivery = database.prepare(
    'UPDATE webhook_delivery SET due_at = ?, owner = ?, lease = lease + 1 WHERE webhook_id = ? AND id = ?',
  );
  const selectMessage = database.prepare(
    `SELECT m.id, m.key_id, m.accepted_at, m."to", m."from", m.subject, a.name AS account
     FROM mail_request m JOIN account a ON a.id = m.account_id WHERE m.seq = ? AND m.id = ?`,
  );
  const selectEntry = database.prepare(
    'SELECT at, verb, by, detail, failure, attempt FROM event WHERE seq = ? AND n = ?',
  );
  const selectLeased = database.prepare(
    `SELECT * FROM webhook_delivery WHERE webhook_id = ? AND id = ? AND owner = ? AND lease = ? AND status = 'pending'`,
  );
  const settleDelivery = database.prepare(
    `UPDATE webhook_delivery SET status = ?, due_at = ?, owner = NULL, attempt = attempt + 1, attempts = ?, ended_at = ?
     WHERE webhook_id = ? AND id = ?`,
  );
  const releaseLease = database.prepare(
    `UPDATE webhook_delivery SET due_at = ?, owner = NULL
     WHERE webhook_id = ? AND id = ? AND owner = ? AND lease = ? AND status = 'pending'`,
  );

  const selectDeliveries = database.prepare(
    'SELECT * FROM webhook_delivery WHERE webhook_id = ? AND id < ? ORDER BY id DESC LIMIT ?',
  );
  const selectByStatus = database.prepare(
    'SELECT * FROM webhook_delivery WHERE webhook_id = ? AND id < ? AND status = ? ORDER BY id DESC LIMIT ?',
  );
  const selectFailed = database.prepare(
    `SELECT * FROM webhook_delivery INDEXED BY webhook_delivery_failed
     WHERE webhook_id = ? AND id < ? AND status = 'failed' ORDER BY id DESC LIMIT ?`,
  );
  const selectDelivery = database.prepare('SELECT * FROM webhook_delivery WHERE webhook_id = ? AND id = ?');
  const selectLeases = database.prepare(
    `SELECT id, lease FROM webhook_delivery INDEXED BY webhook_delivery_due
     WHERE status = 'pending' AND webhook_id = ? AND due_at > ? AND due_at <= ? AND owner IS NOT NULL LIMIT ${MAX_LISTED_LEASES}`,
  );
  const selectFollowing = database.prepare(
    'SELECT id, status, owner, due_at FROM webhook_delivery WHERE webhook_id = ? AND id > ? AND id >= ? ORDER BY id LIMIT ?',
  );
  const countReplayable = database.prepare(
    `SELECT count(*) AS n FROM webhook_delivery
     WHERE webhook_id = ? AND id >= ? AND (? OR status <> 'delivered') AND (owner IS NULL OR due_at <= ?)`,
  );
  const makeDeliveryDue = database.prepare(
    `UPDATE webhook_delivery SET status = 'pending', due_at = ?, owner = NULL, attempt = 0, ended_at = NULL
     WHERE webhook_id = ? AND id = ?`,
  );
  const makePendingDeliveriesDue = database.prepare(
    `UPDATE webhook_delivery SET due_at = ?1 WHERE rowid IN (
       SELECT rowid FROM webhook_delivery INDEXED BY webhook_delivery_due
       WHERE status = 'pending' AND webhook_id = ?2 AND due_at > ?1 AND owner IS NULL LIMIT ?3)`,
  );
  const countPendingDeliveries = database.prepare(
    `SELECT webhook_id, count(*) AS pending, min(created_at) AS oldest FROM webhook_delivery INDEXED BY webhook_delivery_due
     WHERE status = 'pending' GROUP BY webhook_id`,
  );
  const countFailedDeliveries = database.prepare(
    `SELECT webhook_id, count(*) AS failed FROM webhook_delivery INDEXED BY webhook_delivery_failed
     WHERE status = 'failed' GROUP BY webhook_id`,
  );
  const purgeDelivered = database.prepare(
    `DELETE FROM webhook_delivery WHERE rowid IN (
       SELECT rowid FROM webhook_delivery INDEXED BY webhook_delivery_delivered
       WHERE status = 'delivered' AND ended_at <= ? ORDER BY ended_at LIMIT ?)`,
  );
  const purgeDeliveriesBefore = database.prepare(
    `DELETE FROM webhook_delivery WHERE rowid IN (
       SELECT rowid FROM webhook_delivery WHERE webhook_id = ? AND id < ? ORDER BY id LIMIT ?)`,
  );
  const purgeDeliveriesOfWebhook = database.prepare(
    'DELETE FROM webhook_delivery WHERE rowid IN (SELECT rowid FROM webhook_delivery WHERE webhook_id = ? LIMIT ?)',
  );
  const selectAllIds = database.prepare('SELECT id, removed FROM webhook ORDER BY id');

  function findWebhook(id: number): Webhook | null {
    const row = selectById.get(id);
    return row === undefined ? null : toWebhook(row);
  }

  function updateTypes(): void {
    const types = selectTypes.all().reduce((mask, row) => mask | rows.readInteger(row, 'events'), 0);
    writeTypes.run(types);
    outbox.reset();
  }

  /** Changes an endpoint and writes the audit log entry. */
  function changeWebhook(
    id: number,
    action: string,
    actor: Actor | undefined,
    write: (before: Webhook) => void,
  ): ChangeResult<Webhook> {
    const before = findWebhook(id);
    if (before === null) return { kind: 'missing' };
    write(before);
    const after = findWebhook(id);
    const auditedWebhook = after === null ? null : toAuditedWebhook(after);
    audit.writeChange(actor, action, formatWebhookId(id), toAuditedWebhook(before), auditedWebhook);
    return { kind: 'done', value: after ?? before };
  }

  function readEvent(row: rows.Row) {
    const messageId = rows.readTextOrNull(row, 'message_id');
    if (messageId === null) return toRecordedEvent(row, null, null);
    const seq = toSeq(messageId);
    const message = selectMessage.get(seq, messageId) ?? null;
    const sequence = rows.readInteger(row, 'sequence');
    if (message === null || sequence === 0)
      return toRecordedEvent(row, message, message === null ? null : rows.toAcceptedEntry(message));
    const entry = selectEntry.get(seq, sequence);
    return toRecordedEvent(row, message, entry === undefined ? null : rows.toHistoryEntry(entry));
  }

  /** Returns true if the event was recorded before `keptSince`. */
  function isExpired(row: rows.Row, keptSince: number): boolean {
    const messageId = rows.readTextOrNull(row, 'message_id');
    if (messageId === null) return (rows.readIntegerOrNull(row, 'at') ?? keptSince) < keptSince;
    if (messageId >= getMinIdAt(keptSince)) return false;
    const sequence = rows.readInteger(row, 'sequence');
    if (sequence === 0) return true;
    const entry = selectEntry.get(toSeq(messageId), sequence);
    return entry !== undefined && rows.readInteger(entry, 'at') < keptSince;
  }

  /** Leases up to `limit` due deliveries of an endpoint, earliest due first. */
  function leaseDueDeliveries(
    webhook: rows.Row,
    limit: number,
    owner: string,
    leaseUntil: number,
    now: number,
  ): LeasedDelivery[] {
    const webhookId = rows.readInteger(webhook, 'id');
    const previousSecret = rows.readTextOrNull(webhook, 'previous_sealed');
    const isPreviousSecretValid =
      previousSecret !== null && (rows.readIntegerOrNull(webhook, 'previous_until') ?? 0) > now;
    const sealed = [rows.readText(webhook, 'sealed'), ...(isPreviousSecretValid ? [previousSecret] : [])];
    return selectDue.all(webhookId, now, limit).map((row) => {
      const id = rows.readText(row, 'id');
      leaseDelivery.run(leaseUntil, owner, webhookId, id);
      return {
        ...{ id, webhookId, owner, sealed },
        lease: rows.readInteger(row, 'lease') + 1,
        sealedUrl: rows.readText(webhook, 'sealed_url'),
        attempt: rows.readInteger(row, 'attempt') + 1,
        event: readEvent(row),
      };
    });
  }

  /**
   * Writes the effect of attempts on an endpoint. Returns the reason if the effect disables the endpoint, and otherwise
   * null.
   */
  function applyEffect(id: number, effect: EndpointEffect, now: number): DisabledReason | null {
    const webhook = findWebhook(id);
    if (webhook === null) return null;
    const failingSince = decideFailingSince(webhook.failingSince, effect);
    if (failingSince !== webhook.failingSince) setFailingSince.run(failingSince, id);
    if (mustStoreSuccess(webhook.lastSuccessAt, effect, now)) setLastSuccess.run(now, id);
    if (!effect.isGone || webhook.disabled !== null) return null;
    disableForReason(webhook, 'gone', now);
    return 'gone';
  }

  function disableForReason(webhook: Webhook, reason: DisabledReason, now: number): void {
    disableById.run(reason, now, webhook.id);
    const accountId = webhook.accountId ?? SERVICE_ACCOUNT_ID;
    const buildData = () => buildWebhookDisabledData(webhook, reason);
    outbox.recordResource('webhook.disabled', accountId, now, buildData, webhook.id);
  }

  const isInProgress = (row: rows.Row, now: number): boolean =>
    row.owner !== null && (rows.readIntegerOrNull(row, 'due_at') ?? 0) > now;

  return {
    createWebhook(webhook: NewWebhook, now: number, actor?: Actor): CreateWebhookResult {
      const { url, sealedUrl, account, name, events, sealed } = webhook;
      const accountRow = account === null ? undefined : selectAccountId.get(account);
      if (account !== null && accountRow === undefined) return { kind: 'missing' };
      if (rows.readInteger(countWebhooks.get() ?? {}, 'n') >= MAX_WEBHOOKS) return { kind: 'too-many' };
      const accountId = accountRow === undefined ? null : rows.readInteger(accountRow, 'id');
      const { lastInsertRowid } = insertWebhook.run(url, sealedUrl, accountId, name, toEventMask(events), sealed, now);
      updateTypes();
      const createdWebhook = findWebhook(Number(lastInsertRowid));
      if (createdWebhook === null) return { kind: 'missing' };
      audit.writeChange(
        actor,
        'webhook.create',
        formatWebhookId(createdWebhook.id),
        null,
        toAuditedWebhook(createdWebhook),
      );
      return { kind: 'done', value: createdWebhook };
    },
    listWebhooks: (): Webhook[] => selectAll.all().map(toWebhook),
    findWebhook,
    updateWebhook(id: number, changes: WebhookChange, actor?: Actor): ChangeResult<Webhook> {
      return changeWebhook(id, 'webhook.update', actor, (before) => {
        const { url, sealedUrl, name, events } = { ...before, ...changes };
        updateById.run(url, sealedUrl, name, toEventMask(events), id);
        updateTypes();
      });
    },
    enableWebhook: (id: number, actor?: Actor): ChangeResult<Webhook> =>
      changeWebhook(id, 'webhook.enable', actor, ({ disabled }) => {
        if (disabled !== null) enableById.run(id);
      }),
    disableWebhook: (id: number, now: number, actor?: Actor): ChangeResult<Webhook> =>
      changeWebhook(id, 'webhook.disable', actor, ({ disabled }) => {
        if (disabled?.reason !== 'operator') disableById.run('operator', now, id);
      }),
    rotateWebhookSecret: (id: number, sealed: string, previousUntil: number, actor?: Actor): ChangeResult<Webhook> =>
      changeWebhook(id, 'webhook.rotate', actor, () => rotateSecret.run(previousUntil, sealed, id)),
    deleteWebhook: (id: number, actor?: Actor): ChangeResult<Webhook> =>
      changeWebhook(id, 'webhook.delete', actor, () => {
        markWebhookRemoved.run(id);
        updateTypes();
      }),
    addTestDelivery(id: number, deliveryId: string, now: number, actor?: Actor): ChangeResult<WebhookDelivery> {
      const webhook = findWebhook(id);
      if (webhook === null) return { kind: 'missing' };
      if (webhook.disabled !== null) return { kind: 'exists' };
      const data = JSON.stringify({ id: formatWebhookId(id) });
      insertDelivery.run(id, deliveryId, WEBHOOK_TEST_TYPE, null, null, null, 0, now, data, now, now);
      audit.writeChange(actor, 'webhook.test', formatWebhookId(id), null, { delivery: deliveryId });
      return { kind: 'done', value: toDelivery(selectDelivery.get(id, deliveryId) ?? {}) };
    },
    listDeliveries(
      ...[id, status, before, limit]: [number, DeliveryStatus | null, string | null, number]
    ): ChangeResult<readonly WebhookDelivery[]> {
      if (findWebhook(id) === null) return { kind: 'missing' };
      const end = before ?? MAX_ID;
      const deliveryRows =
        status === null
          ? selectDeliveries.all(id, end, limit)
          : status === 'failed'
            ? selectFailed.all(id, end, limit)
            : selectByStatus.all(id, end, status, limit);
      return { kind: 'done', value: deliveryRows.map(toDelivery) };
    },
    findDelivery(id: number, deliveryId: string): WebhookDelivery | null {
      const row = findWebhook(id) === null ? undefined : selectDelivery.get(id, deliveryId);
      return row === undefined ? null : toDelivery(row);
    },
    listDeliveryLeases: (id: number, after: number, until: number) =>
      selectLeases.all(id, after, until).map((row) => {
        return { id: rows.readText(row, 'id'), lease: rows.readInteger(row, 'lease') };
      }),
    replayDelivery(id: number, deliveryId: string, now: number, actor?: Actor): ChangeResult<WebhookDelivery> {
      const row = findWebhook(id) === null ? undefined : selectDelivery.get(id, deliveryId);
      if (row === undefined) return { kind: 'missing' };
      if (!isInProgress(row, now)) makeDeliveryDue.run(now, id, deliveryId);
      audit.writeChange(actor, 'webhook.replay', formatWebhookId(id), null, { delivery: deliveryId });
      return { kind: 'done', value: toDelivery(selectDelivery.get(id, deliveryId) ?? {}) };
    },
    replayDeliveries(
      ...[id, selection, after, now, limit, actor]: [number, ReplaySelection, string | null, number, number, Actor?]
    ): ChangeResult<{ readonly replayed: number; readonly next: string | null }> {
      if (findWebhook(id) === null) return { kind: 'missing' };
      if (after === null) audit.writeChange(actor, 'webhook.replay', formatWebhookId(id), null, selection);
      const deliveryRows = selectFollowing.all(id, after ?? '', getMinIdAt(selection.since), limit);
      const replayedRows = deliveryRows.filter(
        (row) => (selection.includesDelivered || row.status !== 'delivered') && !isInProgress(row, now),
      );
      for (const row of replayedRows) makeDeliveryDue.run(now, id, rows.readText(row, 'id'));
      const lastRow = deliveryRows.at(-1);
      const next = deliveryRows.length < limit || lastRow === undefined ? null : rows.readText(lastRow, 'id');
      return { kind: 'done', value: { replayed: replayedRows.length, next } };
    },
    countReplayable(id: number, selection: ReplaySelection, now: number): ChangeResult<number> {
      if (findWebhook(id) === null) return { kind: 'missing' };
      const includesDelivered = selection.includesDelivered ? 1 : 0;
      const row = countReplayable.get(id, getMinIdAt(selection.since), includesDelivered, now) ?? {};
      return { kind: 'done', value: rows.readInteger(row, 'n') };
    },
    releaseDeliveries: (id: number, now: number, limit: number): number =>
      Number(makePendingDeliveriesDue.run(now, id, limit).changes),
    readWebhookStatistics(): WebhookStatistics[] {
      const failedCounts = new Map(
        countFailedDeliveries
          .all()
          .map((row) => [rows.readInteger(row, 'webhook_id'), rows.readInteger(row, 'failed')]),
      );
      const pendingRows = new Map(
        countPendingDeliveries.all().map((row) => [rows.readInteger(row, 'webhook_id'), row]),
      );
      return selectSubscribers.all().flatMap((subscriber) => {
        const webhookId = rows.readInteger(subscriber, 'id');
        const row = pendingRows.get(webhookId);
        const failedCount = failedCounts.get(webhookId) ?? 0;
        if (row === undefined && failedCount === 0) return [];
        const pendingCount = row === undefined ? 0 : rows.readInteger(row, 'pending');
        const oldestPendingAt = row === undefined ? null : rows.readInteger(row, 'oldest');
        return [{ webhookId, pendingCount, oldestPendingAt, failedCount }];
      });
    },

    fanOutEvents(...[now, seed, limit, keptSince]: [number, string, number, number]): {
      events: number;
      deliveries: number;
      hasMore: boolean;
    } {
      const eventRows = selectEvents.all(limit);
      const subscribers = eventRows.length === 0 ? [] : selectSubscribers.all().map(toSubscriber);
      let eventCount = 0;
      let deliveryCount = 0;
      let lastPosition = 0;
      for (const row of eventRows) {
        if (deliveryCount >= MAX_DELIVERIES_PER_STEP) break;
        const event = toOutboxEvent(row);
        const bit = getEventBit(event.type);
        for (const subscriber of isExpired(row, keptSince) ? [] : subscribers) {
          if (!receivesEvent(subscriber, event, bit)) continue;
          insertDelivery.run(
            subscriber.id,
            toDeliveryId(now, deliveryCount, seed),
            event.type,
            rows.readTextOrNull(row, 'message_id'),
            rows.readIntegerOrNull(row, 'sequence'),
            rows.readTextOrNull(row, 'state'),
            rows.readInteger(row, 'suppressed'),
            rows.readIntegerOrNull(row, 'at'),
            rows.readTextOrNull(row, 'data'),
            now,
            now,
          );
          deliveryCount += 1;
        }
        eventCount += 1;
        lastPosition = rows.readInteger(row, 'position');
      }
      if (eventCount > 0) deleteEvents.run(lastPosition);
      const hasMore = eventCount < eventRows.length || eventRows.length === limit;
      return { events: eventCount, deliveries: deliveryCount, hasMore };
    },
    claimDeliveries(
      ...[limits, owner, leaseUntil, now]: [DeliveryClaimLimits, string, number, number]
    ): ClaimedDeliveries {
      const freeSlotsById = new Map(limits.freeSlots.map(({ webhookId, count }) => [webhookId, count]));
      const deliveries: LeasedDelivery[] = [];
      const examinedRows = selectExaminedEndpoints.all(limits.after);
      for (const row of examinedRows) {
        const webhookId = rows.readInteger(row, 'webhook_id');
        if (deliveries.length >= limits.maxDeliveries) return { deliveries, next: webhookId - 1 };
        const maxLeases = Math.min(
          freeSlotsById.get(webhookId) ?? limits.defaultFreeSlots,
          limits.maxDeliveries - deliveries.length,
        );
        if (maxLeases <= 0 || rows.readInteger(row, 'due_at') > now) continue;
        const webhook = selectById.get(webhookId);
        if (webhook === undefined || rows.readIntegerOrNull(webhook, 'disabled_at') !== null) continue;
        deliveries.push(...leaseDueDeliveries(webhook, maxLeases, owner, leaseUntil, now));
      }
      const lastExaminedRow = examinedRows.length < MAX_EXAMINED_WEBHOOKS ? undefined : examinedRows.at(-1);
      return {
        deliveries,
        next: lastExaminedRow === undefined ? null : rows.readInteger(lastExaminedRow, 'webhook_id'),
      };
    },
    settleDeliveries(batch: readonly DeliverySettlement[], now: number): DeliverySettleResult[] {
      const validSettlements: { readonly settlement: DeliverySettlement; readonly isTest: boolean }[] = [];
      const existingIds = new Set(
        [...new Set(batch.map(({ webhookId }) => webhookId))].filter((id) => findWebhook(id) !== null),
      );
      const isSettled = batch.map((settlement) => {
        const { id, webhookId, owner, result, attempt } = settlement;
        const row = !existingIds.has(webhookId) ? undefined : selectLeased.get(webhookId, id, owner, settlement.lease);
        if (row === undefined) return false;
        const attempts = addAttempt(rows.readText(row, 'attempts'), attempt);
        const status = result.kind === 'retry' ? 'pending' : result.kind;
        const [dueAt, endedAt] = result.kind === 'retry' ? [result.dueAt, null] : [null, now];
        settleDelivery.run(status, dueAt, attempts, endedAt, webhookId, id);
        validSettlements.push({ settlement, isTest: row.type === WEBHOOK_TEST_TYPE });
        return true;
      });
      const disabledReasons = new Map<number, DisabledReason | null>();
      for (const [id, effect] of collectEffects(validSettlements))
        disabledReasons.set(id, applyEffect(id, effect, now));
      return batch.map(({ webhookId }, index): DeliverySettleResult => {
        if (isSettled[index] !== true) return { kind: 'lost' };
        const reason = disabledReasons.get(webhookId) ?? null;
        // Of all recorded settlements of an endpoint in the batch, only the first reports that the endpoint was
        // disabled.
        disabledReasons.delete(webhookId);
        return { kind: 'settled', disabled: reason };
      });
    },
    disableFailingWebhooks(failedBefore: number, now: number, limit: number): readonly number[] {
      const failingWebhooks = selectFailing.all(failedBefore, limit).map(toWebhook);
      for (const webhook of failingWebhooks) disableForReason(webhook, 'failing', now);
      return failingWebhooks.map(({ id }) => id);
    },
    releaseDeliveryLeases(batch: readonly LeaseReference[], now: number): void {
      for (const { id, webhookId, owner, lease: number } of batch) releaseLease.run(now, webhookId, id, owner, number);
    },
    purgeDeliveries(deliveredBefore: number, createdBefore: number, limit: number): number {
      const purgedDeliveredCount = Number(purgeDelivered.run(deliveredBefore, limit).changes);
      const firstKeptId = getMinIdAt(createdBefore + 1);
      let purgedOldCount = 0;
      let purgedOrphanCount = 0;
      for (const row of selectAllIds.all()) {
        const id = rows.readInteger(row, 'id');
        if (!rows.readBoolean(row, 'removed')) {
          if (purgedOldCount < limit)
            purgedOldCount += Number(purgeDeliveriesBefore.run(id, firstKeptId, limit - purgedOldCount).changes);
          continue;
        }
        if (purgedOrphanCount >= limit) continue;
        purgedOrphanCount += Number(purgeDeliveriesOfWebhook.run(id, limit - purgedOrphanCount).changes);
      }
      return Math.max(purgedDeliveredCount, purgedOldCount, purgedOrphanCount);
    },
  };
}

/** A text greater than every id. */
const MAX_ID = 'g';
