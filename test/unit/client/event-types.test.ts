/** Compares the event types in the client library with the schemas from which the service builds its webhooks. */
import type { Static } from 'typebox';
import { expect, test } from 'vitest';
import type { WebhookDataByType, WebhookEvent, WebhookEventType } from '../../../clients/typescript/src/index.ts';
import { WEBHOOK_DATA_SCHEMAS } from '../../../src/model/webhook-payload.ts';

type ServiceData = { [Type in keyof typeof WEBHOOK_DATA_SCHEMAS]: Static<(typeof WEBHOOK_DATA_SCHEMAS)[Type]> };

/** Removes `readonly`, which only the client library uses for arrays. */
type WithoutReadonly<T> = T extends readonly (infer Item)[]
  ? WithoutReadonly<Item>[]
  : T extends object
    ? { -readonly [Key in keyof T]: WithoutReadonly<T[Key]> }
    : T;

/** The keys whose types differ, and the keys that only one of `A` and `B` has. `never` if `A` and `B` are equal. */
type Difference<A, B> = { [Key in keyof A | keyof B]: MemberDifference<A, B, Key> }[keyof A | keyof B];
type MemberDifference<A, B, Key> = Key extends keyof A & keyof B
  ? [A[Key], B[Key]] extends [B[Key], A[Key]]
    ? never
    : Key
  : Key;

/** A call of this function compiles only if its type argument is `never`. */
function requireNone<_Type extends never>(): void {}

test('the client library and the service declare the same data for each event type', () => {
  // If two types differ, the type check of this file fails with the name of their event type.
  requireNone<Difference<WithoutReadonly<WebhookDataByType>, WithoutReadonly<ServiceData>>>();
  const isKnown = (type: WebhookEventType): type is WebhookEvent['type'] => type in WEBHOOK_DATA_SCHEMAS;
  expect(isKnown('message.bounced')).toBe(true);
});
