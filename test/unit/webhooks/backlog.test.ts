/**
 * Tests that the pending deliveries of an endpoint that refuses connections delay neither the acceptance of messages
 * nor the deliveries of another endpoint. The full number of pending deliveries is a million.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import type { DatabaseSetting } from '../../../src/config/settings.ts';
import type { Store } from '../../../src/store/contract.ts';
import { openStore } from '../../../src/store/open.ts';
import { createSigningKey, createSigningSecret } from '../../../src/webhooks/signature.ts';
import { startWebhookWorker } from '../../../src/webhooks/worker.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { createTemporaryDatabase } from '../../rig/postgres.ts';
import { selectCaseCount } from '../../rig/sample.ts';
import { parsePostgresUrl } from '../../rig/stores.ts';

const PENDING_COUNT = selectCaseCount(20_000, 1_000_000);
const MESSAGE_COUNT = 60;
const DEAD_URL = 'https://192.31.196.7/dead';
const KEY = createSigningKey(createSigningSecret(randomBytes));
const DELIVERY_COLUMNS = 'webhook_id, id, type, at, data, status, due_at, created_at';
const DELIVERY_VALUES = "'account.locked', 1, '{}', 'pending', 1, 1";

interface Installation {
  readonly setting: DatabaseSetting;
  /** Adds pending deliveries, all of which are due, to an endpoint. */
  readonly addPending: (webhookId: number, count: number) => Promise<unknown>;
}

function installSqlite(): Installation {
  const path = join(createTemporaryFolder(), 'postrider.db');
  return {
    setting: { kind: 'sqlite', path },
    async addPending(webhookId, count) {
      const database = new DatabaseSync(path);
      database.exec(
        `WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ${count})
         INSERT INTO webhook_delivery (${DELIVERY_COLUMNS}) SELECT ${webhookId}, printf('01900000-0000-7000-8000-%012d', n), ${DELIVERY_VALUES} FROM s`,
      );
      database.close();
    },
  };
}

async function installPostgres(): Promise<Installation> {
  const url = await createTemporaryDatabase();
  return {
    setting: parsePostgresUrl(url),
    async addPending(webhookId, count) {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(
        `INSERT INTO webhook_delivery (${DELIVERY_COLUMNS})
         SELECT ${webhookId}, ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, ${DELIVERY_VALUES} FROM generate_series(1, ${count}) n`,
      );
      await client.query('ANALYZE webhook_delivery');
      await client.end();
    },
  };
}

async function createWebhook(store: Store, url: string): Promise<number> {
  const endpoint = { url, account: null, name: null, events: ['message.accepted'], sealed: 'unused' } as const;
  const createResult = await store.createWebhook(endpoint, Date.now());
  if (createResult.kind !== 'done') throw new Error(createResult.kind);
  return createResult.value.id;
}

describe.each([
  ['sqlite', installSqlite],
  ['postgres', installPostgres],
] as const)('the %s store', (_name, install) => {
  test('an endpoint receives every event while another endpoint that refuses connections has a large backlog', async () => {
    const { setting, addPending } = await install();
    const store = await openStore(setting, { exclusive: true });
    onTestFinished(() => store.close());
    await store.createAccount('default', NO_LIMITS, Date.now());
    const deadId = await createWebhook(store, DEAD_URL);
    await createWebhook(store, 'https://192.31.196.7/healthy');
    await addPending(deadId, PENDING_COUNT);
    let deadAttemptCount = 0;
    const deliveredIds = new Set<string>();
    let claimCount = 0;
    const worker = startWebhookWorker({
      ...{ node: 'node-a', clock: systemClock, random: Math.random, publish: () => undefined },
      createSeed: () => randomBytes(8).toString('hex'),
      getRetentionStart: () => 0,
      store: {
        ...store,
        claimDeliveries(...args) {
          claimCount += 1;
          return store.claimDeliveries(...args);
        },
      },
      settle: async (settlement) => (await store.settleDeliveries([settlement], Date.now()))[0] ?? { kind: 'lost' },
      pace: { getPauseMs: () => 0 },
      openSecret: () => KEY,
      async attempt({ url, body }) {
        if (url === DEAD_URL) {
          deadAttemptCount += 1;
          return { durationMs: 1, status: null, error: 'connection refused', body: null, retryAfterMs: null };
        }
        deliveredIds.add((JSON.parse(Buffer.from(body).toString()) as { data: { id: string } }).data.id);
        return { durationMs: 1, status: 200, error: null, body: '', retryAfterMs: null };
      },
    });
    onTestFinished(() => worker.drain(1_000));
    for (let count = 0; count < MESSAGE_COUNT; count += 1) {
      const message = createMessage();
      await store.accept([message]);
      worker.wake();
      await expect.poll(() => deliveredIds.has(message.id), { interval: 1, timeout: 120_000 }).toBe(true);
    }
    // The attempts to the refusing endpoint become less frequent, so that its backlog does not load the store.
    expect(deadAttemptCount).toBeLessThan(MESSAGE_COUNT);
    expect(claimCount).toBeLessThan(20 * MESSAGE_COUNT);
  }, 240_000);
});
