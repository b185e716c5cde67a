import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LeasedMessage } from '../../../src/model/message.ts';
import {
  createLeaseBudget,
  createReadyQueue,
  getMemoryBytes,
  MAX_LEASED_BYTES,
  MIN_LEASE_LIMIT,
} from '../../../src/queue/leases.ts';
import { createMessage } from '../../rig/messages.ts';

const MIB = 1024 * 1024;

test('leases stay within the limits on number and size', () => {
  const budget = createLeaseBudget();
  for (let n = 0; n < MIN_LEASE_LIMIT; n += 1) budget.reserve(1);
  expect([budget.hasRoomFor(1), budget.getClaimLimits(0)]).toEqual([false, null]);
  const largeBudget = createLeaseBudget();
  largeBudget.reserve(MAX_LEASED_BYTES - 10);
  expect([largeBudget.hasRoomFor(10), largeBudget.hasRoomFor(11)]).toEqual([true, false]);
});

test('a message larger than the limit is leased alone', () => {
  const budget = createLeaseBudget();
  expect(budget.hasRoomFor(2 * MAX_LEASED_BYTES)).toBe(true);
  budget.reserve(2 * MAX_LEASED_BYTES);
  expect([budget.hasRoomFor(1), budget.getClaimLimits(0)]).toEqual([false, null]);
  budget.release(2 * MAX_LEASED_BYTES);
  expect(budget.getClaimLimits(0)).toEqual({ maxMessages: MIN_LEASE_LIMIT, maxBytes: 16 * MIB });
});

test('a claim is limited to half of the free memory, because text may need twice its UTF-8 size', () => {
  const budget = createLeaseBudget();
  budget.reserve(20 * MIB);
  expect(budget.getClaimLimits(0)).toEqual({ maxMessages: MIN_LEASE_LIMIT - 1, maxBytes: 6 * MIB });
  expect(getMemoryBytes({ message: 'ü'.repeat(10) })).toBe(Buffer.byteLength('ü'.repeat(10), 'utf16le'));
});

test('no claim starts while many messages wait, or while a few large messages wait', () => {
  const budget = createLeaseBudget();
  expect([budget.getClaimLimits(MIN_LEASE_LIMIT / 4) === null, budget.getClaimLimits(MIN_LEASE_LIMIT / 4 + 1)]).toEqual(
    [false, null],
  );
  budget.reserve(MAX_LEASED_BYTES - 10);
  expect(budget.getClaimLimits(1)).toBeNull();
  expect(budget.getClaimLimits(0)).not.toBeNull();
});

test('a fast next hop raises the limit on leases, and with a slow next hop the limit is the minimum', () => {
  const budget = createLeaseBudget();
  budget.setAttemptRate(1);
  expect(budget.getClaimLimits(0)?.maxMessages).toBe(MIN_LEASE_LIMIT);
  budget.setAttemptRate(1_000);
  expect(budget.getClaimLimits(0)?.maxMessages).toBe(4_000);
  budget.setAttemptRate(1_000_000);
  expect(budget.getClaimLimits(0)?.maxMessages).toBe(8_192);
  budget.setAttemptRate(0);
  expect(budget.getClaimLimits(0)?.maxMessages).toBe(MIN_LEASE_LIMIT);
});

function createLeasedMessage(accountId: number, id: string): LeasedMessage {
  const { to, from, subject, message, acceptedAt } = createMessage();
  return {
    id,
    accountId,
    to,
    from,
    subject,
    message,
    acceptedAt,
    heldMs: 0,
    attempts: 1,
    lease: { owner: 'node-a', until: 1 },
  };
}

test('accounts are served round-robin, so that one message does not wait behind a thousand messages of another account', () => {
  const readyQueue = createReadyQueue();
  for (let n = 0; n < 1_000; n += 1) readyQueue.enqueue(createLeasedMessage(1, `a${n}`));
  readyQueue.enqueue(createLeasedMessage(2, 'b0'));
  readyQueue.enqueue(createLeasedMessage(3, 'c0'));
  const returnedIds = Array.from({ length: 5 }, () => readyQueue.dequeue()?.id);
  expect(returnedIds).toEqual(['a0', 'b0', 'c0', 'a1', 'a2']);
  expect(readyQueue.size).toBe(997);
});

test('no message is lost or returned twice, the messages of each account keep their order, and the queue size is correct', () => {
  const steps = fc.array(fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant('dequeue' as const)), {
    maxLength: 2_000,
  });
  fc.assert(
    fc.property(steps, (stepList) => {
      const readyQueue = createReadyQueue();
      const waitingIds = new Map<number, string[]>();
      let [enqueuedCount, size] = [0, 0];
      for (const step of stepList) {
        if (step === 'dequeue') {
          const message = readyQueue.dequeue();
          expect(message === undefined).toBe(size === 0);
          if (message === undefined) continue;
          expect(waitingIds.get(message.accountId)?.shift()).toBe(message.id);
          size -= 1;
        } else {
          enqueuedCount += 1;
          readyQueue.enqueue(createLeasedMessage(step, `m${enqueuedCount}`));
          waitingIds.set(step, [...(waitingIds.get(step) ?? []), `m${enqueuedCount}`]);
          size += 1;
        }
        expect(readyQueue.size).toBe(size);
      }
      expect(
        readyQueue
          .dequeueAll()
          .map(({ id }) => id)
          .sort(),
      ).toEqual([...waitingIds.values()].flat().sort());
      expect(readyQueue.size).toBe(0);
    }),
    { numRuns: 30 },
  );
});
