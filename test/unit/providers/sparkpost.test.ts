import { describe, expect, it } from 'vitest';
import type { Json } from '../../../src/providers/json.ts';
import { createFormatReader, replaceMembers } from '../../rig/event-format.ts';

const { readSample, read, readEvent } = createFormatReader('sparkpost');

function createMember(sample: string, members: Json = {}): Json {
  const [{ msys }] = readSample(sample) as [{ msys: Record<string, Json> }];
  const changedEntries = Object.entries(msys).map(([name, event]) => [name, replaceMembers(event, members)]);
  return { msys: Object.fromEntries(changedEntries) };
}

function readBounce(members: Json, sample = 'bounce-10.json') {
  return readEvent([createMember(sample, members)]).meaning;
}

describe('the events of SparkPost', () => {
  it.each([
    ['10', 'hard'],
    [10, 'hard'],
    ['30', 'hard'],
    ['22', 'soft'],
    ['52', 'block'],
    ['9999', 'by-text'],
    ['constructor', 'by-text'],
    [undefined, 'by-text'],
  ])('a bounce of the class %j is %s', (bounceClass, expected) => {
    for (const sample of ['bounce-22.json', 'out-of-band-22.json'])
      expect(readBounce({ bounce_class: bounceClass }, sample)).toBe(expected);
  });

  it.each([
    ['554 5.7.1 [internal] recipient address was suppressed due to customer policy', 'provider-suppressed'],
    ['Recipient address was suppressed due to system policy', 'provider-suppressed'],
    ['554 5.7.1 [internal] message failed', 'block'],
    [undefined, 'block'],
  ])('a bounce of the class 25 with the reason “%s” is %s', (reason, expected) => {
    for (const member of ['raw_reason', 'reason']) {
      const members = { bounce_class: '25', raw_reason: undefined, reason: undefined, [member]: reason };
      expect(readBounce(members)).toBe(expected);
    }
  });

  it.each([
    ['550 5.7.1 recipient address was suppressed due to customer policy', 'provider-suppressed'],
    ['MAIL REFUSED - IP (192.0.2.10) is in black list', 'block'],
    ['550 5.1.1 bad recipient', 'provider-suppressed'],
    [undefined, 'block'],
    ['550 5.7.1 Unconfigured Sending Domain <example.org>', 'block'],
    ['550 5.7.1 Exceed Sending Limit', 'block'],
    ['550 5.7.1 relaying denied', 'block'],
  ])('a rejection with the reason “%s” is %s', (reason, expected) => {
    for (const sample of ['policy-rejection.json', 'generation-rejection.json'])
      expect(readBounce({ raw_reason: reason, reason }, sample)).toBe(expected);
  });

  it('a delay is read as a deferral, regardless of its class', () => {
    for (const bounceClass of ['10', '25', '51', undefined])
      expect(readBounce({ bounce_class: bounceClass }, 'delay.json')).toBe('deferred');
  });

  it.each(['abuse', 'fraud', 'virus', 'other', undefined])(
    'a spam complaint of the type %s is a complaint',
    (fbtype) => {
      expect(readBounce({ fbtype }, 'spam-complaint.json')).toBe('complaint');
    },
  );

  it.each(['not-spam', 'Not-Spam', 'not_spam'])('a report of the type %s is not a complaint', (fbtype) => {
    expect(read([createMember('spam-complaint.json', { fbtype })])).toMatchObject({ events: [], ignored: 1 });
  });

  it('the key is event_id or, without it, a digest that does not depend on the batch', () => {
    const memberWithoutId = createMember('bounce-10.json', { event_id: undefined });
    const [first, second] = [read([memberWithoutId]), read([createMember('delay.json'), memberWithoutId])];
    expect(first.events[0]?.key).toMatch(/^[0-9a-f]{64}$/);
    expect(second.events[1]?.key).toBe(first.events[0]?.key);
  });

  it('the request that tests the webhook is valid and has no event', () => {
    expect(read([{ msys: {} }])).toMatchObject({ events: [], broken: 0 });
  });

  it('a single event that is not in an array is read', () => {
    expect(readEvent(createMember('delivery.json')).meaning).toBe('delivered');
  });
});
