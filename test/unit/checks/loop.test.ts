import { expect, test } from 'vitest';
import { type LoopTest, type LoopTestParts, runLoopTests } from '../../../src/checks/feedback.ts';
import type { StoredMessage } from '../../../src/model/message.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const LOOP_TEST: LoopTest = { to: 'bounce@example.org', expectedState: 'bounced', remedy: 'check the MX' };
const createMessage = (state: StoredMessage['state'], verb: string, by: string) =>
  ({ state, events: [{ at: 0, verb, by, detail: null, failure: null, attempt: null }] }) as unknown as StoredMessage;

async function runTest(states: readonly (StoredMessage | null)[], parts: Partial<LoopTestParts> = {}) {
  const clock = createVirtualClock(0);
  let pollIndex = 0;
  const [finding] = await runLoopTests({
    tests: [LOOP_TEST],
    send: async () => 'the-id',
    readMessage: async () => states[Math.min(pollIndex++, states.length - 1)] ?? null,
    clock,
    waitForPoll: () => clock.advance(1_000),
    timeoutMs: 10_000,
    ...parts,
  });
  return finding;
}

test.each([
  ['bounced', 'bounced', 'feedback:smtp', 'ok'],
  ['bounced', 'bounced', 'node-a', 'warning'],
  ['delivered', 'delivered', 'node-a', 'failure'],
  ['queued', 'deferred', 'node-a', 'failure'],
  ['suppressed', 'suppressed', 'node-a', 'failure'],
] as const)('a message with the state %s whose last event is %s by %s: %s', async (state, verb, by, result) => {
  expect(await runTest([null, createMessage(state, verb, by)])).toMatchObject({ level: result });
});

test('a message that is not accepted is a failure', async () => {
  const send = () => Promise.reject(new Error('the account is locked'));
  expect(await runTest([null], { send })).toMatchObject({ level: 'failure', text: 'the account is locked' });
});
