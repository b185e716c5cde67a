import { expect, test } from 'vitest';
import { type LoopTest, type LoopTestParts, runLoopTests } from '../../../src/doctor/loop.ts';
import type { HistoryEntry, StoredMessage } from '../../../src/model/message.ts';
import { virtualClock } from '../../rig/clock.ts';

const TRIAL: LoopTest = {
  check: 'loop bounce',
  to: 'bounce@example.org',
  expectedState: 'bounced',
  remedy: 'look at the MX',
};
const event = (verb: string, by: string, detail: string | null = null): HistoryEntry => ({
  at: 0,
  verb,
  by,
  detail,
  attempt: null,
});
const mailIn = (state: StoredMessage['state'], ...events: HistoryEntry[]) =>
  ({ state, events }) as unknown as StoredMessage;

/** Runs one trial over what the store shows at each look; the last one stays. */
async function tried(looks: readonly (StoredMessage | null)[], parts: Partial<LoopTestParts> = {}) {
  const clock = virtualClock(0);
  let at = 0;
  const [finding] = await runLoopTests({
    tests: [TRIAL],
    send: async () => 'the-id',
    readMessage: async () => looks[Math.min(at++, looks.length - 1)] ?? null,
    clock,
    waitForPoll: () => clock.advance(1_000),
    timeoutMs: 10_000,
    ...parts,
  });
  return finding;
}

test('a notice that comes back is fine, with the way it took and the time', async () => {
  const finding = await tried([
    null,
    mailIn('sending'),
    mailIn('delivered'),
    mailIn('bounced', event('bounced', 'feedback:smtp')),
  ]);
  expect(finding).toMatchObject({
    result: 'ok',
    detail: 'the notice about bounce@example.org came back over smtp after 3 s',
  });
});

test('a relay that refuses at once proves nothing about the way back', async () => {
  const finding = await tried([mailIn('bounced', event('bounced', 'node-a', '550 no'))]);
  expect(finding).toMatchObject({ result: 'warning', detail: expect.stringContaining('refused at once (550 no)') });
});

test('handed over and nothing heard fails with the remedy, after the bound', async () => {
  expect(await tried([mailIn('delivered', event('delivered', 'node-a'))])).toMatchObject({
    result: 'failure',
    detail: 'bounce@example.org was handed over, and no notice came back within 10 s',
    remedy: 'look at the MX',
  });
});

test('not handed over at all says what it waits for', async () => {
  expect(await tried([mailIn('queued', event('deferred', 'node-a', '451 later'))])).toMatchObject({
    result: 'failure',
    detail: 'the message to bounce@example.org was not handed over within 10 s: 451 later',
    remedy: expect.stringContaining('postrider message explain the-id'),
  });
});

test('another end, and a message that is not accepted, are failures of their own', async () => {
  expect(await tried([mailIn('suppressed', event('suppressed', 'node-a'))])).toMatchObject({ result: 'failure' });
  const refused = { send: () => Promise.reject(new Error('the account is locked')) };
  expect(await tried([null], refused)).toMatchObject({ result: 'failure', detail: 'the account is locked' });
});
