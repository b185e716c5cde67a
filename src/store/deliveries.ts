/**
 * The store of the outbound workers. A lease is a due time and an owner: after it the delivery is due again. An event
 * leaves the outbox in the transaction that adds its deliveries, so none is lost or delivered twice. Notifications are
 * deliveries of system endpoints, whose ids are negative.
 */
import {
  type DeliverySettlement,
  type DeliverySettleResult,
  type DisabledReason,
  getEventBit,
  type LeasedDelivery,
  MAX_STORED_ATTEMPTS,
  WEBHOOK_TEST_TYPE,
} from '../model/webhook.ts';
import { buildWebhookDisabledData } from '../model/webhook-payload.ts';
import { recordResourceEvent } from './outbox.ts';
import { getMinIdAt, toSeq } from './rules/messages.ts';
import * as rows from './rules/rows.ts';
import {
  collectEffects,
  decideFailingSince,
  mustStoreSuccess,
  receivesEvent,
  SELECT_WEBHOOK,
  SELECT_WEBHOOKS,
  SERVICE_ACCOUNT_ID,
  toDeliveryId,
  toOutboxEvent,
  toRecordedEvent,
  toSubscriber,
  toWebhook,
} from './rules/webhooks.ts';
import { forceDurableCommit, type Row, type Transaction } from './transaction.ts';

export interface DeliveryClaimLimits {
  readonly maxDeliveries: number;
  /** At most this number for each of these endpoints. */
  readonly freeSlots: readonly { readonly webhookId: number; readonly count: number }[];
  /** For each endpoint that `freeSlots` does not list. */
  readonly defaultFreeSlots: number;
  /** Null for the first claim of a pass. */
  readonly after: number | null;
  /** Claims from the lane of notifications, for these targets. Otherwise from the lane of webhooks. */
  readonly targets?: readonly string[] | undefined;
}

export interface ClaimedDeliveries {
  readonly deliveries: readonly LeasedDelivery[];
  /** Null if no endpoint remains. */
  readonly next: number | null;
}

export interface DeliveryRecovery {
  readonly now: number;
  readonly until: number;
  /** Its leases stay unless `ownLeasesExcept` is given. */
  readonly node: string;
  /** No other node can be alive. */
  readonly includeAllLeases: boolean;
  /** Only leases of `node` end, except these: those of a claim whose response was lost, or of a release that failed. */
  readonly ownLeasesExcept?: readonly string[];
  /** The lane of `ownLeasesExcept`. */
  readonly areNotifications?: boolean;
}

/** Then `fanOutEvents` moves no further event. */
const MAX_DELIVERIES_PER_STEP = 2_000;
const MAX_EXAMINED_WEBHOOKS = 1_000;
const MAX_WEBHOOK_ID = 2_147_483_647;

/**
 * What differs. `order` is compared with the start of an endpoint: the position, or the number of the transaction,
 * because on PostgreSQL positions become visible in another order. The position of an entry in the history of its message
 * is stored on SQLite; on PostgreSQL it is the number of entries up to this one, which are written under a lock.
 */
const DIALECTS = {
  sqlite: {
    order: 'o.position',
    sequence: 'o.sequence',
    toMessageKey: toSeq,
    joinMessage: `CROSS JOIN mail_request m ON m.seq = d.value->>1
      LEFT JOIN event e ON e.seq = m.seq AND e.n = d.value->>2`,
    serverTime: '$1',
    oldDeliveries: `SELECT d.ctid FROM webhook w CROSS JOIN webhook_delivery d
      WHERE d.webhook_id = w.id AND (w.removed OR d.id < $1) LIMIT $2`,
  },
  postgres: {
    order: 'o.xid::text::bigint',
    sequence: `CASE WHEN o.n IS NULL THEN o.sequence
      ELSE (SELECT count(*) FROM event e WHERE e.id = o.message_id AND e.n <= o.n)::int END`,
    toMessageKey: (id: string) => id,
    // The limits make the planner search by key for each row.
    joinMessage: `CROSS JOIN LATERAL (SELECT * FROM mail_request WHERE id = (d.value->>1)::uuid LIMIT 1) m
      LEFT JOIN LATERAL (SELECT v.at, v.verb, v.by, v.detail, v.failure, v.attempt FROM event v
        WHERE (d.value->>2)::int > 0 AND v.id = m.id ORDER BY v.n OFFSET greatest((d.value->>2)::int - 1, 0) LIMIT 1) e ON true`,
    serverTime: 'extract(epoch FROM clock_timestamp()) * 1000',
    // The inner limit makes the planner read the primary key, also if no row is old.
    oldDeliveries: `SELECT d.row FROM webhook w CROSS JOIN LATERAL (
        SELECT o.ctid AS row FROM webhook_delivery o WHERE o.webhook_id = w.id
          AND o.id < CASE WHEN w.removed THEN 'ffffffff-ffff-ffff-ffff-ffffffffffff' ELSE $1::uuid END
        ORDER BY o.id LIMIT $2 FOR UPDATE SKIP LOCKED) d LIMIT $2`,
  },
} as const;

/** A message that is no longer stored is omitted; the columns of such an entry are null. */
async function readMessages(tx: Transaction, events: readonly Row[]): Promise<ReadonlyMap<Row, Row>> {
  const { toMessageKey, joinMessage } = DIALECTS[tx.dialect];
  const keys = events.flatMap(({ message_id: id, sequence }, index) =>
    typeof id === 'string' ? [[index, toMessageKey(id), sequence]] : [],
  );
  if (keys.length === 0) return new Map();
  const found = await tx.query(
    `SELECT (d.value->>0)::int AS position, m.id, m.key_id, m.accepted_at, m."to", m."from", m.subject, a.name AS account,
       e.at, e.verb, e.by, e.detail, e.failure, e.attempt
     FROM json_array_elements($1::json) AS d(value) ${joinMessage} JOIN account a ON a.id = m.account_id`,
    [JSON.stringify(keys)],
  );
  const messages = found.map((message) => [events[rows.readInteger(message, 'position')] ?? {}, message] as const);
  return new Map(messages.filter(([event, message]) => event.message_id === message.id));
}

async function findExpired(tx: Transaction, events: readonly Row[], keptSince: number): Promise<ReadonlySet<Row>> {
  const minId = getMinIdAt(keptSince);
  const old = events.filter(({ message_id: id }) => id === null || (typeof id === 'string' && id < minId));
  const messages = await readMessages(tx, old);
  return new Set(
    old.filter((event) => {
      if (event.message_id !== null && event.sequence === 0) return true;
      const at = event.message_id === null ? event.at : messages.get(event)?.at;
      return typeof at === 'number' && at < keptSince;
    }),
  );
}

/**
 * Nodes may call it concurrently. `seed`: 16 hexadecimal digits for the ids. Events before `keptSince` are removed
 * without deliveries.
 */
export async function fanOutEvents(
  tx: Transaction,
  now: number,
  seed: string,
  limit: number,
  keptSince: number,
): Promise<{ events: number; deliveries: number; hasMore: boolean }> {
  const { order, sequence } = DIALECTS[tx.dialect];
  const events = await tx.query(
    `SELECT o.position, ${order} AS "order", o.type, o.account_id, o.message_id, ${sequence} AS sequence, o.at, o.webhook_id
     FROM outbox o ORDER BY o.position LIMIT $1 FOR UPDATE OF o SKIP LOCKED`,
    [limit],
  );
  if (events.length === 0) return { events: 0, deliveries: 0, hasMore: false };
  // Read after the events are locked, so that a change of a subscription before an event was recorded is visible.
  const subscribers = (
    await tx.query('SELECT id, account_id, events, start FROM webhook WHERE NOT removed ORDER BY id')
  ).map(toSubscriber);
  const expired = await findExpired(tx, events, keptSince);
  const deliveries: (readonly unknown[])[] = [];
  const positions: number[] = [];
  for (const row of events) {
    if (deliveries.length >= MAX_DELIVERIES_PER_STEP) break;
    const event = toOutboxEvent(row);
    const bit = getEventBit(event.type);
    for (const subscriber of expired.has(row) ? [] : subscribers)
      if (receivesEvent(subscriber, event, bit))
        deliveries.push([subscriber.id, toDeliveryId(now, deliveries.length, seed), row.position, row.sequence]);
    positions.push(rows.readInteger(row, 'position'));
  }
  await Promise.all([
    tx.query(
      `INSERT INTO webhook_delivery (webhook_id, id, type, message_id, sequence, state, suppressed, at, data, status, due_at, created_at)
       SELECT (d.value->>0)::int, (d.value->>1)::uuid, o.type, o.message_id, (d.value->>3)::int, o.state, o.suppressed,
         o.at, o.data, 'pending', $2::bigint, $2::bigint
       FROM json_array_elements($1::json) AS d(value) CROSS JOIN outbox o WHERE o.position = (d.value->>2)::bigint`,
      [JSON.stringify(deliveries), now],
    ),
    tx.query('DELETE FROM outbox WHERE position = ANY($1::bigint[])', [positions]),
  ]);
  const hasMore = positions.length < events.length || events.length === limit;
  return { events: positions.length, deliveries: deliveries.length, hasMore };
}

/** A pass over all endpoints may need several claims. */
export async function claimDeliveries(
  tx: Transaction,
  limits: DeliveryClaimLimits,
  owner: string,
  leaseUntil: number,
  now: number,
): Promise<ClaimedDeliveries> {
  const { targets } = limits;
  const [firstId, lastId] = targets === undefined ? [0, MAX_WEBHOOK_ID] : [-MAX_WEBHOOK_ID, -1];
  // The next endpoints with pending deliveries, in order of id. Each needs two index lookups.
  const examined = await tx.query(
    `WITH RECURSIVE seen(webhook_id) AS (
       SELECT min(webhook_id) FROM webhook_delivery WHERE status = 'pending' AND webhook_id > $1 AND webhook_id <= $2
       UNION ALL
       SELECT (SELECT min(d.webhook_id) FROM webhook_delivery d WHERE d.status = 'pending' AND d.webhook_id > s.webhook_id
         AND d.webhook_id <= $2)
       FROM seen s WHERE s.webhook_id IS NOT NULL
     ), examined AS (SELECT webhook_id FROM seen WHERE webhook_id IS NOT NULL LIMIT ${MAX_EXAMINED_WEBHOOKS})
     SELECT e.webhook_id, w.id AS enabled, CASE WHEN w.id < 0 THEN w.sealed_url END AS target, (
       SELECT min(d.due_at) FROM webhook_delivery d WHERE d.status = 'pending' AND d.webhook_id = e.webhook_id) AS due_at
     FROM examined e LEFT JOIN webhook w ON w.id = e.webhook_id AND w.disabled_at IS NULL AND NOT w.removed
     ORDER BY e.webhook_id`,
    [limits.after ?? firstId, lastId],
  );
  const freeSlots = new Map(limits.freeSlots.map(({ webhookId, count }) => [webhookId, count]));
  const waiting = examined.flatMap((row) => {
    const id = rows.readInteger(row, 'webhook_id');
    const free = freeSlots.get(id) ?? limits.defaultFreeSlots;
    const isServed = targets === undefined ? row.enabled !== null : targets.some((target) => target === row.target);
    return isServed && rows.readInteger(row, 'due_at') <= now && free > 0 ? [{ id, free }] : [];
  });
  const leased = await leaseDue(tx, waiting, limits.maxDeliveries, owner, leaseUntil, now);
  const lastServedId = leased.at(-1)?.webhook_id;
  const lastExaminedId = examined.length < MAX_EXAMINED_WEBHOOKS ? null : examined.at(-1)?.webhook_id;
  const next = leased.length >= limits.maxDeliveries ? lastServedId : lastExaminedId;
  return {
    deliveries: await readLeased(tx, leased, owner, now),
    next: typeof next === 'number' ? next : null,
  };
}

/** As many endpoints at a time as have room for all of their free slots. */
async function leaseDue(
  tx: Transaction,
  waiting: readonly { readonly id: number; readonly free: number }[],
  max: number,
  owner: string,
  leaseUntil: number,
  now: number,
): Promise<readonly Row[]> {
  const leased: Row[] = [];
  let round: Promise<readonly Row[]>[] = [];
  let reserved = 0;
  const endRound = async () => {
    leased.push(...(await Promise.all(round)).flat());
    round = [];
    reserved = 0;
  };
  // A change of an endpoint waits for transactions that have an id (`waitForEarlierTransactions`). This transaction must
  // therefore have an id before its snapshot reads the endpoints.
  if (tx.dialect === 'postgres' && waiting.length > 0)
    round.push(tx.query('SELECT 1 AS one WHERE pg_current_xact_id() IS NULL'));
  for (const { id, free } of waiting) {
    if (leased.length + reserved + free > max) await endRound();
    const share = Math.min(free, max - leased.length);
    if (share <= 0) break;
    reserved += share;
    round.push(
      tx.query(
        `UPDATE webhook_delivery SET due_at = $4, owner = $5, lease = lease + 1 WHERE ctid = ANY(ARRAY(
           SELECT d.ctid FROM webhook_delivery d WHERE d.status = 'pending' AND d.due_at <= $2 AND d.webhook_id = (
             SELECT w.id FROM webhook w WHERE w.id = $1 AND w.disabled_at IS NULL AND NOT w.removed)
           ORDER BY d.due_at LIMIT $3 FOR UPDATE OF d SKIP LOCKED)) RETURNING *`,
        [id, now, share, leaseUntil, owner],
      ),
    );
  }
  await endRound();
  return leased;
}

async function readLeased(
  tx: Transaction,
  leased: readonly Row[],
  owner: string,
  now: number,
): Promise<readonly LeasedDelivery[]> {
  if (leased.length === 0) return [];
  const ids = [...new Set(leased.map((row) => rows.readInteger(row, 'webhook_id')))];
  const [webhookRows, messages] = await Promise.all([
    tx.query(
      `SELECT id, sealed_url, sealed, CASE WHEN previous_until > $2 THEN previous_sealed END AS previous FROM webhook
       WHERE id = ANY($1::int[]) AND NOT removed`,
      [ids, now],
    ),
    readMessages(tx, leased),
  ]);
  const webhooks = new Map(webhookRows.map((row) => [rows.readInteger(row, 'id'), row]));
  return leased.flatMap((row): LeasedDelivery[] => {
    const webhookId = rows.readInteger(row, 'webhook_id');
    const webhook = webhooks.get(webhookId);
    // The endpoint was deleted since its deliveries were leased.
    if (webhook === undefined) return [];
    const previousSecret = rows.readTextOrNull(webhook, 'previous');
    return [
      {
        id: rows.readText(row, 'id'),
        webhookId,
        owner,
        lease: rows.readInteger(row, 'lease'),
        sealedUrl: rows.readText(webhook, 'sealed_url'),
        sealed: [rows.readText(webhook, 'sealed'), ...(previousSecret === null ? [] : [previousSecret])],
        attempt: rows.readInteger(row, 'attempt') + 1,
        event: toRecordedEvent(row, messages.get(row)),
      },
    ];
  });
}

/** The operator on the status prevents a search in the index of pending deliveries, which does not contain their ids. */
const HOLDS_LEASE = "webhook_id = $1 AND id = $2 AND owner = $3 AND lease = $4 AND status || '' = 'pending'";

/** In the order in which all nodes lock deliveries. */
function sortByDelivery<Delivery extends Pick<LeasedDelivery, 'id' | 'webhookId'>>(batch: readonly Delivery[]) {
  return batch.toSorted((a, b) => a.webhookId - b.webhookId || (a.id < b.id ? -1 : 1));
}

/** Undefined if the lease is lost. */
async function settleDelivery(
  tx: Transaction,
  { webhookId, id, owner, lease, result, attempt }: DeliverySettlement,
  now: number,
): Promise<Row | undefined> {
  const [status, dueAt, endedAt] = result.kind === 'retry' ? ['pending', result.dueAt, null] : [result.kind, null, now];
  const messageId = result.kind === 'delivered' ? (result.messageId ?? null) : null;
  const [row] = await tx.query(
    `UPDATE webhook_delivery SET status = $5, due_at = $6, owner = NULL, attempt = attempt + 1, ended_at = $7,
       message_id = coalesce($9::uuid, message_id), attempts =
       CASE attempts WHEN '[]' THEN '[' ELSE substr(attempts, 1, length(attempts) - 1) || ',' END || $8::text || ']'
     WHERE ${HOLDS_LEASE} AND EXISTS (SELECT 1 FROM webhook w WHERE w.id = $1 AND NOT w.removed) RETURNING type, attempts`,
    [webhookId, id, owner, lease, status, dueAt, endedAt, JSON.stringify(attempt), messageId],
  );
  const attempts = row === undefined ? [] : (JSON.parse(rows.readText(row, 'attempts')) as readonly unknown[]);
  if (attempts.length > MAX_STORED_ATTEMPTS)
    await tx.query('UPDATE webhook_delivery SET attempts = $3 WHERE webhook_id = $1 AND id = $2', [
      webhookId,
      id,
      JSON.stringify(attempts.slice(-MAX_STORED_ATTEMPTS)),
    ]);
  return row;
}

/** 410 disables the endpoint. A failed test does not count for `disableFailingWebhooks`. */
export async function settleDeliveries(
  tx: Transaction,
  batch: readonly DeliverySettlement[],
  now: number,
): Promise<readonly DeliverySettleResult[]> {
  const held = await Promise.all(
    sortByDelivery(batch).map(async (settlement) => ({ settlement, row: await settleDelivery(tx, settlement, now) })),
  );
  const settled = held.flatMap(({ settlement, row }) =>
    row === undefined ? [] : [{ settlement, isTest: row.type === WEBHOOK_TEST_TYPE }],
  );
  // The caller discards lost attempts, so the transaction that ended their leases must be durable.
  if (settled.length === 0) await forceDurableCommit(tx);
  const disabledReasons = await applyEffects(tx, settled, now);
  const validSettlements = new Set(settled.map(({ settlement }) => settlement));
  return batch.map((settlement): DeliverySettleResult => {
    if (!validSettlements.has(settlement)) return { kind: 'lost' };
    const disabled = disabledReasons.get(settlement.webhookId) ?? null;
    // Only one settlement of the batch reports that the endpoint was disabled.
    disabledReasons.delete(settlement.webhookId);
    return { kind: 'settled', disabled };
  });
}

/** Resolves to the reasons of the endpoints that they disable. */
async function applyEffects(
  tx: Transaction,
  settled: Parameters<typeof collectEffects>[0],
  now: number,
): Promise<Map<number, DisabledReason>> {
  const effects = collectEffects(settled);
  const found = await tx.query(
    'SELECT id, failing_since, last_success_at FROM webhook WHERE id = ANY($1::int[]) AND id > 0 AND NOT removed ORDER BY id',
    [[...effects.keys()]],
  );
  const disabledReasons = new Map<number, DisabledReason>();
  // Only the endpoints that change are locked, in order of id.
  for (const row of found) {
    const id = rows.readInteger(row, 'id');
    const effect = effects.get(id);
    if (effect === undefined) continue;
    const failingSince = rows.readIntegerOrNull(row, 'failing_since');
    if (mustStoreSuccess(rows.readIntegerOrNull(row, 'last_success_at'), effect, now))
      await tx.query('UPDATE webhook SET last_success_at = greatest(coalesce(last_success_at, 0), $2) WHERE id = $1', [
        id,
        now,
      ]);
    if (decideFailingSince(failingSince, effect) === failingSince && !effect.isGone) continue;
    const [locked] = await tx.query(`${SELECT_WEBHOOK} FOR UPDATE OF w`, [id]);
    if (locked === undefined) continue;
    const webhook = toWebhook(locked);
    await tx.query('UPDATE webhook SET failing_since = $2 WHERE id = $1', [
      id,
      decideFailingSince(webhook.failingSince, effect),
    ]);
    if (!effect.isGone || webhook.disabled !== null) continue;
    await disableLocked(tx, locked, 'gone', now);
    disabledReasons.set(id, 'gone');
  }
  return disabledReasons;
}

async function disableLocked(tx: Transaction, row: Row, reason: DisabledReason, now: number): Promise<number> {
  const webhook = toWebhook(row);
  await tx.query('UPDATE webhook SET disabled_reason = $2, disabled_at = $3 WHERE id = $1', [webhook.id, reason, now]);
  const data = buildWebhookDisabledData(webhook, reason);
  await recordResourceEvent(tx, 'webhook.disabled', webhook.accountId ?? SERVICE_ACCOUNT_ID, now, data, webhook.id);
  return webhook.id;
}

/** Without a success since. Resolves to their ids. */
export async function disableFailingWebhooks(
  tx: Transaction,
  failedBefore: number,
  now: number,
  limit: number,
): Promise<readonly number[]> {
  const failing = await tx.query(
    `${SELECT_WEBHOOKS} WHERE NOT w.removed AND w.disabled_at IS NULL AND w.failing_since <= $1
     ORDER BY w.id LIMIT $2 FOR UPDATE OF w SKIP LOCKED`,
    [failedBefore, limit],
  );
  const ids: number[] = [];
  for (const row of failing) ids.push(await disableLocked(tx, row, 'failing', now));
  return ids;
}

export async function releaseDeliveryLeases(
  tx: Transaction,
  batch: readonly Pick<LeasedDelivery, 'id' | 'webhookId' | 'owner' | 'lease'>[],
  now: number,
): Promise<void> {
  await Promise.all(
    sortByDelivery(batch).map(({ webhookId, id, owner, lease }) =>
      tx.query(`UPDATE webhook_delivery SET due_at = $5, owner = NULL WHERE ${HOLDS_LEASE}`, [
        webhookId,
        id,
        owner,
        lease,
        now,
      ]),
    ),
  );
}

/**
 * The range of due times contains the ends of all leases, and excludes what is due earlier or later. `simulatedTime`
 * replaces the server's.
 */
export async function recoverDeliveries(
  tx: Transaction,
  { now, until, node, includeAllLeases, ownLeasesExcept, areNotifications = false }: DeliveryRecovery,
  simulatedTime: number | null = null,
): Promise<number> {
  const [isOver, values] =
    ownLeasesExcept === undefined
      ? [
          `d.owner <> $3 AND ($4 OR NOT EXISTS (SELECT 1 FROM node n WHERE n.name = d.owner
             AND n.alive_until > coalesce($5::bigint, ${DIALECTS[tx.dialect].serverTime})))`,
          [includeAllLeases, simulatedTime],
        ]
      : [
          'd.owner = $3 AND NOT d.id = ANY($4::uuid[]) AND (d.webhook_id < 0) = $5',
          [ownLeasesExcept, areNotifications],
        ];
  const recovered = await tx.query(
    `UPDATE webhook_delivery SET due_at = $1, owner = NULL WHERE ctid = ANY(ARRAY(
       SELECT d.ctid FROM webhook_delivery d
       WHERE d.status = 'pending' AND d.webhook_id = ANY(ARRAY(SELECT id FROM webhook)) AND d.due_at > $1 AND d.due_at <= $2
         AND ${isOver} FOR UPDATE SKIP LOCKED)) RETURNING 1 AS one`,
    [now, until, node, ...values],
  );
  return recovered.length;
}

/**
 * The start of an endpoint excludes events from before its creation. When none of them is left, it is cleared: in a
 * database that was restored from a dump, transactions are counted anew, and the start would exclude every event.
 */
const CLEAR_STARTS = `UPDATE webhook w SET start = 0 WHERE w.start > 0 AND (
  w.start > pg_snapshot_xmax(pg_current_snapshot())::text::bigint
  OR NOT EXISTS (SELECT 1 FROM outbox o WHERE o.xid::text::bigint < w.start))`;

/**
 * Also what belongs to a deleted endpoint. `deliveredBefore` applies to webhooks only. Resolves to the greater of the two
 * counts.
 */
export async function purgeDeliveries(
  tx: Transaction,
  deliveredBefore: number,
  createdBefore: number,
  limit: number,
): Promise<number> {
  const [delivered, old] = await Promise.all([
    tx.query(
      `DELETE FROM webhook_delivery WHERE ctid = ANY(ARRAY(
         SELECT ctid FROM webhook_delivery WHERE status = 'delivered' AND ended_at <= $1 AND webhook_id > 0
         ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1 AS one`,
      [deliveredBefore, limit],
    ),
    tx.query(
      `DELETE FROM webhook_delivery WHERE ctid = ANY(ARRAY(${DIALECTS[tx.dialect].oldDeliveries})) RETURNING 1 AS one`,
      [getMinIdAt(createdBefore + 1), limit],
    ),
    tx.dialect === 'postgres' ? tx.query(CLEAR_STARTS) : [],
  ]);
  return Math.max(delivered.length, old.length);
}
