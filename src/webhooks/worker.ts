/**
 * The webhook worker of one node: moves events from the outbox to deliveries, leases due ones, makes the attempts and
 * records their results. An attempt begins at most `MAX_START_DELAY_MS` after its claim, so its lease outlasts it. A
 * result is recorded again until it is stored, or its lease has ended.
 */
import type { KeyObject } from 'node:crypto';
import { classifyEntry } from '../classify/classify.ts';
import type { MonotonicClock } from '../clock.ts';
import type { PublishOf } from '../model/events.ts';
import {
  DELIVERY_LEASE_MS,
  type DeliverySettlement,
  type DeliverySettleResult,
  type LeasedDelivery,
  MAX_START_DELAY_MS,
  type RecordedWebhookEvent,
  WEBHOOK_TEST_TYPE,
  type Webhook,
} from '../model/webhook.ts';
import { buildWebhookPayload } from '../model/webhook-payload.ts';
import { signWebhook } from '../model/webhook-target.ts';
import type { WebhookWorkerStore } from '../store/contract.ts';
import type { WebhookAttemptResult, WebhookClient } from './attempt.ts';
import { MAX_ATTEMPTS_PER_PACED_RUN, MAX_EVENTS_PER_PACED_RUN, type WebhookPace } from './pace.ts';
import { computeRetryDelayMs } from './schedule.ts';
import { createSlots, type SlotLimits } from './slots.ts';

const POLL_MS = 1_000;
/** As a multiple of the duration of a pass over more endpoints than one claim examines. */
const MIN_PAUSE_FACTOR = 4;
/** So that one run processes several events. Longer after a run without an event. */
const WAKE_DELAY_MS = 20;
const WAKE_DELAY_AFTER_EMPTY_RUN_MS = 200;
const MAX_EVENTS_PER_RUN = 256;
const RECORD_RETRY_DELAYS_MS = [100, 500, 1_000, 5_000] as const;
const RECOVERY_INTERVAL_MS = 1_000;
const STATUS_GONE = 410;
const INSTALLATION_FAULTS = {
  'build a webhook': 'the body cannot be built from the stored event; report the cause shown in the log as a bug',
  'sign a webhook':
    'the webhook cannot be signed; restore POSTRIDER_SECRET, or rotate the signing secret of the endpoint and give its URL again',
  'send a webhook': 'the request cannot be made; report the cause shown in the log as a bug',
} as const;

export interface WebhookWorkerParts {
  readonly node: string;
  readonly clock: MonotonicClock;
  readonly random: () => number;
  readonly createSeed: () => string;
  /** Events that were recorded before are not sent. */
  readonly getRetentionStart: () => number;
  readonly store: Pick<
    WebhookWorkerStore,
    'fanOutEvents' | 'claimDeliveries' | 'releaseDeliveryLeases' | 'recoverDeliveries'
  > & {
    listWebhooks(): Promise<readonly Pick<Webhook, 'id' | 'failingSince'>[]>;
  };
  readonly settle: (settlement: DeliverySettlement) => Promise<DeliverySettleResult>;
  readonly attempt: WebhookClient['attempt'];
  readonly pace: Pick<WebhookPace, 'getPauseMs'>;
  /** Throws if the secret of the installation is lost or has changed. */
  readonly openSecret: (sealed: string) => KeyObject;
  readonly openUrl: (sealedUrl: string) => string;
  readonly publish: PublishOf<
    | 'webhook.attempt_succeeded'
    | 'webhook.attempt_failed'
    | 'webhook.delivery_failed'
    | 'webhook.disabled'
    | 'node.operation_failed'
  >;
}

interface AttemptOutcome extends WebhookAttemptResult, Pick<DeliverySettlement, 'isInstallationFault'> {}

export interface WebhookWorker {
  wake(): void;
  /** Waits up to `timeoutMs` for the results of the running attempts, then releases the other leases. */
  drain(timeoutMs: number): Promise<void>;
  readonly inProgressCount: number;
}

export function startWebhookWorker(parts: WebhookWorkerParts): WebhookWorker {
  const {
    node,
    clock,
    random,
    createSeed,
    store,
    settle,
    attempt,
    pace,
    openSecret,
    openUrl,
    publish,
    getRetentionStart,
  } = parts;
  const deliveriesInProgress = new Map<string, LeasedDelivery>();
  const slots = createSlots(clock.monotonic);
  /** The next claim continues after this endpoint; 0 begins a pass. */
  let position = 0;
  let pausedUntil = 0;
  let runStartedAt = 0;
  /** Until then the store may contain leases of a failed claim, which the node does not know. */
  let recoverUntil = 0;
  let recoveredAt = 0;
  let isStopping = false;
  let isWoken = false;
  let isRunning = false;
  let requestedDelayMs = POLL_MS;
  let lastRunFoundEvents = true;
  /** The last pass ended early, for example because every slot was used. */
  let hasBacklog = true;
  let cancelTimer: () => void = () => undefined;
  let currentRun: Promise<void> = Promise.resolve();
  let notifyEmpty: () => void = () => undefined;

  const onError = (operation: string, error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation, error });

  function schedule(): void {
    cancelTimer();
    const delayMs = Math.min(requestedDelayMs, isWoken ? getWakeDelayMs() : POLL_MS);
    const pauseMs = Math.max(pausedUntil, runStartedAt + pace.getPauseMs()) - clock.monotonic();
    if (!isStopping) cancelTimer = clock.after(Math.max(delayMs, pauseMs), () => startRun());
  }

  function startRun(firstStep: () => Promise<void> = async () => undefined): void {
    isRunning = true;
    runStartedAt = clock.monotonic();
    isWoken = false;
    requestedDelayMs = POLL_MS;
    currentRun = firstStep()
      .then(run)
      .then(() => {
        isRunning = false;
        schedule();
      });
  }

  const getWakeDelayMs = () => (lastRunFoundEvents ? WAKE_DELAY_MS : WAKE_DELAY_AFTER_EMPTY_RUN_MS);

  function wake(): void {
    if (isWoken || isStopping) return;
    isWoken = true;
    if (!isRunning) schedule();
  }

  function requestRun(delayMs: number): void {
    if (delayMs >= requestedDelayMs) return;
    requestedDelayMs = delayMs;
    if (!isRunning) schedule();
  }

  async function run(): Promise<void> {
    try {
      await moveEvents();
    } catch (error) {
      onError('fan out webhooks', error);
    }
    try {
      await recoverOwnLeases();
      await claimDeliveries();
    } catch (error) {
      onError('claim webhooks', error);
    }
  }

  /**
   * The store may commit a claim after its call has failed, so this is repeated until its leases would have expired.
   */
  async function recoverOwnLeases(): Promise<void> {
    const startedAt = clock.monotonic();
    if (isStopping || startedAt >= recoverUntil || startedAt < recoveredAt + RECOVERY_INTERVAL_MS) return;
    recoveredAt = startedAt;
    const now = clock.now();
    const ownLeasesExcept = [...deliveriesInProgress.keys()];
    const until = now + 2 * DELIVERY_LEASE_MS;
    await store.recoverDeliveries({ now, until, node, includeAllLeases: false, ownLeasesExcept });
  }

  async function moveEvents(): Promise<void> {
    let eventCount = 0;
    // The outbox is emptied in steps. Between two steps, due deliveries are claimed.
    for (let hasMore = true; hasMore && !isStopping; ) {
      const isPaced = pace.getPauseMs() > 0;
      const maxEvents = isPaced ? MAX_EVENTS_PER_PACED_RUN : MAX_EVENTS_PER_RUN;
      const fanOutResult = await store.fanOutEvents(clock.now(), createSeed(), maxEvents, getRetentionStart());
      eventCount += fanOutResult.events;
      hasMore = fanOutResult.hasMore;
      if (!hasMore) break;
      if (isPaced) {
        // The next run moves the remaining events.
        isWoken = true;
        break;
      }
      await claimDeliveries();
    }
    lastRunFoundEvents = eventCount > 0;
  }

  async function claimDeliveries(): Promise<void> {
    try {
      await claimInPass();
    } catch (error) {
      recoverUntil = clock.monotonic() + DELIVERY_LEASE_MS;
      throw error;
    }
  }

  async function claimInPass(): Promise<void> {
    hasBacklog = true;
    const passStartedAt = clock.monotonic();
    const passEnd = position;
    let hasWrapped = passEnd === 0;
    let examinedStepCount = 0;
    let freeAttempts = pace.getPauseMs() > 0 ? MAX_ATTEMPTS_PER_PACED_RUN : Number.POSITIVE_INFINITY;
    while (!isStopping) {
      const slotLimits = slots.getLimits();
      const limits = { ...slotLimits, maxDeliveries: Math.min(slotLimits.maxDeliveries, freeAttempts) };
      if (limits.maxDeliveries <= 0) return;
      const startedAt = clock.monotonic();
      const now = clock.now();
      const claimLimits = { ...limits, after: position };
      const { deliveries, next } = await store.claimDeliveries(claimLimits, node, now + DELIVERY_LEASE_MS, now);
      freeAttempts -= deliveries.length;
      await startAttempts(deliveries, limits, startedAt);
      if (deliveries.length < limits.maxDeliveries) examinedStepCount += 1;
      position = next ?? 0;
      if (hasWrapped && (next === null || (passEnd > 0 && position >= passEnd))) break;
      if (next === null) hasWrapped = true;
    }
    if (isStopping) return;
    hasBacklog = false;
    slots.removeIdle();
    const endedAt = clock.monotonic();
    if (examinedStepCount > 2) pausedUntil = endedAt + MIN_PAUSE_FACTOR * (endedAt - passStartedAt);
  }

  async function startAttempts(
    deliveries: readonly LeasedDelivery[],
    limits: SlotLimits,
    claimedAt: number,
  ): Promise<void> {
    for (const delivery of deliveries) deliveriesInProgress.set(delivery.id, delivery);
    slots.occupySlots(
      deliveries.map(({ webhookId }) => webhookId),
      limits,
    );
    if (clock.monotonic() - claimedAt <= MAX_START_DELAY_MS) {
      for (const delivery of deliveries) void deliver(delivery);
      return;
    }
    try {
      if (deliveries.length > 0) await store.releaseDeliveryLeases(deliveries, clock.now());
    } finally {
      for (const delivery of deliveries) endDelivery(delivery);
    }
  }

  function endDelivery({ id, webhookId }: LeasedDelivery): void {
    // A shutdown removes all deliveries from `deliveriesInProgress`.
    if (!deliveriesInProgress.delete(id)) return;
    const delayMs = slots.freeSlot(webhookId);
    if (deliveriesInProgress.size === 0) notifyEmpty();
    if (hasBacklog) requestRun(0);
    else if (delayMs !== null) requestRun(delayMs);
  }

  async function deliver(delivery: LeasedDelivery): Promise<void> {
    const { webhookId } = delivery;
    const startedAt = clock.now();
    const attemptResult = await attemptOnce(delivery, startedAt);
    slots.reportResult(webhookId, attemptResult.error === null);
    const settlement = decideSettlement(delivery, attemptResult, startedAt);
    const result = await recordSettlement(settlement);
    if (result !== null) publishResult(delivery, settlement, result);
    endDelivery(delivery);
  }

  /** The current secret first, which must be readable. An earlier one that is not is skipped. */
  function openSecrets([current, ...previous]: readonly string[]): readonly KeyObject[] {
    const openedKeys = current === undefined ? [] : [openSecret(current)];
    for (const sealedSecret of previous) {
      try {
        openedKeys.push(openSecret(sealedSecret));
      } catch {
        // No signature for this secret is necessary: the receiver can verify the signature for the current secret.
      }
    }
    return openedKeys;
  }

  async function attemptOnce({ id, sealedUrl, sealed, event }: LeasedDelivery, at: number): Promise<AttemptOutcome> {
    if (event.kind === 'missing') return createInstallationFault('the message of the event is no longer stored');
    let operation: keyof typeof INSTALLATION_FAULTS = 'build a webhook';
    try {
      const body = Buffer.from(buildBody(event));
      operation = 'sign a webhook';
      const headers = { ...signWebhook(id, at, body, openSecrets(sealed)) };
      const url = openUrl(sealedUrl);
      operation = 'send a webhook';
      return { ...(await attempt({ url, headers, body })), isInstallationFault: false };
    } catch (error) {
      onError(operation, error);
      return createInstallationFault(INSTALLATION_FAULTS[operation]);
    }
  }

  function decideSettlement(delivery: LeasedDelivery, attemptResult: AttemptOutcome, at: number): DeliverySettlement {
    const { id, webhookId, owner, lease } = delivery;
    const { durationMs, status, error, body, isInstallationFault } = attemptResult;
    const isGone = status === STATUS_GONE;
    const attemptRecord = { at, durationMs, status, error, body };
    return {
      id,
      webhookId,
      owner,
      lease,
      attempt: attemptRecord,
      result: decideResult(delivery, attemptResult),
      isGone,
      isInstallationFault,
    };
  }

  function decideResult(
    { attempt: attemptNumber, event }: LeasedDelivery,
    { error, retryAfterMs }: WebhookAttemptResult,
  ): DeliverySettlement['result'] {
    if (error === null) return { kind: 'delivered' };
    // A test webhook is never retried. An event that is no longer stored can never be sent.
    if (event.type === WEBHOOK_TEST_TYPE || event.kind === 'missing') return { kind: 'failed' };
    const delayMs = computeRetryDelayMs(attemptNumber, retryAfterMs, random());
    return delayMs === null ? { kind: 'failed' } : { kind: 'retry', dueAt: clock.now() + delayMs };
  }

  /** Null if the worker stops first. */
  async function recordSettlement(settlement: DeliverySettlement): Promise<DeliverySettleResult | null> {
    for (let failureCount = 0; deliveriesInProgress.has(settlement.id); failureCount += 1) {
      try {
        return await settle(settlement);
      } catch (error) {
        onError('record a webhook', error);
        const delayMs = RECORD_RETRY_DELAYS_MS[Math.min(failureCount, RECORD_RETRY_DELAYS_MS.length - 1)] ?? POLL_MS;
        await new Promise<void>((resolve) => clock.after(delayMs, resolve));
      }
    }
    return null;
  }

  function publishResult(
    { id, webhookId, event }: LeasedDelivery,
    { attempt: { durationMs, status, error }, result }: DeliverySettlement,
    settleResult: DeliverySettleResult,
  ): void {
    if (settleResult.kind === 'lost') return;
    const eventMembers = {
      at: clock.now(),
      webhookId,
      deliveryId: id,
      eventType: event.type,
      status,
      tookMs: durationMs,
    };
    switch (result.kind) {
      case 'delivered':
        publish({ type: 'webhook.attempt_succeeded', ...eventMembers });
        break;
      case 'retry':
        publish({ type: 'webhook.attempt_failed', ...eventMembers, error: error ?? '', retryAt: result.dueAt });
        break;
      case 'failed':
        publish({ type: 'webhook.delivery_failed', ...eventMembers, error: error ?? '' });
        break;
    }
    const { disabled } = settleResult;
    if (disabled !== null) publish({ type: 'webhook.disabled', at: clock.now(), webhookId, reason: disabled });
  }

  async function drain(timeoutMs: number): Promise<void> {
    isStopping = true;
    cancelTimer();
    await currentRun;
    if (deliveriesInProgress.size > 0) {
      await new Promise<void>((resolve) => {
        const cancel = clock.after(timeoutMs, resolve);
        notifyEmpty = () => {
          cancel();
          resolve();
        };
      });
    }
    const leases = [...deliveriesInProgress.values()];
    deliveriesInProgress.clear();
    if (leases.length === 0) return;
    await store
      .releaseDeliveryLeases(leases, clock.now())
      .catch((error: unknown) => onError('release webhooks', error));
  }

  /** So that they do not use every slot after a restart. */
  async function readFailingWebhooks(): Promise<void> {
    try {
      for (const { id, failingSince } of await store.listWebhooks()) if (failingSince !== null) slots.markFailing(id);
    } catch (error) {
      onError('list webhooks', error);
    }
  }

  startRun(readFailingWebhooks);
  return {
    wake,
    drain,
    get inProgressCount() {
      return deliveriesInProgress.size;
    },
  };
}

function createInstallationFault(error: string): AttemptOutcome {
  return { durationMs: 0, status: null, error, body: null, retryAfterMs: null, isInstallationFault: true };
}

/** The same event always has the same body. */
export function buildBody(event: RecordedWebhookEvent): string {
  return JSON.stringify(buildWebhookPayload(event, event.kind === 'message' ? classifyEntry(event.entry) : null));
}
