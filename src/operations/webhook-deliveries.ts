/** The operations on the deliveries of webhooks: tests, the list with every attempt, and replays. */

import {
  createFault,
  createParseResult,
  formatIsoTime,
  formatIsoTimeOrNull,
  parseTimestamp,
  quote,
} from '../config/units.ts';
import { createOperatorMessageId, isUuid } from '../model/submission.ts';
import { DELIVERY_STATUSES, formatWebhookId, type WebhookDelivery } from '../model/webhook.ts';
import { createConflict, createInvalidTemplate, createNotFound, type ErrorResult, ok } from './errors.ts';
import { changes, defineOperation, type OperationContext, reads } from './operation.ts';
import { createPageSizeMember, createParsed, Time, Type } from './schemas.ts';
import { createWebhookNotFound, DeliveryEntry, WebhookId, WebhookNumber } from './webhooks.ts';

const MAX_ROWS_PER_STEP = 500;
const MAX_PAGE_SIZE = 1_000;

const createDeliveryIdMember = (description: string) =>
  Type.Optional(
    createParsed({ description }, (text) =>
      isUuid(text)
        ? createParseResult(text)
        : createFault(`${quote(text)} is not the id of a delivery, which is a UUID`),
    ),
  );

export const testWebhook = defineOperation({
  name: 'webhook.test',
  id: 'testWebhook',
  summary: 'Send a test event to an endpoint, without retries',
  ...changes('operator'),
  input: Type.Object({ id: WebhookNumber }),
  result: DeliveryEntry,
  errors: ['not-found', 'conflict'],
  async run({ id }, { store, clock, random }) {
    const now = clock.now();
    const result = await store.addTestDelivery(id, createOperatorMessageId(now, random), now);
    switch (result.kind) {
      case 'done':
        return ok(toDeliveryEntry(result.value));
      case 'missing':
        return createWebhookNotFound(id);
      case 'exists':
        return createWebhookDisabled(id);
    }
  },
});

export const listDeliveries = defineOperation({
  name: 'webhook.deliveries',
  id: 'listWebhookDeliveries',
  summary: 'List the deliveries of an endpoint with their attempts, newest first',
  ...reads('viewer'),
  input: Type.Object({
    id: WebhookNumber,
    failed: Type.Flag(
      'True to list only deliveries with the status `failed`; the same as the value `failed` of `status`.',
    ),
    status: Type.Optional(Type.Enum(DELIVERY_STATUSES, 'Lists only deliveries with this status.')),
    delivery: createDeliveryIdMember('Lists only the delivery with this id.'),
    before: createDeliveryIdMember('The last id of the previous page; lists older deliveries.'),
    limit: createPageSizeMember(MAX_PAGE_SIZE),
  }),
  result: Type.Array(DeliveryEntry),
  errors: ['not-found'],
  async run({ id, failed, status, delivery, before, limit }, { store }) {
    if (failed && status !== undefined && status !== 'failed')
      return createInvalidTemplate(
        'failed',
        (getName) => `${getName('failed')} cannot be combined with ${getName('status')}`,
      );
    if (delivery !== undefined) {
      const found = await store.findDelivery(id, delivery);
      return found === null ? createDeliveryNotFound(id, delivery, store) : ok([toDeliveryEntry(found)]);
    }
    const result = await store.listDeliveries(id, status ?? (failed ? 'failed' : null), before ?? null, limit);
    return result.kind === 'done' ? ok(result.value.map(toDeliveryEntry)) : createWebhookNotFound(id);
  },
});

export const replayWebhook = defineOperation({
  name: 'webhook.replay',
  id: 'replayWebhook',
  summary: 'Resend deliveries that have not succeeded, with the same id and body',
  ...changes('operator'),
  input: Type.Object({
    id: WebhookNumber,
    delivery: createDeliveryIdMember('The id of one delivery, in any status.'),
    since: Type.Optional(
      createParsed(
        'A date (UTC) or a duration such as `1h`; without it, deliveries of any age are replayed.',
        (text, now) => parseTimestamp(text, now, 'back'),
      ),
    ),
    all: Type.Flag('True to include deliveries that have succeeded.'),
    dryRun: Type.Flag('True to count the deliveries without sending them.'),
  }),
  result: Type.Object({
    id: WebhookId,
    replayed: Type.Integer(
      'The number of replayed deliveries; with `dryRun`, of the deliveries that a replay would send.',
    ),
    since: Type.Nullable(Time),
  }),
  errors: ['not-found', 'conflict'],
  async run({ id, delivery, since, all, dryRun }, { store, clock }) {
    const now = clock.now();
    const webhookId = formatWebhookId(id);
    const webhook = await store.findWebhook(id);
    if (webhook === null) return createWebhookNotFound(id);
    // Deliveries of a disabled endpoint are not sent.
    if (webhook.disabled !== null) return createWebhookDisabled(id);
    if (delivery !== undefined) {
      if (since !== undefined || all || dryRun) {
        const names = ['since', 'all', 'dryRun'];
        return createInvalidTemplate(
          'delivery',
          (getName) => `${getName('delivery')} cannot be combined with ${names.map(getName).join(' or ')}`,
        );
      }
      const result = await store.replayDelivery(id, delivery, now);
      if (result.kind === 'done') return ok({ id: webhookId, replayed: 1, since: null });
      return createDeliveryNotFound(id, delivery, store);
    }
    const selection = { since: since ?? 0, includesDelivered: all };
    const sinceTime = formatIsoTimeOrNull(since ?? null);
    if (dryRun) {
      const count = await store.countReplayable(id, selection, now);
      if (count.kind !== 'done') return createWebhookNotFound(id);
      return ok({ id: webhookId, replayed: count.value, since: sinceTime });
    }
    let replayedCount = 0;
    for (let after: string | null = null; ; ) {
      const step = await store.replayDeliveries(id, selection, after, now, MAX_ROWS_PER_STEP);
      if (step.kind !== 'done') return createWebhookNotFound(id);
      replayedCount += step.value.replayed;
      after = step.value.next;
      if (after === null) return ok({ id: webhookId, replayed: replayedCount, since: sinceTime });
    }
  },
});

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
