/**
 * The payload of webhooks: smaller than 20,000 bytes, because long texts are cut, and without content and secrets. The
 * same event always has the same payload. Pure.
 */
import type { Static, TSchema } from 'typebox';
import type { Thresholds, WindowCounts } from './account.ts';
import type { RecordCheck, SendingDomain } from './domain.ts';
import { FAILURE_CATEGORIES, FAILURE_CLASSES, type Failure } from './failure.ts';
import { STATES } from './message.ts';
import { DEFAULT_ROUTE } from './route.ts';
import { createEnum, createNullable, Type } from './schema.ts';
import { SUPPRESSION_REASONS, type Suppression } from './suppression.ts';
import {
  DISABLED_REASONS,
  type DisabledReason,
  formatWebhookId,
  type RecordedMessageEvent,
  type RecordedWebhookEvent,
  type WEBHOOK_TEST_TYPE,
  type Webhook,
  type WebhookEventType,
} from './webhook.ts';

const MAX_TEXT_LENGTH = 1_500;
/** Of the text about one DNS record. */
const MAX_RECORD_DETAIL_LENGTH = 200;
const MAX_RECORDS = 12;

const AccountName = Type.String({ description: 'The name of the account.' });

const messageMembers = {
  id: Type.String({ format: 'uuid', description: 'The id of the message.' }),
  account: AccountName,
  to: Type.String({ description: 'The recipient.' }),
  from: Type.String({ description: 'The sender.' }),
  subject: Type.String(),
  state: createEnum(
    STATES,
    'The state of the message after the change. In message.accepted: queued, sending or suppressed.',
  ),
  sequence: Type.Integer({
    minimum: 0,
    description:
      'The position of the change in the history of the message, from 0 (accepted). Entries without an event are also counted. Deliveries may arrive in a different order.',
  }),
};
const routeMember = {
  route: createNullable(
    Type.String({ description: 'The route of the attempt, such as `default`; null if no attempt caused the event.' }),
  ),
};
const diagnosticMembers = {
  ...routeMember,
  status: createNullable(Type.String({ description: 'The enhanced status code, such as `5.1.1` (RFC 3463).' })),
  diagnostic: createNullable(
    Type.String({
      description:
        'The reply with its codes, or the report, in one line, as in `message show`. Untrusted: another server wrote it.',
    }),
  ),
};
const failureMembers = {
  class: createNullable(createEnum(FAILURE_CLASSES, 'The class of the failure.')),
  category: createNullable(createEnum(FAILURE_CATEGORIES, 'The cause of the failure.')),
  ...diagnosticMembers,
};
const SuppressedMember = Type.Boolean({
  description:
    'True if the change suppressed the recipient for the account, or if the recipient was already suppressed.',
});
const detailMember = {
  detail: createNullable(Type.String({ description: 'The reason, in one line.' })),
};

const BasicMessageData = Type.Object(messageMembers);
const DeliveredData = Type.Object({ ...messageMembers, ...diagnosticMembers });
const FailedData = Type.Object({ ...messageMembers, ...failureMembers });
const BouncedData = Type.Object({ ...messageMembers, ...failureMembers, suppressed: SuppressedMember });
const ComplainedData = Type.Object({ ...messageMembers, ...detailMember, suppressed: SuppressedMember });
const DetailedMessageData = Type.Object({ ...messageMembers, ...detailMember });
const UncertainData = Type.Object({ ...messageMembers, ...routeMember, ...detailMember });

const DomainData = Type.Object({
  domain: Type.String({ description: 'The name of the domain.' }),
  account: AccountName,
  status: createEnum(['authenticated', 'failing'], 'The status of the domain after the change.'),
  records: Type.Array(
    Type.Object({
      purpose: Type.String({ description: 'The purpose of the record: dkim, spf, dmarc, return-path or provider.' }),
      type: Type.String({ description: 'The type of the record, such as TXT.' }),
      name: Type.String({ description: 'The name of the record.' }),
      found: createEnum(['found', 'missing', 'wrong', 'unknown'], 'The result of the last lookup that DNS answered.'),
      detail: Type.String({ description: 'The found value, the expected value and the remedy, in one line.' }),
    }),
    { description: 'The records of the last check.' },
  ),
});
export type DomainData = Static<typeof DomainData>;

const AccountData = Type.Object({
  account: AccountName,
  reason: createNullable(Type.String({ description: 'The reason for the warning or the lock; null after an unlock.' })),
  figures: Type.Object(
    {
      messages: Type.Integer({ description: 'Delivered and bounced messages.' }),
      bounces: Type.Integer({ description: 'Recipients with a hard bounce.' }),
      complaints: Type.Integer({ description: 'Recipients with a complaint.' }),
    },
    { description: 'The figures of the last 7 days, or of the time since the last unlock if that is shorter.' },
  ),
  limit: Type.Object(
    {
      bounceRate: Type.Number({ description: 'The bounce rate at which the account is locked, as a fraction.' }),
      complaintRate: Type.Number({ description: 'The complaint rate at which the account is locked, as a fraction.' }),
    },
    { description: 'The thresholds of the account.' },
  ),
});
export type AccountData = Static<typeof AccountData>;

const SuppressionData = Type.Object({
  account: Type.String({ description: 'The name of the account, or `*` for the list of the whole service.' }),
  address: Type.String({ description: 'The canonical address.' }),
  reason: createEnum(SUPPRESSION_REASONS, 'The reason for the entry.'),
  source: createNullable(
    Type.String({ description: 'The id of the message that caused the entry; null if no message caused it.' }),
  ),
});
export type SuppressionData = Static<typeof SuppressionData>;

const WebhookDisabledData = Type.Object({
  id: Type.String({ description: 'The id of the endpoint.' }),
  url: Type.String(),
  name: createNullable(Type.String()),
  account: createNullable(
    Type.String({ description: 'The name of the account; null if the endpoint receives the events of every account.' }),
  ),
  reason: createEnum(DISABLED_REASONS, 'The reason why the endpoint was disabled.'),
});
export type WebhookDisabledData = Static<typeof WebhookDisabledData>;

const TestData = Type.Object({
  id: Type.String({ description: 'The id of the endpoint.' }),
});

/** The member `data` of each event type. */
export const WEBHOOK_DATA_SCHEMAS = {
  'message.accepted': BasicMessageData,
  'message.delivered': DeliveredData,
  'message.confirmed': DetailedMessageData,
  'message.deferred': FailedData,
  'message.bounced': BouncedData,
  'message.complained': ComplainedData,
  'message.suppressed': DetailedMessageData,
  'message.expired': FailedData,
  'message.cancelled': BasicMessageData,
  'message.uncertain': UncertainData,
  'domain.authenticated': DomainData,
  'domain.failing': DomainData,
  'account.warned': AccountData,
  'account.locked': AccountData,
  'account.unlocked': AccountData,
  'suppression.added': SuppressionData,
  'suppression.removed': SuppressionData,
  'webhook.disabled': WebhookDisabledData,
  'webhook.test': TestData,
} as const satisfies Readonly<Record<WebhookEventType | typeof WEBHOOK_TEST_TYPE, TSchema>>;

type DataOf<T extends keyof typeof WEBHOOK_DATA_SCHEMAS> = Static<(typeof WEBHOOK_DATA_SCHEMAS)[T]>;

export interface WebhookPayload {
  readonly type: RecordedWebhookEvent['type'];
  /** ISO 8601, UTC. */
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export function createPayloadSchema(type: keyof typeof WEBHOOK_DATA_SCHEMAS) {
  return Type.Object({
    type: Type.Literal(type),
    timestamp: Type.String({ format: 'date-time', description: 'The time of the change, ISO 8601, UTC.' }),
    data: WEBHOOK_DATA_SCHEMAS[type],
  });
}

/** `failure`: the classification of the history entry of an event about a message (`classifyEntry`). */
export function buildWebhookPayload(event: RecordedWebhookEvent, failure: Failure | null): WebhookPayload {
  switch (event.kind) {
    case 'resource':
      return { type: event.type, timestamp: toIsoTime(event.at), data: event.data };
    case 'message':
      return { type: event.type, timestamp: toIsoTime(event.entry.at), data: buildMessageData(event, failure) };
  }
}

function buildMessageData(event: RecordedMessageEvent, failure: Failure | null): DataOf<RecordedMessageEvent['type']> {
  const { id, account, to, from, subject, state, sequence, suppressed } = event;
  const message = { id, account, to, from, subject: cutText(subject, MAX_TEXT_LENGTH), state, sequence };
  const detail = cutTextOrNull(event.entry.detail);
  const failureData = { class: failure?.class ?? null, category: failure?.category ?? null, ...describeReply(event) };
  switch (event.type) {
    case 'message.accepted':
    case 'message.cancelled':
      return message satisfies DataOf<'message.accepted'>;
    case 'message.delivered':
      return { ...message, ...describeReply(event) } satisfies DataOf<'message.delivered'>;
    case 'message.deferred':
    case 'message.expired':
      return { ...message, ...failureData } satisfies DataOf<'message.deferred'>;
    case 'message.bounced':
      return { ...message, ...failureData, suppressed } satisfies DataOf<'message.bounced'>;
    case 'message.complained':
      return { ...message, detail, suppressed } satisfies DataOf<'message.complained'>;
    case 'message.uncertain':
      return { ...message, route: findRoute(event), detail } satisfies DataOf<'message.uncertain'>;
    case 'message.confirmed':
    case 'message.suppressed':
      return { ...message, detail } satisfies DataOf<'message.suppressed'>;
  }
}

function findRoute({ entry: { attempt } }: RecordedMessageEvent): string | null {
  return attempt === null ? null : (attempt.route ?? DEFAULT_ROUTE);
}

function describeReply(event: RecordedMessageEvent): {
  route: string | null;
  status: string | null;
  diagnostic: string | null;
} {
  const { attempt, failure, detail } = event.entry;
  const status = failure === null ? (attempt?.outcome.reply.enhanced ?? null) : failure.status;
  return { route: findRoute(event), status, diagnostic: cutTextOrNull(failure?.diagnostic ?? detail) };
}

export function buildDomainData(
  { name }: Pick<SendingDomain, 'name'>,
  account: string,
  status: 'authenticated' | 'failing',
  checks: readonly RecordCheck[],
): DomainData {
  const records = checks.slice(0, MAX_RECORDS).map(({ purpose, type, name: recordName, found, detail }) => {
    return { purpose, type, name: recordName, found, detail: cutText(detail, MAX_RECORD_DETAIL_LENGTH) };
  });
  return { domain: name, account, status, records };
}

export function buildAccountData(
  account: string,
  reason: string | null,
  { emails, bounces, complaints }: Pick<WindowCounts, 'emails' | 'bounces' | 'complaints'>,
  { bounceRate, complaintRate }: Thresholds,
): AccountData {
  const figures = { messages: emails, bounces, complaints };
  return { account, reason: cutTextOrNull(reason), figures, limit: { bounceRate, complaintRate } };
}

export function buildSuppressionData(
  account: string,
  { address, reason, source }: Pick<Suppression, 'address' | 'reason' | 'source'>,
): SuppressionData {
  return { account, address, reason, source };
}

export function buildWebhookDisabledData(
  { id, url, name, account }: Pick<Webhook, 'id' | 'url' | 'name' | 'account'>,
  reason: DisabledReason,
): WebhookDisabledData {
  return { id: formatWebhookId(id), url, name, account, reason };
}

function cutTextOrNull(text: string | null): string | null {
  return text === null ? null : cutText(text, MAX_TEXT_LENGTH);
}

/** Ends with an ellipsis if it is cut, and never splits a surrogate pair. */
function cutText(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const isHighSurrogate = (text.charCodeAt(maxLength - 2) & 0xfc00) === 0xd800;
  return `${text.slice(0, maxLength - (isHighSurrogate ? 2 : 1))}…`;
}

function toIsoTime(ms: number): string {
  return new Date(ms).toISOString();
}
