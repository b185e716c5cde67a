/**
 * The webhook worker of one node: moves events from the outbox to deliveries, leases due deliveries, makes the attempts
 * and records their results.
 *
 * Guarantees: an attempt starts only under a lease that lasts longer than the attempt. A delivery holds a slot until its
 * result is recorded, so a store that fails stops further attempts. At most `MAX_ATTEMPTS_PER_WEBHOOK` attempts to one
 * endpoint run at a time. Endpoints whose last attempt failed have one attempt at a time, and together at most half of
 * all slots, so that endpoints that do not answer do not delay the others. A delivery may be sent more than once: a node
 * may end after the answer and before the record. No delivery is lost: after any failure its lease expires, and the
 * delivery is due again.
 *
 * A wake-up is a hint. The poll finds every event and every due delivery, even if a wake-up is missed.
 */
import { classifyEntry } from '../classify/failure.ts';
import type { MonotonicClock } from '../clock.ts';
import type { PublishOf } from '../model/events.ts';
import {
  type DeliverySettlement,
  type DeliverySettleResult,
  type LeasedDelivery,
  type RecordedWebhookEvent,
  WEBHOOK_TEST_TYPE,
  type Webhook,
} from '../model/webhook.ts';
import { buildWebhookPayload } from '../model/webhook-payload.ts';
import type { DeliveryClaimLimits, WebhookWorkerStore } from '../store/webhook-store.ts';
import { ATTEMPT_TIMEOUT_MS, type WebhookAnswer, type WebhookClient } from './attempt.ts';
import { computeRetryDelayMs } from './schedule.ts';
import { signWebhook } from './signature.ts';

/** The maximum number of attempts of this node that run at a time, over all endpoints. */
export const MAX_CONCURRENT_ATTEMPTS = 256;
/** The maximum number of attempts of this node to one endpoint that run at a time. */
export const MAX_ATTEMPTS_PER_WEBHOOK = 16;
/** The maximum number of attempts to endpoints whose last attempt failed. */
const MAX_FAILING_ATTEMPTS = MAX_CONCURRENT_ATTEMPTS / 2;
/** The duration of a lease. It covers the attempt and the record of its result. */
const LEASE_MS = ATTEMPT_TIMEOUT_MS + 45_000;
const POLL_MS = 1_000;
/** The time from a wake-up to the next run, in which further events arrive. It is longer after a run without an event. */
const WAKE_DELAY_MS = 20;
const WAKE_DELAY_AFTER_EMPTY_RUN_MS = 200;
const MAX_EVENTS_PER_RUN = 256;
/** The delays before each further try to record a result. The last delay repeats. */
const RECORD_RETRY_DELAYS_MS = [100, 500, 1_000, 5_000] as const;
const STATUS_GONE = 410;

export interface WebhookWorkerParts {
  readonly node: string;
  readonly clock: MonotonicClock;
  /** Returns a random number in [0, 1), for the jitter of retries. */
  readonly random: () => number;
  /** Returns a random text of 16 hexadecimal digits, for the ids of deliveries. */
  readonly createSeed: () => string;
  readonly store: Pick<WebhookWorkerStore, 'fanOutEvents' | 'claimDeliveries' | 'releaseDeliveryLeases'> & {
    listWebhooks(): Promise<readonly Pick<Webhook, 'id' | 'failingSince'>[]>;
  };
  /** Records one result, in a group commit over `settleDeliveries`. */
  readonly settle: (settlement: DeliverySettlement) => Promise<DeliverySettleResult>;
  readonly attempt: WebhookClient['attempt'];
  /** Decrypts a signing secret. Throws if the secret of the installation is lost. */
  readonly openSecret: (sealed: string) => string;
  readonly publish: PublishOf<
    | 'webhook.attempt_succeeded'
    | 'webhook.attempt_failed'
    | 'webhook.delivery_failed'
    | 'webhook.disabled'
    | 'node.operation_failed'
  >;
}

export interface WebhookWorker {
  /** Schedules a run, because an event may have been recorded or a delivery may be due. */
  wake(): void;
  /**
   * Starts no further attempt and waits up to `timeoutMs` until the results of the running attempts are recorded. Then
   * releases the leases of the others.
   */
  drain(timeoutMs: number): Promise<void>;
  /** The number of running attempts and unrecorded results. */
  readonly inProgressCount: number;
}

/** Starts the worker. */
export function startWebhookWorker(parts: WebhookWorkerParts): WebhookWorker {
  const { node, clock, random, createSeed, store, settle, attempt, openSecret, publish } = parts;
  /** The leased deliveries of this node, from the claim until the result is recorded. */
  const inProgress = new Map<string, LeasedDelivery>();
  const countByWebhook = new Map<number, number>();
  /** The endpoints whose last attempt failed, as far as this node knows. */
  const failingWebhooks = new Set<number>();
  let isStopping = false;
  let isWoken = false;
  /** True if a slot became free during a run, while deliveries were due. */
  let hasFreeSlot = false;
  let isRunning = false;
  let lastRunFoundEvents = true;
  let hasBacklog = true;
  let cancelTimer: () => void = () => undefined;
  let currentRun: Promise<void> = Promise.resolve();
  let notifyEmpty: () => void = () => undefined;

  const onError = (operation: string, error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation, error });

  function schedule(delayMs: number): void {
    cancelTimer();
    if (!isStopping) cancelTimer = clock.after(delayMs, () => startRun());
  }

  function startRun(firstStep: () => Promise<void> = async () => undefined): void {
    isRunning = true;
    isWoken = false;
    hasFreeSlot = false;
    currentRun = firstStep()
      .then(run)
      .then(() => {
        isRunning = false;
        schedule(hasFreeSlot ? 0 : isWoken ? getWakeDelayMs() : POLL_MS);
      });
  }

  const getWakeDelayMs = () => (lastRunFoundEvents ? WAKE_DELAY_MS : WAKE_DELAY_AFTER_EMPTY_RUN_MS);

  function wake(): void {
    if (isWoken || isStopping) return;
    isWoken = true;
    if (!isRunning) schedule(getWakeDelayMs());
  }

  async function run(): Promise<void> {
    try {
      await fanOut();
    } catch (error) {
      onError('fan out webhooks', error);
    }
    try {
      await claim();
    } catch (error) {
      onError('claim webhooks', error);
    }
  }

  async function fanOut(): Promise<void> {
    let eventCount = 0;
    // The outbox is emptied in steps. Between two steps, due deliveries are claimed.
    for (let hasMore = true; hasMore && !isStopping; ) {
      const step = await store.fanOutEvents(clock.now(), createSeed(), MAX_EVENTS_PER_RUN);
      eventCount += step.events;
      hasMore = step.hasMore;
      if (hasMore) await claim();
    }
    lastRunFoundEvents = eventCount > 0;
  }

  async function claim(): Promise<void> {
    hasBacklog = true;
    while (!isStopping) {
      const total = MAX_CONCURRENT_ATTEMPTS - inProgress.size;
      if (total <= 0) return;
      const now = clock.now();
      const limits = { total, perWebhook: MAX_ATTEMPTS_PER_WEBHOOK, inProgress: getUsedSlots() };
      const { deliveries, hasMore } = await store.claimDeliveries(limits, node, now + LEASE_MS, now);
      for (const delivery of deliveries) void deliver(delivery);
      if (!hasMore) {
        hasBacklog = false;
        return;
      }
    }
  }

  /**
   * Returns the used slots of each endpoint. An endpoint whose last attempt failed has one free slot, or none if such
   * endpoints use all of their slots.
   */
  function getUsedSlots(): DeliveryClaimLimits['inProgress'] {
    const counts = new Map(countByWebhook);
    let failingAttempts = 0;
    for (const webhookId of failingWebhooks) failingAttempts += countByWebhook.get(webhookId) ?? 0;
    const isFull = failingAttempts >= MAX_FAILING_ATTEMPTS;
    for (const webhookId of failingWebhooks) {
      const hasAttempt = (countByWebhook.get(webhookId) ?? 0) > 0;
      counts.set(webhookId, hasAttempt || isFull ? MAX_ATTEMPTS_PER_WEBHOOK : MAX_ATTEMPTS_PER_WEBHOOK - 1);
    }
    return [...counts].map(([webhookId, count]) => ({ webhookId, count }));
  }

  async function deliver(delivery: LeasedDelivery): Promise<void> {
    const { id, webhookId } = delivery;
    inProgress.set(id, delivery);
    countByWebhook.set(webhookId, (countByWebhook.get(webhookId) ?? 0) + 1);
    const wasAtLimit = failingWebhooks.has(webhookId) || countByWebhook.get(webhookId) === MAX_ATTEMPTS_PER_WEBHOOK;
    const startedAt = clock.now();
    const answer = await attemptOnce(delivery, startedAt);
    const isSuccess = answer.error === null;
    if (isSuccess) failingWebhooks.delete(webhookId);
    else failingWebhooks.add(webhookId);
    const settlement = decideSettlement(delivery, answer, startedAt);
    const result = await record(settlement);
    if (result !== null) publishResult(delivery, settlement, result);
    inProgress.delete(id);
    const count = (countByWebhook.get(webhookId) ?? 1) - 1;
    if (count === 0) countByWebhook.delete(webhookId);
    else countByWebhook.set(webhookId, count);
    if (inProgress.size === 0) notifyEmpty();
    if (hasBacklog || wasAtLimit) wakeAtOnce();
  }

  /** Schedules a run without the delay of a wake-up, because a slot is free and deliveries are due. */
  function wakeAtOnce(): void {
    if (isRunning) hasFreeSlot = true;
    else schedule(0);
  }

  async function attemptOnce({ id, url, sealed, event }: LeasedDelivery, at: number): Promise<WebhookAnswer> {
    const body = Buffer.from(buildBody(event));
    try {
      const headers = { ...signWebhook(id, at, body, sealed.map(openSecret)) };
      return await attempt({ url, headers, body });
    } catch (error) {
      onError('sign a webhook', error);
      const text =
        'the webhook cannot be signed; restore POSTRIDER_SECRET, or rotate the signing secret of the endpoint';
      return { durationMs: 0, status: null, error: text, body: null, retryAfterMs: null };
    }
  }

  function decideSettlement(delivery: LeasedDelivery, answer: WebhookAnswer, at: number): DeliverySettlement {
    const { id, webhookId, owner, lease } = delivery;
    const { durationMs, status, error, body } = answer;
    const isGone = status === STATUS_GONE;
    const attemptRecord = { at, durationMs, status, error, body };
    return { id, webhookId, owner, lease, attempt: attemptRecord, result: decideResult(delivery, answer), isGone };
  }

  function decideResult(
    { attempt: attemptNumber, event }: LeasedDelivery,
    { error, retryAfterMs }: WebhookAnswer,
  ): DeliverySettlement['result'] {
    if (error === null) return { kind: 'delivered' };
    // A test is sent once.
    if (event.type === WEBHOOK_TEST_TYPE) return { kind: 'failed' };
    const delayMs = computeRetryDelayMs(attemptNumber, retryAfterMs, random());
    return delayMs === null ? { kind: 'failed' } : { kind: 'retry', dueAt: clock.now() + delayMs };
  }

  /** Records a result. Repeats the record until it succeeds. Resolves to null if the worker stopped before. */
  async function record(settlement: DeliverySettlement): Promise<DeliverySettleResult | null> {
    for (let failures = 0; inProgress.has(settlement.id); failures += 1) {
      try {
        return await settle(settlement);
      } catch (error) {
        onError('record a webhook', error);
        const delayMs = RECORD_RETRY_DELAYS_MS[Math.min(failures, RECORD_RETRY_DELAYS_MS.length - 1)] ?? POLL_MS;
        await new Promise<void>((resolve) => clock.after(delayMs, resolve));
      }
    }
    return null;
  }

  function publishResult(
    { id, webhookId, event }: LeasedDelivery,
    { attempt: { durationMs, status, error }, result }: DeliverySettlement,
    settled: DeliverySettleResult,
  ): void {
    if (settled.kind === 'lost') return;
    const members = { at: clock.now(), webhookId, deliveryId: id, eventType: event.type, status, tookMs: durationMs };
    switch (result.kind) {
      case 'delivered':
        publish({ type: 'webhook.attempt_succeeded', ...members });
        break;
      case 'retry':
        publish({ type: 'webhook.attempt_failed', ...members, error: error ?? '', retryAt: result.dueAt });
        break;
      case 'failed':
        publish({ type: 'webhook.delivery_failed', ...members, error: error ?? '' });
        break;
    }
    const { disabled } = settled;
    if (disabled !== null) publish({ type: 'webhook.disabled', at: clock.now(), webhookId, reason: disabled });
  }

  async function drain(timeoutMs: number): Promise<void> {
    isStopping = true;
    cancelTimer();
    await currentRun;
    if (inProgress.size > 0) {
      await new Promise<void>((resolve) => {
        const cancel = clock.after(timeoutMs, resolve);
        notifyEmpty = () => {
          cancel();
          resolve();
        };
      });
    }
    const leases = [...inProgress.values()];
    inProgress.clear();
    if (leases.length === 0) return;
    await store
      .releaseDeliveryLeases(leases, clock.now())
      .catch((error: unknown) => onError('release webhooks', error));
  }

  /** Reads which endpoints were failing before the start, so that they do not use every slot once more. */
  async function readFailingWebhooks(): Promise<void> {
    try {
      for (const { id, failingSince } of await store.listWebhooks()) if (failingSince !== null) failingWebhooks.add(id);
    } catch (error) {
      onError('list webhooks', error);
    }
  }

  startRun(readFailingWebhooks);
  return {
    wake,
    drain,
    get inProgressCount() {
      return inProgress.size;
    },
  };
}

/** Returns the body of an event as JSON. The same event always has the same body. */
export function buildBody(event: RecordedWebhookEvent): string {
  return JSON.stringify(buildWebhookPayload(event, event.kind === 'message' ? classifyEntry(event.entry) : null));
}
