/**
 * Tests which webhooks a receiver gets, with the embedded store. test/long/webhook-trial.test.ts tests 10,000 messages
 * with both databases.
 */
import { expect, test } from 'vitest';
import { MESSAGE_EVENT_TYPES } from '../../src/model/webhook.ts';
import { runWebhookTrial } from '../rig/webhook-trial.ts';

test('although the receiver and the node are killed, a receiver that ignores repeated webhook ids gets each event in `message show` exactly once', async () => {
  const {
    states,
    types,
    repetitionCount: _,
    ...differences
  } = await runWebhookTrial({
    messageCount: 300,
    settings: {},
    nodeCount: 1,
    nodeKillCount: 1,
    receiverKillCount: 2,
    seed: 17,
    maxAgeMs: 8_000,
  });
  expect(differences).toEqual({ missingEvents: [], extraEvents: [], inconsistencies: [] });
  expect(Object.keys(states).toSorted()).toEqual(
    ['bounced', 'cancelled', 'complained', 'delivered', 'expired', 'suppressed', 'uncertain'].toSorted(),
  );
  expect(Object.keys(types).toSorted()).toEqual([...MESSAGE_EVENT_TYPES, 'suppression.added'].toSorted());
});
