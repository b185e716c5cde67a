/** Tests SubscriptionChange events of Postmark that lack a member. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { POSTMARK_EVENTS } from '../../../src/providers/postmark/events.ts';

const SAMPLES = join(import.meta.dirname, '../../../src/providers/postmark/samples');

/** Replaces members of a sample with `changes`. Returns the kinds of the facts that are read. */
function readKinds(sample: string, changes: Record<string, unknown>): string[] {
  const event: Record<string, unknown> = JSON.parse(readFileSync(join(SAMPLES, sample), 'utf8'));
  const body = Buffer.from(JSON.stringify({ ...event, ...changes }));
  const result = POSTMARK_EVENTS.read({ method: 'POST', headers: {}, body, url: null });
  return result.kind === 'events' ? result.events.map(({ fact }) => fact.kind) : [result.kind];
}

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
