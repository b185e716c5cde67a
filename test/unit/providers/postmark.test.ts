/** Tests SubscriptionChange events of Postmark that lack a member. */
import { expect, it } from 'vitest';
import type { Json } from '../../../src/providers/json.ts';
import { POSTMARK_EVENTS } from '../../../src/providers/postmark/events.ts';
import { createFormatReader, replaceMembers } from '../../rig/event-format.ts';

const { readSample, read } = createFormatReader('postmark', POSTMARK_EVENTS);

/** Replaces members of a sample with `changes`. Returns the kinds of the facts that are read. */
const readKinds = (sample: string, changes: Json) =>
  read(replaceMembers(readSample(sample), changes)).events.map(({ fact }) => fact.kind);

it('a change without SuppressSending and without a reason suppresses no recipient', () => {
  const sample = 'subscription-change-reactivated.json';
  expect(readKinds(sample, {})).toEqual(['reactivated']);
  expect(readKinds(sample, { SuppressSending: undefined })).toEqual([]);
  expect(readKinds(sample, { SuppressSending: null })).toEqual([]);
});

it('a change with only one of SuppressSending and SuppressionReason is read according to this member', () => {
  const sample = 'subscription-change-hard-bounce.json';
  expect(readKinds(sample, { SuppressSending: undefined })).toEqual(['bounce']);
  expect(readKinds(sample, { SuppressionReason: undefined })).toEqual(['unsubscribed']);
});
