import { expect, test } from 'vitest';
import type { LeasedMessage, StateChange } from '../../../src/model/message.ts';
import { createSuppressionCheck, LEASE_MS } from '../../../src/queue/attempt.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createMessage } from '../../rig/messages.ts';
import { START } from '../../rig/queue.ts';

const createChange = (suppress: StateChange['suppress']): StateChange => ({
  to: 'bounced',
  dueAt: null,
  event: { at: START, verb: 'bounced', by: 'n', detail: null, failure: null, attempt: null },
  suppress,
});

function createCheckRig(answer: boolean) {
  const clock = createVirtualClock(START);
  const queriedIds: string[] = [];
  const check = createSuppressionCheck(clock, async ({ id }) => {
    queriedIds.push(id);
    return answer;
  });
  const createLeasedMessage = (to = 'rita@example.com', accountId = 1): LeasedMessage => ({
    ...createMessage({ to, accountId }),
    attempts: 1,
    lease: { owner: 'n', until: clock.now() + LEASE_MS },
  });
  return { clock, queriedIds, check, createLeasedMessage };
}

test('no message is sent to a recipient that this node has just suppressed, regardless of the letter case of the address', () => {
  const { check, createLeasedMessage } = createCheckRig(true);
  expect(check.mayReceive(createLeasedMessage())).toBe(true);
  check.recordChange(createLeasedMessage('Rita@example.com'), createChange('bounce'));
  expect(check.mayReceive(createLeasedMessage())).toBe(false);
  expect(check.mayReceive(createLeasedMessage('max@example.com'))).toBe(true);
  expect(check.mayReceive(createLeasedMessage('rita@example.com', 2))).toBe(true);
});

test('for a lease older than one second, the node also queries the store, which contains the suppressions of other nodes', async () => {
  for (const answer of [true, false]) {
    const { clock, queriedIds, check, createLeasedMessage } = createCheckRig(answer);
    const message = createLeasedMessage();
    expect(check.mayReceive(message)).toBe(true);
    await clock.advance(1_000);
    expect(await check.mayReceive(message)).toBe(answer);
    expect(queriedIds).toEqual([message.id]);
  }
});

test('five seconds after a suppression, only the store determines the result, so that a removed suppression does not prevent a message', async () => {
  const { clock, check, createLeasedMessage } = createCheckRig(true);
  check.recordChange(createLeasedMessage(), createChange('bounce'));
  await clock.advance(5_000);
  expect(check.mayReceive(createLeasedMessage())).toBe(true);
});
