/** The operations on the deliveries of webhooks: tests, the list with every attempt, and replays. */
import { formatIsoTime, formatIsoTimeOrNull, parseTimestamp, quote } from '../config/units.ts';
import { Type } from '../model/schema.ts';
import { createMessageIdGenerator } from '../model/submission.ts';
import { isUuid } from '../model/uuid.ts';
import { DELIVERY_STATUSES, formatWebhookId, type WebhookDelivery } from '../model/webhook.ts';
import {
  createConflict,
  createInvalid,
  createInvalidTemplate,
  createNotFound,
  type ErrorResult,
  ok,
  type Result,
  toMemberResult,
} from './errors.ts';
import { defineOperation, type OperationContext } from './operation.ts';
import { createNullable, createPageSizeMember, createStringEnum, Time } from './schemas.ts';
import { createWebhookNotFound, DeliveryEntry, parseId, WebhookId } from './webhooks.ts';

/** The maximum number of deliveries that one transaction changes. */
const MAX_ROWS_PER_STEP = 500;
const MAX_PAGE_SIZE = 1_000;

/**
 * Sends a test event to an endpoint, without retries after a failure, regardless of the types of events to which the
 * endpoint subscribes.
 */
export const testWebhook = defineOperation({
  name: 'webhook.test',
  id: 'testWebhook',
  summary: 'Send a test event to an endpoint, without retries',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: Type.Object({ id: WebhookId }),
  result: DeliveryEntry,
  errors: ['not-found', 'conflict'],
  async run({ id: text }, { store, clock, random }) {
    const id = parseId(text);
    if (!id.ok) return id;
    const now = clock.now();
    const result = await store.addTestDelivery(id.value, createDeliveryId(now, random), now);
    switch (result.kind) {
      case 'done':
        return ok(toDeliveryEntry(result.value));
      case 'missing':
        return createWebhookNotFound(id.value);
      case 'exists':
        return createWebhookDisabled(id.value);
    }
  },
});

export const listDeliveries = defineOperation({
  name: 'webhook.deliveries',
  id: 'listWebhookDeliveries',
  summary: 'List the deliveries of an endpoint with their attempts, newest first',
  makesChange: false,
  role: 'viewer',
  readsContent: false,
  input: Type.Object({
    id: WebhookId,
    failed: Type.Boolean({
      default: false,
      description: 'True to list only deliveries with the status `failed`; the same as the value `failed` of `status`.',
    }),
    status: Type.Optional(
      createStringEnum(DELIVERY_STATUSES, { description: 'Lists only deliveries with this status.' }),
    ),
    delivery: Type.Optional(Type.String({ description: 'Lists only the delivery with this id.' })),
    before: Type.Optional(Type.String({ description: 'The last id of the previous page; lists older deliveries.' })),
    limit: createPageSizeMember(MAX_PAGE_SIZE),
  }),
  result: Type.Array(DeliveryEntry),
  errors: ['not-found'],
  async run({ id: text, failed, status, delivery, before, limit }, { store }) {
    const id = parseId(text);
    if (!id.ok) return id;
    if (failed && status !== undefined && status !== 'failed')
      return createInvalidTemplate(
        'failed',
        (getName) => `${getName('failed')} cannot be combined with ${getName('status')}`,
      );
    if (delivery !== undefined) return findOneDelivery(id.value, delivery, store);
    const cursor = before === undefined ? ok(null) : parseDeliveryId('before', before);
    if (!cursor.ok) return cursor;
    const result = await store.listDeliveries(id.value, status ?? (failed ? 'failed' : null), cursor.value, limit);
    return result.kind === 'done' ? ok(result.value.map(toDeliveryEntry)) : createWebhookNotFound(id.value);
  },
});

/** Makes deliveries due at once. Their ids and bodies do not change. */
export const replayWebhook = defineOperation({
  name: 'webhook.replay',
  id: 'replayWebhook',
  summary: 'Resend deliveries that have not succeeded, with the same id and body',
  makesChange: true,
  role: 'operator',
  readsContent: false,
  input: Type.Object({
    id: WebhookId,
    delivery: Type.Optional(Type.String({ description: 'The id of one delivery, in any status.' })),
    since: Type.Optional(
      Type.String({
        description: 'A date (UTC) or a duration such as `1h`; without it, deliveries of any age are replayed.',
      }),
    ),
    all: Type.Boolean({ default: false, description: 'True to include deliveries that have succeeded.' }),
    dryRun: Type.Boolean({ default: false, description: 'True to count the deliveries without sending them.' }),
  }),
  result: Type.Object({
    id: WebhookId,
    replayed: Type.Integer({
      description: 'The number of replayed deliveries; with `dryRun`, of the deliveries that a replay would send.',
    }),
    since: createNullable(Time),
  }),
  errors: ['not-found', 'conflict'],
  async run({ id: text, delivery, since: sinceText, all, dryRun }, { store, clock }) {
    const id = parseId(text);
    if (!id.ok) return id;
    const now = clock.now();
    const webhookId = formatWebhookId(id.value);
    const webhook = await store.findWebhook(id.value);
    if (webhook === null) return createWebhookNotFound(id.value);
    // Deliveries of a disabled endpoint are not sent, so a replay would have no effect.
    if (webhook.disabled !== null) return createWebhookDisabled(id.value);
    if (delivery !== undefined) {
      if (sinceText !== undefined || all || dryRun) {
        const names = ['since', 'all', 'dryRun'];
        return createInvalidTemplate(
          'delivery',
          (getName) => `${getName('delivery')} cannot be combined with ${names.map(getName).join(' or ')}`,
        );
      }
      const deliveryId = parseDeliveryId('delivery', delivery);
      if (!deliveryId.ok) return deliveryId;
      const result = await store.replayDelivery(id.value, deliveryId.value, now);
      if (result.kind === 'done') return ok({ id: webhookId, replayed: 1, since: null });
      return createDeliveryNotFound(id.value, delivery, store);
    }
    const since = sinceText === undefined ? ok(null) : toMemberResult('since', parseTimestamp(sinceText, now, 'back'));
    if (!since.ok) return since;
    const selection = { since: since.value ?? 0, includesDelivered: all };
    if (dryRun) {
      const count = await store.countReplayable(id.value, selection, now);
      if (count.kind !== 'done') return createWebhookNotFound(id.value);
      return ok({ id: webhookId, replayed: count.value, since: formatIsoTimeOrNull(since.value) });
    }
    let replayedCount = 0;
    for (let after: string | null = null; ; ) {
      const step = await store.replayDeliveries(id.value, selection, after, now, MAX_ROWS_PER_STEP);
      if (step.kind !== 'done') return createWebhookNotFound(id.value);
      replayedCount += step.value.replayed;
      after = step.value.next;
      if (after === null)
        return ok({ id: webhookId, replayed: replayedCount, since: formatIsoTimeOrNull(since.value) });
    }
  },
});

function parseDeliveryId(field: string, text: string): Result<string> {
  return isUuid(text) ? ok(text) : createInvalid(field, `${quote(text)} is not the id of a delivery, which is a UUID`);
}

async function findOneDelivery(
  id: number,
  text: string,
  store: OperationContext['store'],
): Promise<Result<DeliveryEntry[]>> {
  const deliveryId = parseDeliveryId('delivery', text);
  if (!deliveryId.ok) return deliveryId;
  const delivery = await store.findDelivery(id, deliveryId.value);
  return delivery === null ? createDeliveryNotFound(id, text, store) : ok([toDeliveryEntry(delivery)]);
}

async function createDeliveryNotFound(
  id: number,
  text: string,
  store: OperationContext['store'],
): Promise<ErrorResult> {
  if ((await store.findWebhook(id)) === null) return createWebhookNotFound(id);
  const webhookId = formatWebhookId(id);
  return createNotFound(
    'delivery',
    `endpoint ${webhookId} has no delivery ${quote(text)}; \`postrider webhook deliveries ${webhookId}\` lists deliveries`,
  );
}

function createWebhookDisabled(id: number): ErrorResult {
  const webhookId = formatWebhookId(id);
  return createConflict(
    null,
    `endpoint ${webhookId} is disabled; \`postrider webhook enable ${webhookId}\` enables it`,
  );
}

/** Creates a UUIDv7. */
function createDeliveryId(now: number, random: (bytes: number) => Buffer): string {
  const hex = random(8).toString('hex');
  // The generator uses only the last 18 characters of the UUID: the variant and the random digits.
  const uuid = `${'0'.repeat(18)}-8${hex.slice(0, 3)}-${hex.slice(3, 15)}`;
  return createMessageIdGenerator(null, () => uuid).next(now);
}

function toDeliveryEntry(delivery: WebhookDelivery): DeliveryEntry {
  const { id, webhookId, type, messageId, status, attempts, nextAttemptAt } = delivery;
  return {
    id,
    webhookId: formatWebhookId(webhookId),
    type,
    message: messageId,
    status,
    attempts: attempts.map(({ at, ...attempt }) => ({ at: formatIsoTime(at), ...attempt })),
    nextAttemptAt: formatIsoTimeOrNull(nextAttemptAt),
  };
}
