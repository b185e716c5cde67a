import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { loadSettings } from '../../../src/config/load.ts';
import type { Scope } from '../../../src/model/audit.ts';
import { DELIVERY_LEASE_MS, formatWebhookId, MAX_START_DELAY_MS } from '../../../src/model/webhook.ts';
import { perform } from '../../../src/operations/operation.ts';
import {
  createWebhook,
  deleteWebhook,
  disableWebhook,
  listWebhooks,
  rotateWebhook,
  showWebhook,
  updateWebhook,
} from '../../../src/operations/webhooks.ts';
import type { Store } from '../../../src/store/contract.ts';
import { openStore } from '../../../src/store/open.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { createOperationRig } from '../operations/operation-rig.ts';

const OLD_URL = 'https://192.31.196.7/old';
const NEW_URL = 'https://192.31.196.7/new';
const SETTINGS = loadSettings({ POSTRIDER_SECRET: 'ab'.repeat(32) }, null);

async function openTestStore(): Promise<Store> {
  // The contract suites test the statements of both stores.
  const path = join(createTemporaryFolder(), 'postrider.db');
  const store = await openStore({ kind: 'sqlite', path }, { exclusive: true, runsInCallerThread: true });
  onTestFinished(() => store.close());
  await store.createAccount('default', NO_LIMITS, Date.now());
  return store;
}

const context = (store: Store) => ({
  ...{ store, clock: systemClock, random: randomBytes, settings: SETTINGS },
  ...{ actor: 'cli:test', scope: 'all', status: null, publish: () => undefined },
});

test.each([
  { name: 'an update', change: updateWebhook, input: { url: NEW_URL } },
  { name: 'a rotation', change: rotateWebhook, input: { grace: '1h' } },
  { name: 'disabling an endpoint', change: disableWebhook, input: {} },
  { name: 'deleting an endpoint', change: deleteWebhook, input: {} },
])(
  'the operation for $name returns when the lease of an earlier claim is released, or when no attempt of that claim may begin any more',
  async ({ change, input }) => {
    const store = await openTestStore();
    const endpoint = {
      url: OLD_URL,
      sealedUrl: OLD_URL,
      account: null,
      name: null,
      events: ['message.accepted'],
      sealed: 'unused',
    } as const;
    const ids = await Promise.all(
      [1, 2].map(async () => {
        const createResult = await store.createWebhook(endpoint, Date.now());
        if (createResult.kind !== 'done') throw new Error(createResult.kind);
        return createResult.value.id;
      }),
    );
    await store.accept([createMessage()]);
    const clock = createVirtualClock(Date.now());
    const now = clock.now();
    await store.fanOutEvents(now, '0'.repeat(16), 10, 0);
    const limits = { maxDeliveries: 10, freeSlots: [], defaultFreeSlots: 10, after: 0 };
    const { deliveries } = await store.claimDeliveries(limits, 'node-a', now + DELIVERY_LEASE_MS, now);
    expect(deliveries).toHaveLength(2);
    for (const webhookId of ids) {
      let listCount = 0;
      const listDeliveryLeases: Store['listDeliveryLeases'] = (...args) => {
        listCount += 1;
        return store.listDeliveryLeases(...args);
      };
      let isReturned = false;
      const parts = { ...context(store), clock, store: { ...store, listDeliveryLeases } };
      const operation: Parameters<typeof perform>[0] = change;
      const operationPromise = perform(operation, { id: formatWebhookId(webhookId), ...input }, parts).then(
        ({ ok }) => {
          isReturned = true;
          return ok;
        },
      );
      // An operation that waits for the lease lists the leases first. An operation that does not wait returns.
      await expect.poll(() => isReturned || listCount > 0, { interval: 1, timeout: 120_000 }).toBe(true);
      expect(isReturned).toBe(false);
      const startedAt = clock.now();
      if (webhookId === ids[0]) {
        const lease = deliveries.filter((delivery) => delivery.webhookId === webhookId);
        await store.releaseDeliveryLeases(lease, now);
      }
      const advanceAndCheck = async () => {
        await clock.advance(50);
        return isReturned;
      };
      await expect.poll(advanceAndCheck, { interval: 5, timeout: 120_000 }).toBe(true);
      expect(await operationPromise).toBe(true);
      // The lease of the second endpoint is not released, so its operation waits until no attempt may begin.
      if (webhookId !== ids[0]) expect(clock.now() - startedAt).toBeGreaterThanOrEqual(MAX_START_DELAY_MS);
    }
  },
);

test('the path and the query of a URL are masked in lists, results, the audit log and for tokens without the scope full, and encrypted in the store', async () => {
  const rig = await createOperationRig();
  const url = 'https://192.31.196.7/hooks/secret-word?token=secret-word';
  const maskedUrl = 'https://192.31.196.7/********';
  const { id } = await rig.performSuccessfully(createWebhook, { url });
  const updated = await rig.performSuccessfully(updateWebhook, { id, url: `${url}2`, name: 'shop' });
  const [listed] = await rig.performSuccessfully(listWebhooks, {});
  const showAs = async (scope: Scope) => {
    const result = await perform(showWebhook, { id }, { ...rig.context, scope });
    return result.ok ? result.value.url : result.error;
  };
  expect([updated.url, listed?.url, await showAs('read'), await showAs('content')]).toEqual(Array(4).fill(maskedUrl));
  expect([await showAs('all'), await showAs('full')]).toEqual([`${url}2`, `${url}2`]);
  for (const masked of [maskedUrl, 'https://192.31.196.7/other?token=********'])
    expect(await rig.perform(updateWebhook, { id, url: masked })).toMatchObject({
      error: { code: 'invalid', message: expect.stringContaining('give the whole URL') },
    });
  await rig.performSuccessfully(deleteWebhook, { id });
  const [entries, files] = [await await rig.store.listAudit(null, 10), readdirSync(rig.folder)];
  expect(JSON.stringify(entries)).toContain(maskedUrl);
  const content = files.map((name) => readFileSync(join(rig.folder, name), 'latin1')).join();
  expect(JSON.stringify(entries) + content).not.toContain('secret-word');
});
