import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ServiceEvent } from '../../../src/model/events.ts';
import { FEEDBACK_PREFIX } from '../../../src/model/feedback.ts';
import {
  DELIVERY_LEASE_MS,
  type DeliverySettlement,
  type DeliverySettleResult,
  type LeasedDelivery,
  MAX_START_DELAY_MS,
  type RecordedWebhookEvent,
} from '../../../src/model/webhook.ts';
import { createSigningKey, createSigningSecret } from '../../../src/model/webhook-target.ts';
import type { DeliveryClaimLimits, DeliveryRecovery } from '../../../src/store/contract.ts';
import type { WebhookAttemptResult, WebhookRequest } from '../../../src/webhooks/attempt.ts';
import { createWebhookLane } from '../../../src/webhooks/lane.ts';
import { MAX_CONCURRENT_ATTEMPTS } from '../../../src/webhooks/slots.ts';
import { type OutboundWorker, startOutboundWorker } from '../../../src/webhooks/worker.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const START = Date.UTC(2030, 0, 1);
const SECRET = createSigningSecret(randomBytes);
const EVENT: RecordedWebhookEvent = {
  kind: 'message',
  type: 'message.bounced',
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  account: 'acme',
  to: 'ada@example.com',
  from: 'shop@example.org',
  subject: 'Hello',
  sequence: 1,
  state: 'bounced',
  suppressed: true,
  entry: {
    at: START,
    verb: 'bounced',
    by: `${FEEDBACK_PREFIX}smtp`,
    detail: '5.1.1 no such user',
    failure: { class: 'hard', category: 'mailbox-unknown', status: '5.1.1', diagnostic: 'no such user' },
    attempt: null,
  },
};
const TEST_EVENT: RecordedWebhookEvent = { kind: 'resource', type: 'webhook.test', at: START, data: { id: 'wh_1' } };

const respondWith = (status: number | null, retryAfterMs: number | null = null): WebhookAttemptResult => {
  const isSuccess = status !== null && status >= 200 && status < 300;
  return { durationMs: 3, status, error: isSuccess ? null : 'failed', body: '', retryAfterMs };
};

function createRig(
  options: {
    readonly attempt?: (request: WebhookRequest) => Promise<WebhookAttemptResult>;
    readonly settle?: (settlement: DeliverySettlement) => Promise<DeliverySettleResult>;
    readonly failingWebhooks?: readonly number[];
    readonly losesResponse?: () => boolean;
    readonly getClaimMs?: () => number;
    readonly eventsPerRun?: number;
    readonly maxExamined?: number;
    readonly pauseMs?: number;
  } = {},
) {
  const clock = createVirtualClock(START);
  const dueDeliveries: (LeasedDelivery & { readonly dueAt?: number })[] = [];
  const claims: DeliveryClaimLimits[] = [];
  const requests: WebhookRequest[] = [];
  const settlements: DeliverySettlement[] = [];
  const events: ServiceEvent[] = [];
  const releasedIds: string[] = [];
  const recoveries: DeliveryRecovery[] = [];
  const unreceivedDeliveries: LeasedDelivery[] = [];
  let fanOutCount = 0;
  let nextId = 1;
  const addDelivery = (webhookId: number, members: Partial<LeasedDelivery> & { readonly dueAt?: number } = {}) => {
    const id = `0190000${String(nextId++).padStart(4, '0')}`;
    const lease = { owner: 'node', lease: 1, attempt: 1 };
    dueDeliveries.push({
      id,
      webhookId,
      ...lease,
      sealedUrl: `https://${webhookId}.test/`,
      sealed: [SECRET],
      event: EVENT,
      ...members,
    });
    return id;
  };
  const claimDeliveries = async (limits: DeliveryClaimLimits) => {
    claims.push(limits);
    const claimMs = options.getClaimMs?.() ?? 0;
    if (claimMs > 0) await new Promise<void>((resolve) => clock.after(claimMs, resolve));
    const freeSlots = new Map(limits.freeSlots.map(({ webhookId, count }) => [webhookId, count]));
    const getFree = (webhookId: number) => freeSlots.get(webhookId) ?? limits.defaultFreeSlots;
    const deliveries: LeasedDelivery[] = [];
    const ids = [...new Set(dueDeliveries.map(({ webhookId }) => webhookId))].sort((a, b) => a - b);
    const examinedIds = ids.filter((id) => id > (limits.after ?? 0)).slice(0, options.maxExamined ?? 1_000);
    for (const id of examinedIds) {
      for (const delivery of dueDeliveries.filter(({ webhookId }) => webhookId === id)) {
        if (getFree(id) <= 0 || (delivery.dueAt ?? 0) > clock.now()) break;
        if (deliveries.length >= limits.maxDeliveries) return { deliveries, next: deliveries.at(-1)?.webhookId ?? 0 };
        freeSlots.set(id, getFree(id) - 1);
        deliveries.push(delivery);
        dueDeliveries.splice(dueDeliveries.indexOf(delivery), 1);
      }
    }
    const lastExaminedId = examinedIds.length < (options.maxExamined ?? 1_000) ? undefined : examinedIds.at(-1);
    return { deliveries, next: lastExaminedId ?? null };
  };
  const publish = (event: ServiceEvent) => events.push(event);
  const start = (): OutboundWorker => {
    const lane = createWebhookLane({
      ...{ clock, publish, createSeed: () => '0'.repeat(16), getRetentionStart: () => 0 },
      store: {
        async fanOutEvents() {
          fanOutCount += 1;
          return { events: options.eventsPerRun ?? 0, deliveries: 0, hasMore: false };
        },
        listWebhooks: async () => (options.failingWebhooks ?? []).map((id) => ({ id, failingSince: START })),
      },
      async attempt(request) {
        requests.push(request);
        return options.attempt?.(request) ?? respondWith(200);
      },
      getPauseMs: () => options.pauseMs ?? 0,
      openUrl: (sealedUrl) => sealedUrl,
      openSecret: createSigningKey,
    });
    const worker = startOutboundWorker({
      ...{ node: 'node', clock, random: () => 0.5, lane, publish },
      store: {
        async claimDeliveries(limits) {
          const claimResult = await claimDeliveries(limits);
          if (options.losesResponse?.() !== true) return claimResult;
          unreceivedDeliveries.push(...claimResult.deliveries);
          throw new Error('the connection was lost');
        },
        async recoverDeliveries(recovery) {
          recoveries.push(recovery);
          return dueDeliveries.push(...unreceivedDeliveries.splice(0));
        },
        async releaseDeliveryLeases(leases) {
          releasedIds.push(...leases.map(({ id }) => id));
        },
      },
      async settle(settlement) {
        const result = (await options.settle?.(settlement)) ?? { kind: 'settled' as const, disabled: null };
        settlements.push(settlement);
        return result;
      },
    });
    onTestFinished(async () => {
      const whenDrained = worker.drain(1);
      await clock.advance(1);
      await whenDrained;
    });
    return worker;
  };
  const state = { requests, settlements, events, released: releasedIds, recoveries, due: dueDeliveries, claims };
  return { clock, addDelivery, start, ...state, fanOutCount: () => fanOutCount };
}

describe('the worker', () => {
  it('schedules retries, obeys Retry-After, and ends the schedule with the status failed', async () => {
    const rig = createRig({
      attempt: async ({ url }) =>
        respondWith(url.endsWith('/busy') ? 503 : 500, url.endsWith('/busy') ? 600_000 : null),
    });
    rig.addDelivery(1);
    rig.addDelivery(2, { sealedUrl: 'https://2.test/busy' });
    rig.addDelivery(3, { attempt: 10 });
    rig.start();
    await rig.clock.advance(0);
    expect(rig.settlements.map(({ webhookId, result }) => ({ webhookId, result }))).toEqual([
      { webhookId: 1, result: { kind: 'retry', dueAt: START + 5_000 } },
      { webhookId: 2, result: { kind: 'retry', dueAt: START + 630_000 } },
      { webhookId: 3, result: { kind: 'failed' } },
    ]);
    expect(rig.events.map(({ type }) => type)).toEqual([
      'webhook.attempt_failed',
      'webhook.attempt_failed',
      'webhook.delivery_failed',
    ]);
  });

  it('reports the status 410, and the endpoint that the store has disabled', async () => {
    const rig = createRig({
      attempt: async () => respondWith(410),
      settle: async () => ({ kind: 'settled', disabled: 'gone' }),
    });
    rig.addDelivery(7);
    rig.start();
    await rig.clock.advance(0);
    expect(rig.settlements).toMatchObject([{ isGone: true, isInstallationFault: false }]);
    expect(rig.events.at(-1)).toMatchObject({ type: 'webhook.disabled', webhookId: 7, reason: 'gone' });
  });

  it('starts at most 16 attempts per pause while the node is saturated, and sends every delivery', async () => {
    const rig = createRig({ pauseMs: 40 });
    for (let index = 0; index < 100; index += 1) rig.addDelivery(1 + (index % 50));
    rig.start();
    await rig.clock.advance(39);
    expect(rig.requests).toHaveLength(16);
    await rig.clock.advance(40);
    expect(rig.requests.length).toBeLessThanOrEqual(32);
    await rig.clock.advance(1_000);
    expect(rig.requests).toHaveLength(100);
  });

  it('reports a body that cannot be built and a request that cannot be made, without mentioning the secret', async () => {
    const rig = createRig({
      async attempt() {
        throw new Error('not a request');
      },
    });
    const unbuildableEvent: RecordedWebhookEvent = { ...TEST_EVENT, type: 'domain.failing', data: { count: 1n } };
    rig.addDelivery(1, { event: unbuildableEvent });
    rig.addDelivery(2);
    rig.start();
    await rig.clock.advance(0);
    const retry = { kind: 'retry' };
    expect(rig.settlements.toSorted((a, b) => a.webhookId - b.webhookId)).toMatchObject([
      {
        attempt: {
          error: 'the body cannot be built from the stored event; report the cause shown in the log as a bug',
        },
        ...{ result: retry, isInstallationFault: true },
      },
      {
        attempt: { error: 'the request cannot be made; report the cause shown in the log as a bug' },
        ...{ result: retry, isInstallationFault: true },
      },
    ]);
    const operations = rig.events.flatMap((event) => (event.type === 'node.operation_failed' ? [event.operation] : []));
    expect(operations.sort()).toEqual(['build a webhook', 'send a webhook']);
  });

  it('delivers to one endpoint at once while 300 endpoints with a backlog stop responding, before and after their first failure', async () => {
    const stalledResponses: ((result: WebhookAttemptResult) => void)[] = [];
    const rig = createRig({
      attempt: ({ url }) =>
        url.includes('//1000.')
          ? Promise.resolve(respondWith(200))
          : new Promise<WebhookAttemptResult>((resolve) => stalledResponses.push(resolve)),
    });
    for (let webhookId = 1; webhookId <= 300; webhookId += 1)
      for (let count = 0; count < 20; count += 1) rig.addDelivery(webhookId);
    const worker = rig.start();
    await rig.clock.advance(2_000);
    const deliverAll = async () => {
      for (let count = 0; count < 50; count += 1) rig.addDelivery(1_000);
      rig.settlements.length = 0;
      await rig.clock.advanceUntil(() => rig.settlements.length === 50, 2_000);
      expect(rig.settlements.every(({ webhookId }) => webhookId === 1_000)).toBe(true);
      expect(worker.inProgressCount).toBeLessThan(MAX_CONCURRENT_ATTEMPTS);
    };
    await deliverAll();
    for (let round = 0; round < 3; round += 1) {
      for (const resolve of stalledResponses.splice(0)) resolve(respondWith(null));
      await rig.clock.advance(2_000);
      await deliverAll();
    }
  });

  it('makes one attempt at a time to an endpoint whose last attempt failed, even after a restart', async () => {
    let pendingResponses: ((result: WebhookAttemptResult) => void)[] = [];
    const rig = createRig({
      failingWebhooks: [1],
      attempt: () => new Promise((resolve) => pendingResponses.push(resolve)),
    });
    for (let count = 0; count < 60; count += 1) rig.addDelivery(1);
    const worker = rig.start();
    const respondToAll = async (status: number) => {
      const responses = pendingResponses;
      pendingResponses = [];
      for (const resolve of responses) resolve(respondWith(status));
      await rig.clock.advance(20);
    };
    await rig.clock.advance(0);
    expect(worker.inProgressCount).toBe(1);
    await respondToAll(500);
    expect(worker.inProgressCount).toBe(1);
    for (const expected of [4, 16, 16]) {
      await respondToAll(200);
      expect(worker.inProgressCount).toBeLessThanOrEqual(expected);
    }
    expect(worker.inProgressCount).toBe(16);
  });

  it('makes at most about one attempt per second to an endpoint that refuses its backlog at once', async () => {
    const rig = createRig({ attempt: async () => respondWith(null) });
    for (let count = 0; count < 10_000; count += 1) rig.addDelivery(1);
    const worker = rig.start();
    await rig.clock.advance(60_000);
    rig.settlements.length = 0;
    for (let second = 0; second < 60; second += 1) {
      // Each wake-up, for example by an event of another endpoint, starts a run of the worker between two attempts.
      for (let count = 0; count < 10; count += 1) {
        worker.wake();
        await rig.clock.advance(100);
      }
    }
    expect(rig.settlements.length).toBeGreaterThan(30);
    expect(rig.settlements.length).toBeLessThanOrEqual(61);
  });

  it('makes no attempt if the claim took more than two seconds, and releases the leases', async () => {
    const claimDurations = [MAX_START_DELAY_MS + 1];
    const rig = createRig({ getClaimMs: () => claimDurations.shift() ?? 0 });
    const id = rig.addDelivery(1);
    const worker = rig.start();
    await rig.clock.advance(MAX_START_DELAY_MS + 100);
    expect([rig.requests.length, rig.released, worker.inProgressCount]).toEqual([0, [id], 0]);
    rig.addDelivery(1);
    await rig.clock.advance(1_000);
    expect(rig.settlements).toHaveLength(1);
  });

  it('if the response of a claim is lost, sends the claimed deliveries within two seconds, not at the end of their leases', async () => {
    const responseLosses = [false, true];
    const unansweredAttempt = Promise.withResolvers<WebhookAttemptResult>();
    const rig = createRig({
      losesResponse: () => responseLosses.shift() ?? false,
      attempt: async ({ url }) => (url === 'https://1.test/' ? unansweredAttempt.promise : respondWith(200)),
    });
    const runningId = rig.addDelivery(1);
    rig.start();
    await rig.clock.advance(10);
    rig.addDelivery(2);
    await rig.clock.advance(3_000);
    expect(rig.settlements.map(({ webhookId }) => webhookId)).toEqual([2]);
    // The lease of the running attempt stays unchanged.
    expect(rig.recoveries[0]).toMatchObject({ node: 'node', includeAllLeases: false, ownLeasesExcept: [runningId] });
    await rig.clock.advance(DELIVERY_LEASE_MS);
    const { length } = rig.recoveries;
    await rig.clock.advance(DELIVERY_LEASE_MS);
    expect(rig.recoveries).toHaveLength(length);
    unansweredAttempt.resolve(respondWith(200));
  });

  it('records one failed attempt of an event whose message is no longer stored, and sends the other deliveries', async () => {
    const rig = createRig();
    const missingId = rig.addDelivery(1, { event: { kind: 'missing', type: 'message.bounced' } });
    rig.addDelivery(1);
    rig.start();
    await rig.clock.advance(100);
    expect(rig.requests).toHaveLength(1);
    expect(rig.settlements.find(({ id }) => id === missingId)).toMatchObject({
      attempt: { status: null, error: 'the message of the event is no longer stored' },
      result: { kind: 'failed' },
      isInstallationFault: true,
    });
  });

  it('repeats the record of a result until the store accepts it, and occupies the slot until then', async () => {
    let failureCount = 0;
    const rig = createRig({
      async settle() {
        failureCount += 1;
        if (failureCount <= 3) throw new Error('the store does not record the result');
        return { kind: 'settled', disabled: null };
      },
    });
    rig.addDelivery(1);
    const worker = rig.start();
    await rig.clock.advance(0);
    expect([rig.settlements.length, worker.inProgressCount]).toEqual([0, 1]);
    await rig.clock.advance(2_000);
    expect([rig.settlements.length, worker.inProgressCount, rig.requests.length]).toEqual([1, 0, 1]);
  });

  it('finds a delivery after a wake-up at once, and without a wake-up within a second', async () => {
    const rig = createRig();
    const worker = rig.start();
    await rig.clock.advance(0);
    rig.addDelivery(1);
    worker.wake();
    await rig.clock.advance(200);
    expect(rig.settlements).toHaveLength(1);
    rig.addDelivery(1);
    await rig.clock.advance(1_000);
    expect(rig.settlements).toHaveLength(2);
  });

  it('waits for running attempts at shutdown up to a time limit, and then releases the remaining leases', async () => {
    const responses: ((result: WebhookAttemptResult) => void)[] = [];
    const rig = createRig({ attempt: () => new Promise((resolve) => responses.push(resolve)) });
    const [, second] = [rig.addDelivery(1), rig.addDelivery(2)];
    const worker = rig.start();
    await rig.clock.advance(0);
    let isDrained = false;
    const whenDrained = worker.drain(5_000).then(() => {
      isDrained = true;
    });
    rig.addDelivery(3);
    responses[0]?.(respondWith(200));
    await rig.clock.advance(4_000);
    expect([isDrained, rig.settlements.length]).toEqual([false, 1]);
    await rig.clock.advance(1_000);
    await whenDrained;
    expect(rig.released).toEqual([second]);
    expect(rig.requests).toHaveLength(2);
    // The response that arrives after the release changes nothing.
    responses[1]?.(respondWith(200));
    await rig.clock.advance(0);
    expect(rig.settlements).toHaveLength(1);
  });
});
