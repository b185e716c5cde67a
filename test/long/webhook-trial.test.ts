/**
 * Tests which webhooks a receiver gets while the receiver and the nodes are killed repeatedly. The 10,000 messages
 * cause events of every type. test/rig/webhook-trial.ts describes the trial.
 */
import { expect, test } from 'vitest';
import { MESSAGE_EVENT_TYPES } from '../../src/model/webhook.ts';
import { createTemporaryDatabase } from '../rig/postgres.ts';
import { runWebhookTrial } from '../rig/webhook-trial.ts';

const SECRET = 'ef'.repeat(32);
const MESSAGE_COUNT = 10_000;

test.each([
  { store: 'SQLite', nodeCount: 1, nodeKillCount: 6, seed: 1 },
  { store: 'PostgreSQL', nodeCount: 2, nodeKillCount: 10, seed: 2 },
])(
  'a receiver that ignores repeated ids gets each event of 10,000 messages exactly once, with $nodeCount nodes on $store',
  {
    timeout: 3_600_000,
  },
  async ({ store, nodeCount, nodeKillCount, seed }) => {
    const settings: Record<string, string> = {};
    if (store === 'PostgreSQL') {
      settings.POSTRIDER_DATABASE = await createTemporaryDatabase();
      settings.POSTRIDER_SECRET = SECRET;
    }
    const { states, types, repetitionCount, ...differences } = await runWebhookTrial({
      messageCount: MESSAGE_COUNT,
      settings,
      nodeCount,
      nodeKillCount,
      receiverKillCount: 20,
      seed,
      maxAgeMs: 60_000,
      onProgress: (line) => process.stderr.write(`${line}\n`),
    });
    process.stderr.write(`${JSON.stringify({ store, states, types, repetitions: repetitionCount })}\n`);
    expect(differences).toEqual({ missingEvents: [], extraEvents: [], inconsistencies: [] });
    expect(Object.keys(types).toSorted()).toEqual([...MESSAGE_EVENT_TYPES, 'suppression.added'].toSorted());
    expect(Object.values(states).reduce((sum, count) => sum + count, 0)).toBe(MESSAGE_COUNT);
  },
);
