/** The operations on the endpoints of webhooks and their deliveries. Signing secrets are returned only by their creation. */
import type { Static } from 'typebox';
import {
  createFault,
  createParseResult,
  formatSuggestion,
  type ParseResult,
  parseDuration,
  parseTimestamp,
  quote,
} from '../config/units.ts';
import { createHostLookup } from '../domains/dns.ts';
import { loadWebhookKey } from '../domains/setup.ts';
import type { ChangeResult } from '../model/account.ts';
import { createOperatorMessageId, isUuid } from '../model/submission.ts';
import {
  DEFAULT_WEBHOOK_EVENT_TYPES,
  DELIVERY_LEASE_MS,
  DELIVERY_STATUSES,
  DISABLED_REASONS,
  formatWebhookId,
  MAX_START_DELAY_MS,
  MAX_WEBHOOKS,
  parseWebhookId,
  WEBHOOK_EVENT_TYPES,
  WEBHOOK_TEST_TYPE,
  type Webhook,
  type WebhookDelivery,
  type WebhookEventType,
  type WebhookStatistics,
} from '../model/webhook.ts';
import { createSigningSecret, parseTargetUrl, resolveTarget } from '../model/webhook-target.ts';
import { MASK, maskTargetPath, maskTargetUrl } from '../printing/escape.ts';
import { formatIsoTime, formatIsoTimeOrNull } from '../printing/text.ts';
import { openTargetUrl, sealSigningSecret, sealTargetUrl } from '../webhooks/sealing.ts';
import {
  createAccountNotFound,
  createConflict,
  createInvalid,
  createInvalidTemplate,
  createNotFound,
  createUnavailable,
  type ErrorResult,
  ok,
  type Result,
} from './errors.ts';
import { changes, defineOperation, type OperationContext, reads } from './operation.ts';
import { createPageSizeMember, createParsed, parseName, Time, Type } from './schemas.ts';

const WEBHOOK_ID = { description: 'The id of the endpoint, such as `wh_1`.' };
export const WebhookId = Type.String(WEBHOOK_ID);
export const WebhookNumber = createParsed(WEBHOOK_ID, (text) => {
  const id = parseWebhookId(text) ?? parseWebhookId(formatWebhookId(Number(text)));
  return id === null
    ? createFault(
        `${quote(text)} is not the id of an endpoint such as wh_12; \`postrider webhook list\` lists endpoints`,
      )
    : createParseResult(id);
});
const SigningSecret = Type.String('The signing secret. It is not shown again.');

export const WebhookEntry = Type.Object({
  id: WebhookId,
  url: Type.String(),
  account: Type.NullableString('The name of the account; null if the endpoint receives the events of every account.'),
  name: Type.Nullable(Type.String()),
  events: Type.Array(Type.Enum(WEBHOOK_EVENT_TYPES)),
  status: Type.Enum(['enabled', 'disabled']),
  disabledReason: Type.NullableEnum(
    DISABLED_REASONS,
    '`operator`, `gone` (the endpoint responded with 410) or `failing` (no success for five days); null if enabled.',
  ),
  disabledAt: Type.Nullable(Time),
  createdAt: Time,
  previousSecretUntil: Type.NullableTime(
    'The time until which attempts are also signed with the previous secret; null if only the current secret is used.',
  ),
});
export type WebhookEntry = Static<typeof WebhookEntry>;

export const WebhookFigures = Type.Object({
  id: WebhookId,
  pending: Type.Integer('The number of pending deliveries.'),
  oldestPendingAt: Type.Nullable(Time),
  failed: Type.Integer('The number of deliveries whose schedule ended without a success.'),
  lastSuccessAt: Type.NullableTime(
    'The time of the last success, which can be up to ten seconds too early; null if there was none.',
  ),
  failingSince: Type.NullableTime(
    'The time of the first failure of the endpoint since the last success; null if there was none. Faults of the installation do not count.',
  ),
});
export type WebhookFigures = Static<typeof WebhookFigures>;

export const WebhookSecret = Type.Object({ id: WebhookId, secret: SigningSecret });
export type WebhookSecret = Static<typeof WebhookSecret>;

export const WebhookRotation = Type.Object({
  ...WebhookSecret.properties,
  previousSecretUntil: Type.Time('The time until which attempts are also signed with the previous secret.'),
});
export type WebhookRotation = Static<typeof WebhookRotation>;

export const DeliveryEntry = Type.Object({
  id: Type.Uuid('The id of the delivery, which is the header `webhook-id`.'),
  webhookId: WebhookId,
  type: Type.Enum([...WEBHOOK_EVENT_TYPES, WEBHOOK_TEST_TYPE]),
  message: Type.NullableUuid('The id of the message; null for an event about an object other than a message.'),
  status: Type.Enum(DELIVERY_STATUSES),
  attempts: Type.Array(
    Type.Object({
      at: Time,
      durationMs: Type.Integer(),
      status: Type.NullableInteger('The HTTP status; null without a response.'),
      error: Type.NullableString('The reason for the failure; null after a success.'),
      body: Type.NullableString('The first 512 bytes of the response body as text. Untrusted.'),
    }),
  ),
  nextAttemptAt: Type.Nullable(Time),
});
export type DeliveryEntry = Static<typeof DeliveryEntry>;

const MAX_ROWS_PER_STEP = 500;
const LEASE_POLL_MS = 50;
const MAX_GRACE_MS = 30 * 24 * 3_600_000;

type ChangeContext = Pick<OperationContext, 'store' | 'clock'>;

const Url = Type.String('The URL of the endpoint, such as `https://app.example.com/webhooks`.');

const createEventList = (supplement = '') =>
  Type.OptionalParsed(`The types of events, separated by commas, or \`all\`${supplement}.`, parseEvents);

function parseEvents(text: string): ParseResult<readonly WebhookEventType[]> {
  if (text.trim() === 'all') return createParseResult(WEBHOOK_EVENT_TYPES);
  const names = text.split(',').map((name) => name.trim());
  const unknownName = names.find((name) => !WEBHOOK_EVENT_TYPES.some((type) => type === name));
  return unknownName === undefined
    ? createParseResult(WEBHOOK_EVENT_TYPES.filter((type) => names.includes(type)))
    : createFault(
        `${quote(unknownName)} is not a type${formatSuggestion(unknownName, WEBHOOK_EVENT_TYPES)}; give all, or types of ${WEBHOOK_EVENT_TYPES.join(', ')}`,
      );
}

const createEndpointName = (options: Parameters<typeof createParsed>[0]) =>
  Type.OptionalParsed<string | null>(options, (text) => (text === '' ? createParseResult(null) : parseName(text)));

/** The endpoint receives every event that any node records after the operation has returned. */
export const createWebhook = defineOperation({
  name: 'webhook.create',
  id: 'createWebhook',
  summary: 'Create an endpoint for webhooks; its signing secret is shown once',
  ...changes('operator'),
  input: Type.Object({
    url: Url,
    account: Type.OptionalString('The name of the account; without it the endpoint receives events of every account.'),
    events: createEventList('; without it all types except `message.accepted` and `message.deferred`'),
    name: createEndpointName('A label of the endpoint.'),
  }),
  result: WebhookSecret,
  errors: ['not-found', 'conflict'],
  async run({ url: urlText, account = null, events = DEFAULT_WEBHOOK_EVENT_TYPES, name = null }, context) {
    const { store, clock, random, settings } = context;
    const url = await checkUrl(urlText, context);
    if (!url.ok) return url;
    const secret = createSigningSecret(random);
    const sealedSecret = sealSigningSecret(loadWebhookKey(settings), secret);
    const webhook = { ...url.value, account, name, events, sealed: sealedSecret };
    const result = await store.createWebhook(webhook, clock.now());
    switch (result.kind) {
      case 'done':
        return ok({ id: formatWebhookId(result.value.id), secret });
      case 'missing':
        return createAccountNotFound(account ?? '');
      case 'too-many':
        return createConflict(null, `there are ${MAX_WEBHOOKS} endpoints, the maximum; delete one of them first`);
    }
  },
});

export const listWebhooks = defineOperation({
  name: 'webhook.list',
  id: 'listWebhooks',
  summary: 'List the endpoints for webhooks, with the paths and queries of their URLs masked',
  ...reads('viewer'),
  input: Type.Object({}),
  result: Type.Array(WebhookEntry),
  async run(_input, { store, clock }) {
    return ok((await store.listWebhooks()).map((webhook) => toWebhookEntry(webhook, clock.now())));
  },
});

/** `listWebhooks` returns no figures, because the store counts all pending deliveries for them. */
export const showWebhookStatistics = defineOperation({
  name: 'webhook.statistics',
  id: 'showWebhookStatistics',
  summary:
    'Show the pending and failed deliveries of each endpoint, its last success, and its first failure since then',
  ...reads('viewer'),
  input: Type.Object({}),
  result: Type.Array(WebhookFigures),
  async run(_input, { store }) {
    const [webhooks, statistics] = await Promise.all([store.listWebhooks(), store.readWebhookStatistics()]);
    const statisticsById = new Map(statistics.map((entry) => [entry.webhookId, entry]));
    return ok(webhooks.map((webhook) => toFigures(webhook, statisticsById.get(webhook.id))));
  },
});

export const showWebhook = defineOperation({
  name: 'webhook.show',
  id: 'showWebhook',
  summary: 'Show an endpoint for webhooks; a token without the scope `full` sees the path and query of its URL masked',
  ...reads('viewer'),
  input: Type.Object({ id: WebhookNumber }),
  result: WebhookEntry,
  errors: ['not-found'],
  async run({ id }, { store, clock, scope, settings }) {
    const webhook = await store.findWebhook(id);
    if (webhook === null) return createWebhookNotFound(id);
    const entry = toWebhookEntry(webhook, clock.now());
    const seesUrl = scope === 'all' || scope === 'full';
    return ok(seesUrl ? { ...entry, url: openTargetUrl(loadWebhookKey(settings), webhook.sealedUrl) } : entry);
  },
});

/** The change applies to each attempt that begins after the operation has returned. */
export const updateWebhook = defineOperation({
  name: 'webhook.update',
  id: 'updateWebhook',
  summary: 'Change the URL, the name or the events of an endpoint; omitted members do not change',
  ...changes('operator'),
  input: Type.Object({
    id: WebhookNumber,
    url: Type.Optional(Url),
    events: createEventList(),
    name: createEndpointName({ description: 'A label of the endpoint; an empty text removes it.', minLength: 0 }),
  }),
  result: WebhookEntry,
  errors: ['not-found', 'conflict'],
  async run({ id, url: urlText, ...change }, context) {
    if (urlText === undefined && Object.keys(change).length === 0) {
      const names = ['url', 'events', 'name'];
      return createInvalidTemplate(null, (getName) => `nothing changes; give one of ${names.map(getName).join(', ')}`);
    }
    const url = urlText === undefined ? ok(null) : await checkUrl(urlText, context);
    if (!url.ok) return url;
    return changeWebhook(id, context, ({ store }) => store.updateWebhook(id, { ...url.value, ...change }));
  },
});

export const deleteWebhook = defineOperation({
  name: 'webhook.delete',
  id: 'deleteWebhook',
  summary: 'Delete an endpoint and its deliveries',
  ...changes('operator'),
  input: Type.Object({ id: WebhookNumber }),
  result: Type.Object({ id: WebhookId, url: Type.String() }),
  errors: ['not-found'],
  async run({ id }, context) {
    const deleteResult = await changeWebhook(id, context, ({ store }) => store.deleteWebhook(id));
    return deleteResult.ok ? ok({ id: deleteResult.value.id, url: deleteResult.value.url }) : deleteResult;
  },
});

export const enableWebhook = defineOperation({
  name: 'webhook.enable',
  id: 'enableWebhook',
  summary: 'Enable an endpoint; its pending deliveries are due at once',
  ...changes('operator'),
  input: Type.Object({ id: WebhookNumber }),
  result: WebhookEntry,
  errors: ['not-found'],
  async run({ id }, { store, clock }) {
    const result = await store.enableWebhook(id);
    if (result.kind !== 'done') return createWebhookNotFound(id);
    const now = clock.now();
    while ((await store.releaseDeliveries(id, now, MAX_ROWS_PER_STEP)) >= MAX_ROWS_PER_STEP);
    return ok(toWebhookEntry(result.value, now));
  },
});

export const disableWebhook = defineOperation({
  name: 'webhook.disable',
  id: 'disableWebhook',
  summary: 'Disable an endpoint; its events are kept for 30 days',
  ...changes('operator'),
  input: Type.Object({ id: WebhookNumber }),
  result: WebhookEntry,
  errors: ['not-found'],
  async run({ id }, context) {
    return changeWebhook(id, context, ({ store, clock }) => store.disableWebhook(id, clock.now()));
  },
});

/** Until the grace period ends, attempts are signed with both secrets. */
export const rotateWebhook = defineOperation({
  name: 'webhook.rotate',
  id: 'rotateWebhook',
  summary: 'Replace the signing secret of an endpoint; the new secret is shown once',
  ...changes('operator'),
  input: Type.Object({
    id: WebhookNumber,
    grace: createParsed(
      {
        default: '24h',
        description:
          'The time for which attempts are also signed with the old secret; the default is `24h`, the maximum `30d`.',
      },
      (text) => {
        const graceMs = parseDuration(text);
        return graceMs.ok && graceMs.value > MAX_GRACE_MS ? createFault(`${quote(text)} is longer than 30d`) : graceMs;
      },
    ),
  }),
  result: WebhookRotation,
  errors: ['not-found'],
  async run({ id, grace: graceMs }, context) {
    const { clock, random, settings } = context;
    const secret = createSigningSecret(random);
    const sealedSecret = sealSigningSecret(loadWebhookKey(settings), secret);
    const previousUntil = clock.now() + graceMs;
    const rotateResult = await changeWebhook(id, context, ({ store }) =>
      store.rotateWebhookSecret(id, sealedSecret, previousUntil),
    );
    if (!rotateResult.ok) return rotateResult;
    return ok({ id: rotateResult.value.id, secret, previousSecretUntil: formatIsoTime(previousUntil) });
  },
});

/** Checks that the host resolves to permitted addresses. Returns the normalized URL, masked and encrypted. */
async function checkUrl(
  text: string,
  { settings }: Pick<OperationContext, 'settings'>,
): Promise<Result<Pick<Webhook, 'url' | 'sealedUrl'>>> {
  if (text.includes(MASK))
    return createInvalid('url', 'the URL is masked; give the whole URL, which `postrider webhook show ID` prints');
  const { webhookTargets: targets, dns } = settings;
  const url = parseTargetUrl(text, targets);
  // A conflict and not an invalid input, because the settings of the installation do not permit the URL.
  if (!url.ok) return createConflict('url', `the URL ${quote(maskTargetUrl(text))} ${url.fault}`);
  const addresses = await resolveTarget(url.value, targets, createHostLookup(dns, targets === 'any'));
  if (addresses.ok)
    return ok({ url: maskTargetPath(url.value), sealedUrl: sealTargetUrl(loadWebhookKey(settings), url.value.href) });
  const message = `the URL ${quote(maskTargetUrl(text))} ${addresses.fault}`;
  return addresses.code === 'dns-failed' ? createUnavailable(message) : createConflict('url', message);
}

/** Resolves when each earlier claim has ended or can no longer begin, so the change applies to every later attempt. */
async function changeWebhook(
  id: number,
  context: ChangeContext,
  change: (context: ChangeContext) => Promise<ChangeResult<Webhook>>,
): Promise<Result<WebhookEntry>> {
  const { store, clock } = context;
  const result = await change(context);
  if (result.kind !== 'done') return createWebhookNotFound(id);
  const waitEndsAt = clock.now() + MAX_START_DELAY_MS;
  const listLeases = async () => {
    const now = clock.now();
    const leases = await store.listDeliveryLeases(id, now, now + 2 * DELIVERY_LEASE_MS);
    return leases.map((lease) => `${lease.id} ${lease.lease}`);
  };
  for (let earlierLeases = await listLeases(); earlierLeases.length > 0 && clock.now() < waitEndsAt; ) {
    await new Promise<void>((resolve) => clock.after(LEASE_POLL_MS, resolve));
    const currentLeases = new Set(await listLeases());
    earlierLeases = earlierLeases.filter((lease) => currentLeases.has(lease));
  }
  return ok(toWebhookEntry(result.value, clock.now()));
}

function toWebhookEntry(webhook: Webhook, now: number): WebhookEntry {
  const { id, url, account, name, events, disabled, createdAt, previousSecretUntil: until } = webhook;
  return {
    id: formatWebhookId(id),
    url,
    account,
    name,
    events: [...events],
    status: disabled === null ? 'enabled' : 'disabled',
    disabledReason: disabled?.reason ?? null,
    disabledAt: formatIsoTimeOrNull(disabled?.at ?? null),
    createdAt: formatIsoTime(createdAt),
    previousSecretUntil: formatIsoTimeOrNull(until !== null && until > now ? until : null),
  };
}

function toFigures(
  { id, lastSuccessAt, failingSince }: Webhook,
  statistics: WebhookStatistics | undefined,
): WebhookFigures {
  return {
    id: formatWebhookId(id),
    pending: statistics?.pendingCount ?? 0,
    oldestPendingAt: formatIsoTimeOrNull(statistics?.oldestPendingAt ?? null),
    failed: statistics?.failedCount ?? 0,
    lastSuccessAt: formatIsoTimeOrNull(lastSuccessAt),
    failingSince: formatIsoTimeOrNull(failingSince),
  };
}

export function createWebhookNotFound(id: number): ErrorResult {
  return createNotFound(
    'id',
    `there is no endpoint ${formatWebhookId(id)}; \`postrider webhook list\` lists endpoints`,
  );
}

const MAX_PAGE_SIZE = 1_000;

const createDeliveryIdMember = (description: string) =>
  Type.OptionalParsed({ description }, (text) =>
    isUuid(text) ? createParseResult(text) : createFault(`${quote(text)} is not the id of a delivery, which is a UUID`),
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
    since: Type.OptionalParsed(
      'A date (UTC) or a duration such as `1h`; without it, deliveries of any age are replayed.',
      (text, now) => parseTimestamp(text, now, 'back'),
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
