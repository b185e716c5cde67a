/** Compares the types of events in the client library with the schemas from which the service builds its webhooks. */
import type { Static } from 'typebox';
import { expect, test } from 'vitest';
import type { WebhookDataByType, WebhookEvent, WebhookEventType } from '../../../clients/typescript/src/index.ts';
import { WEBHOOK_DATA_SCHEMAS } from '../../../src/model/webhook-payload.ts';

type ServiceData = { [Type in keyof typeof WEBHOOK_DATA_SCHEMAS]: Static<(typeof WEBHOOK_DATA_SCHEMAS)[Type]> };

/** `readonly` of an array is part of its type in the client library only. */
type Mutable<T> = T extends readonly (infer Item)[]
  ? Mutable<Item>[]
  : T extends object
    ? { -readonly [Key in keyof T]: Mutable<T[Key]> }
    : T;

/** The keys whose types differ, or that only one of both has. Otherwise `never`. */
type Difference<A, B> = { [Key in keyof A | keyof B]: Compare<A, B, Key> }[keyof A | keyof B];
type Compare<A, B, Key> = Key extends keyof A & keyof B
  ? [A[Key], B[Key]] extends [B[Key], A[Key]]
    ? never
    : Key
  : Key;

/** This function compiles only if no type of event differs. */
function requireNone<_Type extends never>(): void {}

test('the data of each type of event has the type of its schema', () => {
  // The type check of this file fails with the names of the types that differ.
  requireNone<Difference<Mutable<WebhookDataByType>, Mutable<ServiceData>>>();
  const isKnown = (type: WebhookEventType): type is WebhookEvent['type'] => type in WEBHOOK_DATA_SCHEMAS;
  expect(isKnown('message.bounced')).toBe(true);
});
