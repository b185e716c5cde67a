import { expect, it } from 'vitest';
import type { Json } from '../../../src/providers/json.ts';
import { createFormatReader, replaceMembers } from '../../rig/event-format.ts';

const { readSample, read } = createFormatReader('postmark');

const readKinds = (sample: string, changes: Json) =>
  read(replaceMembers(readSample(sample), changes)).events.map(({ meaning }) => meaning);

it('a change without SuppressSending and without a reason suppresses no recipient', () => {
  const sample = 'subscription-change-reactivated.json';
  expect(readKinds(sample, {})).toEqual(['reactivated']);
  expect(readKinds(sample, { SuppressSending: undefined })).toEqual([]);
  expect(readKinds(sample, { SuppressSending: null })).toEqual([]);
});

it('a change with only one of SuppressSending and SuppressionReason is read according to this member', () => {
  const sample = 'subscription-change-hard-bounce.json';
  expect(readKinds(sample, { SuppressSending: undefined })).toEqual(['hard']);
  expect(readKinds(sample, { SuppressionReason: undefined })).toEqual(['unsubscribed']);
});
