/**
 * The schemas of the results of the operations on webhooks. The file imports no module of Node, because the dashboard
 * imports the types.
 */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { DELIVERY_STATUSES, DISABLED_REASONS, WEBHOOK_EVENT_TYPES, WEBHOOK_TEST_TYPE } from '../../model/webhook.ts';
import { createNullable, createStringEnum, Time } from '../schemas.ts';

export const WebhookId = Type.String({ description: 'The id of the endpoint, such as `wh_1`.' });
const SigningSecret = Type.String({ description: 'The signing secret. It is not shown again.' });

export const WebhookEntry = Type.Object({
  id: WebhookId,
  url: Type.String(),
  account: createNullable(
    Type.String({ description: 'The name of the account; null if the endpoint receives the events of every account.' }),
  ),
  name: createNullable(Type.String()),
  events: Type.Array(createStringEnum(WEBHOOK_EVENT_TYPES)),
  status: createStringEnum(['enabled', 'disabled']),
  disabledReason: createNullable(
    createStringEnum(DISABLED_REASONS, {
      description:
        '`operator`, `gone` (the endpoint responded with 410) or `failing` (no success for five days); null if enabled.',
    }),
  ),
  disabledAt: createNullable(Time),
  createdAt: Time,
  previousSecretUntil: createNullable({
    ...Time,
    description:
      'The time until which attempts are also signed with the previous secret; null if only the current secret is used.',
  }),
});
export type WebhookEntry = Static<typeof WebhookEntry>;

/** The figures of an endpoint. */
export const WebhookFigures = Type.Object({
  id: WebhookId,
  pending: Type.Integer({ description: 'The number of pending deliveries.' }),
  oldestPendingAt: createNullable(Time),
  failed: Type.Integer({ description: 'The number of deliveries whose schedule ended without a success.' }),
  lastSuccessAt: createNullable({
    ...Time,
    description: 'The time of the last success, which can be up to ten seconds too early; null if there was none.',
  }),
  failingSince: createNullable({
    ...Time,
    description:
      'The time of the first failure of the endpoint since the last success; null if there was none. Faults of the installation do not count.',
  }),
});
export type WebhookFigures = Static<typeof WebhookFigures>;

/** A new signing secret. */
export const WebhookSecret = Type.Object({ id: WebhookId, secret: SigningSecret });
export type WebhookSecret = Static<typeof WebhookSecret>;

/** The new signing secret of a rotation. */
export const WebhookRotation = Type.Object({
  ...WebhookSecret.properties,
  previousSecretUntil: {
    ...Time,
    description: 'The time until which attempts are also signed with the previous secret.',
  },
});
export type WebhookRotation = Static<typeof WebhookRotation>;

export const DeliveryEntry = Type.Object({
  id: Type.String({ format: 'uuid', description: 'The id of the delivery, which is the header `webhook-id`.' }),
  webhookId: WebhookId,
  type: createStringEnum([...WEBHOOK_EVENT_TYPES, WEBHOOK_TEST_TYPE]),
  message: createNullable(
    Type.String({
      format: 'uuid',
      description: 'The id of the message; null for an event about an object other than a message.',
    }),
  ),
  status: createStringEnum(DELIVERY_STATUSES),
  attempts: Type.Array(
    Type.Object({
      at: Time,
      durationMs: Type.Integer(),
      status: createNullable(Type.Integer({ description: 'The HTTP status; null without a response.' })),
      error: createNullable(Type.String({ description: 'The reason for the failure; null after a success.' })),
      body: createNullable(
        Type.String({ description: 'The first 512 bytes of the response body as text. Untrusted.' }),
      ),
    }),
  ),
  nextAttemptAt: createNullable(Time),
});
export type DeliveryEntry = Static<typeof DeliveryEntry>;
