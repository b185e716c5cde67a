import { expect, test } from 'vitest';
import { type LoopTest, type LoopTestParts, runLoopTests } from '../../../src/doctor/loop.ts';
import type { HistoryEntry, StoredMessage } from '../../../src/model/message.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const LOOP_TEST: LoopTest = {
  check: 'loop bounce',
  to: 'bounce@example.org',
  expectedState: 'bounced',
  remedy: 'check the MX',
};
const createEvent = (verb: string, by: string, detail: string | null = null): HistoryEntry => ({
  at: 0,
  verb,
  by,
  detail,
  failure: null,
  attempt: null,
});
const createMessage = (state: StoredMessage['state'], ...events: HistoryEntry[]) =>
  ({ state, events }) as unknown as StoredMessage;

/** Runs one loop test. Each poll returns the next state; the last state repeats. */
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

test('a report that arrives yields the result ok, with the source of the report and the time until its arrival', async () => {
  const finding = await runTest([
    null,
    createMessage('sending'),
    createMessage('delivered'),
    createMessage('bounced', createEvent('bounced', 'feedback:smtp')),
  ]);
  expect(finding).toMatchObject({
    result: 'ok',
    detail: 'the feedback report for bounce@example.org arrived over smtp after 3 s',
  });
});

test('a relay that refuses the recipient at once is a warning', async () => {
  const finding = await runTest([createMessage('bounced', createEvent('bounced', 'node-a', '550 no'))]);
  expect(finding).toMatchObject({ result: 'warning', detail: expect.stringContaining('at once (550 no)') });
});

test('a delivered message without a report before the timeout is a failure, and the finding contains the remedy', async () => {
  expect(await runTest([createMessage('delivered', createEvent('delivered', 'node-a'))])).toMatchObject({
    result: 'failure',
    detail: 'the message to bounce@example.org was delivered, but no feedback report arrived within 10 s',
    remedy: 'check the MX',
  });
});

test('a message that is not delivered before the timeout is a failure, and the finding contains the last event', async () => {
  expect(await runTest([createMessage('queued', createEvent('deferred', 'node-a', '451 later'))])).toMatchObject({
    result: 'failure',
    detail: 'the message to bounce@example.org was not delivered within 10 s: 451 later',
    remedy: expect.stringContaining('postrider message explain the-id'),
  });
});

test('a message in an unexpected terminal state and a message that is not accepted are failures', async () => {
  expect(await runTest([createMessage('suppressed', createEvent('suppressed', 'node-a'))])).toMatchObject({
    result: 'failure',
  });
  const refusingParts = { send: () => Promise.reject(new Error('the account is locked')) };
  expect(await runTest([null], refusingParts)).toMatchObject({ result: 'failure', detail: 'the account is locked' });
});
