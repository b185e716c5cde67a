/**
 * Tests that a change of an endpoint applies, on every node, to every attempt that begins after the operation has
 * returned. During the changes, two workers move events and claim deliveries of the same store.
 */
import { randomBytes } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { DELIVERY_LEASE_MS, formatWebhookId, MAX_START_DELAY_MS } from '../../../src/model/webhook.ts';
import { perform } from '../../../src/operations/operation.ts';
import { deleteWebhook, disableWebhook, rotateWebhook, updateWebhook } from '../../../src/operations/webhooks.ts';
import type { Store } from '../../../src/store/contract.ts';
import { createSigningKey, createSigningSecret } from '../../../src/webhooks/signature.ts';
import { startWebhookWorker } from '../../../src/webhooks/worker.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createMessage, NO_LIMITS } from '../../rig/messages.ts';
import { STORES } from '../../rig/stores.ts';

const ROUND_COUNT = 1;
const CLAIM_DELAY_MS = 100;
const OLD_URL = 'https://192.31.196.7/old';
const NEW_URL = 'https://192.31.196.7/new';
const UNCHANGED_URL = 'https://192.31.196.7/unchanged';
const KEY = createSigningKey(createSigningSecret(randomBytes));
const SETTINGS = loadSettings({ POSTRIDER_SECRET: 'ab'.repeat(32) }, null);

describe.each(STORES)('the $name store', ({ open }) => {
  async function openStore(): Promise<Store> {
    const store = await open();
    onTestFinished(() => store.close());
    await store.createAccount('default', NO_LIMITS, Date.now());
    return store;
  }

  /** Starts two workers that report each attempt to `onAttempt`, and accepts messages until the end of the load. */
  function startLoad(store: Store, onAttempt: (url: string, signatures: number) => void) {
    const workers = ['node-a', 'node-b'].map((node) =>
      startWebhookWorker({
        ...{ node, clock: systemClock, random: Math.random, publish: () => undefined },
        store: {
          ...store,
          // The worker receives the claim result late, so a change can be made between the claim and the attempts.
          async claimDeliveries(...args) {
            const claimResult = await store.claimDeliveries(...args);
            if (claimResult.deliveries.length > 0) await new Promise((resolve) => setTimeout(resolve, CLAIM_DELAY_MS));
            return claimResult;
          },
        },
        createSeed: () => randomBytes(8).toString('hex'),
        getRetentionStart: () => 0,
        settle: async (settlement) => {
          const [result] = await store.settleDeliveries([settlement], Date.now());
          return result ?? { kind: 'lost' };
        },
        pace: { getPauseMs: () => 0 },
        openSecret: () => KEY,
        async attempt({ url, headers }) {
          onAttempt(url, (headers['webhook-signature'] ?? '').split(' ').length);
          await new Promise((resolve) => setTimeout(resolve, 2));
          return { durationMs: 2, status: 200, error: null, body: '', retryAfterMs: null };
        },
      }),
    );
    let isStopped = false;
    const acceptRepeatedly = async () => {
      while (!isStopped) {
        await store.accept(Array.from({ length: 20 }, () => createMessage()));
        for (const worker of workers) worker.wake();
      }
    };
    const acceptPromise = acceptRepeatedly();
    return async () => {
      isStopped = true;
      await acceptPromise;
      await Promise.all(workers.map((worker) => worker.drain(5_000)));
    };
  }

  const context = (store: Store) => ({
    ...{ store, clock: systemClock, random: randomBytes, settings: SETTINGS },
    ...{ actor: 'cli:test', status: null, publish: () => undefined },
  });

  test('an updated URL, a rotated secret, a disabled and a deleted endpoint apply to every later attempt of two nodes', async () => {
    const store = await openStore();
    const attempts: { readonly url: string; readonly signatures: number }[] = [];
    const stop = startLoad(store, (url, signatures) => attempts.push({ url, signatures }));
    const createTestEndpoint = async (url: string) => {
      const endpoint = { url, account: null, name: null, events: ['message.accepted'], sealed: 'unused' } as const;
      const createResult = await store.createWebhook(endpoint, Date.now());
      if (createResult.kind !== 'done') throw new Error(createResult.kind);
      return formatWebhookId(createResult.value.id);
    };
    const countAttempts = (url: string) => attempts.filter((attempt) => attempt.url === url).length;
    const waitForAttempts = (url: string) =>
      expect.poll(() => countAttempts(url), { interval: 1, timeout: 120_000 }).toBeGreaterThan(20);
    try {
      // An endpoint that stays unchanged shows that attempts continue.
      await createTestEndpoint(UNCHANGED_URL);
      for (let round = 0; round < ROUND_COUNT; round += 1) {
        const id = await createTestEndpoint(OLD_URL);
        attempts.length = 0;
        await waitForAttempts(OLD_URL);
        const isDone = async (result: Promise<{ readonly ok: boolean }>) => {
          const { ok } = await result;
          attempts.length = 0;
          return ok;
        };
        expect(await isDone(perform(updateWebhook, { id, url: NEW_URL }, context(store)))).toBe(true);
        await waitForAttempts(NEW_URL);
        expect(countAttempts(OLD_URL)).toBe(0);
        expect(await isDone(perform(rotateWebhook, { id, grace: '1h' }, context(store)))).toBe(true);
        await waitForAttempts(NEW_URL);
        expect(attempts.filter(({ url, signatures }) => url === NEW_URL && signatures !== 2)).toEqual([]);
        const endPromise =
          round % 2 === 0
            ? perform(disableWebhook, { id }, context(store))
            : perform(deleteWebhook, { id }, context(store));
        expect(await isDone(endPromise)).toBe(true);
        await waitForAttempts(UNCHANGED_URL);
        expect(countAttempts(NEW_URL)).toBe(0);
      }
    } finally {
      await stop();
    }
  });

  test.each([
    { name: 'an update', change: updateWebhook, input: { url: NEW_URL } },
    { name: 'a rotation', change: rotateWebhook, input: { grace: '1h' } },
    { name: 'disabling an endpoint', change: disableWebhook, input: {} },
    { name: 'deleting an endpoint', change: deleteWebhook, input: {} },
  ])(
    'the operation for $name returns when the lease of an earlier claim is released, or when no attempt of that claim may begin any more',
    async ({ change, input }) => {
      const store = await openStore();
      const endpoint = {
        url: OLD_URL,
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
});
