import { expect, test } from 'vitest';
import { createMode, type Mode, TRANSITIONS } from '../../../src/queue/mode.ts';
import { newMail } from '../../rig/mail.ts';
import { queueRig, START } from '../../rig/queue.ts';

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
