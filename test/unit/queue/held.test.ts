import { expect, test } from 'vitest';
import { createHeld, HELD_BYTES, HELD_MAILS, sizeOf } from '../../../src/queue/held.ts';

const MIB = 1024 * 1024;

test('no more is held than the bounds of number and of size', () => {
  const held = createHeld();
  for (let n = 0; n < HELD_MAILS; n += 1) held.take(1);
  expect([held.fits(1), held.room(0)]).toEqual([false, null]);
  const large = createHeld();
  large.take(HELD_BYTES - 10);
  expect([large.fits(10), large.fits(11)]).toEqual([true, false]);
});

test('one larger than the bound is held, alone', () => {
  const held = createHeld();
  expect(held.fits(2 * HELD_BYTES)).toBe(true);
  held.take(2 * HELD_BYTES);
  expect([held.fits(1), held.room(0)]).toEqual([false, null]);
  held.free(2 * HELD_BYTES);
  expect(held.room(0)).toEqual({ mails: HELD_MAILS, bytes: 16 * MIB });
});

test('a claim asks for no more text than half of what is free, since text in memory may be twice what it is as UTF-8', () => {
  const held = createHeld();
  held.take(20 * MIB);
  expect(held.room(0)).toEqual({ mails: HELD_MAILS - 1, bytes: 6 * MIB });
  expect(sizeOf({ message: 'ü'.repeat(10) })).toBe(Buffer.byteLength('ü'.repeat(10), 'utf16le'));
});

test('no claim is made while plenty waits already, or for a few large ones', () => {
  const held = createHeld();
  expect([held.room(HELD_MAILS / 4) === null, held.room(HELD_MAILS / 4 + 1)]).toEqual([false, null]);
  held.take(HELD_BYTES - 10);
  expect(held.room(1)).toBeNull();
  expect(held.room(0)).not.toBeNull();
});

test('a fast next hop may have more waiting for it, a slow one keeps the least', () => {
  const held = createHeld();
  held.pace(1);
  expect(held.room(0)?.mails).toBe(HELD_MAILS);
  held.pace(1_000);
  expect(held.room(0)?.mails).toBe(4_000);
  held.pace(1_000_000);
  expect(held.room(0)?.mails).toBe(8_192);
  held.pace(0);
  expect(held.room(0)?.mails).toBe(HELD_MAILS);
});
