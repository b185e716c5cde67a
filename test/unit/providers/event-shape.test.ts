import { describe, expect, it } from 'vitest';
import { createEventReader, findListReason } from '../../../src/providers/event-shape.ts';

const ID = '01990000-0000-7000-8000-000000000001';

const read = createEventReader({
  sources: {
    type: ['type', 'old_type'],
    subtypes: ['data.class', 'data.reason'],
    key: ['id'],
    messageId: ['data.metadata', 'data.header'],
    reference: [({ reference }) => reference],
    recipient: ['data.to', 'data.email'],
    at: ['data.at'],
    status: ['data.status'],
    diagnostic: ['data.text'],
  },
  meanings: {
    bounce: ({ isHard }) => (isHard === true ? 'hard' : 'soft'),
    listed: 'provider-suppressed',
    sent: 'delivered',
    open: 'ignored',
  },
  listReason: (_event, { diagnostic }) => (diagnostic === 'spam' ? 'complaint' : undefined),
  requiredObject: 'data',
});
const readEvent = (event: Readonly<Record<string, unknown>>) => {
  const result = read(event);
  if (typeof result === 'string') throw new Error(result);
  return result;
};

describe('an event that is read according to the table of member names', () => {
  it('has the value of the first listed member that is valid', () => {
    const data = { to: '', email: 'a@example.com', header: `<${ID}@example.com>`, metadata: {}, at: 7, text: 'x' };
    expect(readEvent({ type: null, old_type: 'sent', id: 'e1', reference: 'r1', data })).toEqual({
      type: 'sent',
      key: 'e1',
      messageId: ID,
      reference: 'r1',
      recipient: 'a@example.com',
      at: 7_000,
      fact: { kind: 'delivered', diagnosis: { status: null, diagnostic: 'x', host: null } },
    });
  });

  it('has a type that contains each of its subtypes', () => {
    expect(readEvent({ type: 'sent', data: { class: 'a', reason: 7 } }).type).toBe('sent/a/7');
    expect(readEvent({ type: 'sent', data: { reason: 'b' } }).type).toBe('sent/b');
  });

  it('has the meaning that the rule of its type defines', () => {
    expect(readEvent({ type: 'bounce', isHard: true, data: {} }).fact).toMatchObject({ failureClass: 'hard' });
    expect(readEvent({ type: 'bounce', data: {} }).fact).toMatchObject({ failureClass: 'soft' });
    expect(readEvent({ type: 'listed', data: { text: 'spam' } }).fact).toMatchObject({ reason: 'complaint' });
    expect(readEvent({ type: 'listed', data: {} }).fact).toMatchObject({ reason: 'unknown' });
  });

  it('has the same key as an identical event if neither event has an id', () => {
    expect(readEvent({ type: 'sent', data: {} }).key).toBe(readEvent({ type: 'sent', data: {} }).key);
    expect(readEvent({ type: 'sent', data: {} }).key).not.toBe(readEvent({ type: 'sent', data: { at: 1 } }).key);
  });
});

it.each([
  ['without a type', {}, 'broken'],
  ['of an unknown type', { type: 'other', data: {} }, 'ignored'],
  ['of an inherited type', { type: 'constructor', data: {} }, 'ignored'],
  ['of an ignored type', { type: 'open' }, 'ignored'],
  ['without the required object', { type: 'sent', data: [] }, 'broken'],
])('an event %s is broken or ignored', (_name, event, expected) => {
  expect(read(event)).toBe(expected);
});

it('a member that an object inherits is treated as absent', () => {
  const inheritedBody = JSON.parse('{"type":"sent","data":{"__proto__":{"to":"b@example.com"}}}') as Record<
    string,
    unknown
  >;
  expect(readEvent(inheritedBody).recipient).toBeNull();
  expect(readEvent({ type: 'sent', data: Object.create({ to: 'b@example.com' }) }).recipient).toBeNull();
});

it('the suppression reason is that of the first phrase of the table that occurs in the text', () => {
  const phrases = [
    ['unsubscribe', 'unsubscribe'],
    ['spam', 'complaint'],
  ] as const;
  expect(findListReason('SPAM, then Unsubscribed', phrases)).toBe('unsubscribe');
  expect(findListReason('other', phrases)).toBe('unknown');
  expect(findListReason(null, phrases)).toBe('unknown');
});
