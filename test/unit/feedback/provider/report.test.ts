import { expect, test } from 'vitest';
import { createEventReports } from '../../../../src/feedback/provider/body.ts';
import type { ProviderEvent } from '../../../../src/providers/event-reader.ts';

const IDS = ['01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000002'] as const;
const createEvent = (messageId: string | null, key: string): ProviderEvent => ({
  ...{ type: 'delivery', messageId, reference: null, recipient: 'ada@example.com', key },
  ...{ meaning: 'delivered', hasListReason: false },
  diagnosis: { status: null, diagnostic: null, host: null },
});
const computeDigests = (signsKeyOnly: boolean, ...events: readonly ProviderEvent[]) =>
  createEventReports(events, { provider: 'sparkpost', now: 0, usesReferences: false, signsKeyOnly }).map(
    ({ digest }) => digest,
  );

test('the digest of an event begins with the id of its message, and differs from that of every other event', () => {
  const events = [createEvent(IDS[0], 'a'), createEvent(IDS[0], 'b'), createEvent(IDS[1], 'a'), createEvent(null, 'a')];
  const digests = computeDigests(false, ...events);
  expect(new Set(digests).size).toBe(4);
  expect(digests.map((digest) => digest.slice(0, 36)).slice(0, 3)).toEqual([IDS[0], IDS[0], IDS[1]]);
  expect(computeDigests(false, ...events)).toEqual(digests);
});

test('if the signature covers only the key, events with the same key and different messages have the same digest', () => {
  const [first, second] = computeDigests(true, createEvent(IDS[0], 'a'), createEvent(IDS[1], 'a'));
  expect(first).toBe(second);
});
