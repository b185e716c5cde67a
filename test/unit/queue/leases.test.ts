import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LeasedMail } from '../../../src/model/message.ts';
import {
  createHeld,
  createMode,
  createReady,
  HELD_BYTES,
  HELD_MAILS,
  type Mode,
  sizeOf,
  TRANSITIONS,
} from '../../../src/queue/leases.ts';
import { newMail } from '../../rig/mail.ts';
import { queueRig, START } from '../../rig/queue.ts';

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

function leased(accountId: number, id: string): LeasedMail {
  const { to, from, subject, message, acceptedAt } = newMail();
  return { id, accountId, to, from, subject, message, acceptedAt, attempts: 1, lease: { owner: 'node-a', until: 1 } };
}

test('accounts take turns: one mail does not wait behind a thousand of another account', () => {
  const ready = createReady();
  for (let n = 0; n < 1_000; n += 1) ready.add(leased(1, `a${n}`));
  ready.add(leased(2, 'b0'));
  ready.add(leased(3, 'c0'));
  const taken = Array.from({ length: 5 }, () => ready.take()?.id);
  expect(taken).toEqual(['a0', 'b0', 'c0', 'a1', 'a2']);
  expect(ready.size).toBe(997);
});

test('an empty one gives nothing and can be filled again', () => {
  const ready = createReady();
  expect([ready.take(), ready.size, ready.takeAll()]).toEqual([undefined, 0, []]);
  ready.add(leased(1, 'a'));
  expect([ready.take()?.id, ready.take(), ready.size]).toEqual(['a', undefined, 0]);
});

test('nothing is lost or given twice, each account keeps its order, and the size is always right', () => {
  const steps = fc.array(fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant('take' as const)), { maxLength: 2_000 });
  fc.assert(
    fc.property(steps, (run) => {
      const ready = createReady();
      const waiting = new Map<number, string[]>();
      let [made, size] = [0, 0];
      for (const step of run) {
        if (step === 'take') {
          const mail = ready.take();
          expect(mail === undefined).toBe(size === 0);
          if (mail === undefined) continue;
          expect(waiting.get(mail.accountId)?.shift()).toBe(mail.id);
          size -= 1;
        } else {
          made += 1;
          ready.add(leased(step, `m${made}`));
          waiting.set(step, [...(waiting.get(step) ?? []), `m${made}`]);
          size += 1;
        }
        expect(ready.size).toBe(size);
      }
      expect(
        ready
          .takeAll()
          .map(({ id }) => id)
          .sort(),
      ).toEqual([...waiting.values()].flat().sort());
      expect(ready.size).toBe(0);
    }),
    { numRuns: 30 },
  );
});

test('a long line keeps its order across its inner clearing out', () => {
  const ready = createReady();
  for (let n = 0; n < 2_000; n += 1) ready.add(leased(1, String(n)));
  expect(ready.takeAll().map(({ id }) => Number(id))).toEqual(Array.from({ length: 2_000 }, (_, n) => n));
});

const MODES = Object.keys(TRANSITIONS) as Mode[];

/** A way from `starting` to each mode. */
const WAYS: Readonly<Record<Mode, readonly Mode[]>> = {
  starting: [],
  running: ['running'],
  draining: ['running', 'draining'],
  stopped: ['running', 'draining', 'stopped'],
};

test('the mode follows its table of transitions; every other transition throws and changes nothing', () => {
  const taken = MODES.flatMap((from) =>
    MODES.flatMap((to) => {
      const mode = createMode();
      for (const step of WAYS[from]) mode.enter(step);
      expect(mode.current).toBe(from);
      if (TRANSITIONS[from].includes(to)) {
        mode.enter(to);
        expect(mode.current).toBe(to);
        return [`${from} → ${to}`];
      }
      expect(() => mode.enter(to)).toThrow(`no transition from ${from} to ${to}`);
      expect(mode.current).toBe(from);
      return [];
    }),
  );
  expect(taken).toEqual(['starting → running', 'starting → draining', 'running → draining', 'draining → stopped']);
});

test('a dispatcher starts once, and not once it drains', async () => {
  const { dispatcher, clock } = queueRig();
  dispatcher.start();
  expect(() => dispatcher.start()).toThrow('no transition from running to running');
  const drained = dispatcher.drain(1_000);
  await clock.advance(0);
  await drained;
  expect(() => dispatcher.start()).toThrow('no transition from stopped to running');
});

test('before its start a dispatcher claims nothing, gives no lease, and drains at once', async () => {
  const rig = queueRig();
  const mail = newMail({ acceptedAt: START });
  rig.store.accept([mail]);
  rig.dispatcher.wake();
  await rig.clock.advance(10_000);
  expect([rig.store.showMail(mail.id)?.state, rig.dispatcher.leaseForNew(START, 1)]).toEqual(['queued', null]);
  const drained = rig.dispatcher.drain(60_000);
  await rig.clock.advance(0);
  await drained;
  expect(rig.clock.now()).toBe(START + 10_000);
});
