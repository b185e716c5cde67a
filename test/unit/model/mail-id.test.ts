import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { counterOf, isMailId, mailIds, timeOf } from '../../../src/model/message-id.ts';

const NOW = Date.UTC(2026, 0, 5, 12);

function increasing(ids: readonly string[]): boolean {
  return ids.every((id, index) => index === 0 || (ids[index - 1] ?? '') < id);
}

test('an id is a lower-case UUIDv7 of its time', () => {
  const id = mailIds(null, randomUUID).next(NOW);
  expect(isMailId(id)).toBe(true);
  expect([timeOf(id), counterOf(id)]).toEqual([NOW, 0]);
  expect(id).toBe(id.toLowerCase());
});

test('ids are strictly increasing whatever the clock does', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: NOW - 5_000, max: NOW + 5_000 }), { maxLength: 200 }), (times) => {
      const ids = mailIds(null, randomUUID);
      const made = times.map((now) => ids.next(now));
      expect(increasing(made)).toBe(true);
      expect(made.every(isMailId)).toBe(true);
    }),
  );
});

test('more than 4096 in one millisecond go on in the next, still increasing and unique', () => {
  const ids = mailIds(null, randomUUID);
  const made = Array.from({ length: 10_000 }, () => ids.next(NOW));
  expect(increasing(made)).toBe(true);
  expect(made.map(timeOf).filter((ms) => ms === NOW)).toHaveLength(4_096);
  expect(timeOf(made.at(-1) ?? '')).toBe(NOW + 2);
  // Borrowed milliseconds are made up for: the clock, once past them, leads again.
  expect(timeOf(ids.next(NOW + 10))).toBe(NOW + 10);
});

test('after a restart they go on behind the last one stored, also with the clock set back and a full counter', () => {
  const before = mailIds(null, randomUUID);
  let last = '';
  for (let n = 0; n < 4_096; n += 1) last = before.next(NOW);
  expect(counterOf(last)).toBe(4_095);
  const after = mailIds(last, randomUUID);
  const made = [after.next(NOW - 3_600_000), after.next(NOW), after.next(NOW + 60_000)];
  expect(increasing([last, ...made])).toBe(true);
  expect(made.every(isMailId)).toBe(true);
});

test('the last 62 bits are random, so an id tells nothing about its neighbour', () => {
  const ids = mailIds(null, randomUUID);
  const tails = new Set(Array.from({ length: 1_000 }, () => ids.next(NOW).slice(19)));
  expect(tails.size).toBe(1_000);
});

test.each([
  '',
  '01990000-0000-4000-8000-000000000001',
  '01990000-0000-7000-c000-000000000001',
  '01990000-0000-7000-8000-00000000000A',
  '01990000-0000-7000-8000-0000000000011',
  '01990000-0000-7000-8000-000000000001\n',
  '019900000000700080000000000000010000',
])('%j is no id', (text) => {
  expect(isMailId(text)).toBe(false);
});
