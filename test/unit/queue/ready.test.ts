import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LeasedMail } from '../../../src/model/message.ts';
import { createReady } from '../../../src/queue/ready.ts';
import { newMail } from '../../rig/mail.ts';

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
