/**
 * The worker of one lane of outbound deliveries: the webhooks, or the notifications to operators. It leases due
 * deliveries, sends them and records their results. An attempt begins at most `MAX_START_DELAY_MS` after its claim, so
 * its lease outlasts it. A result is recorded again until it is stored, or its lease has ended.
 */
import type { MonotonicClock } from '../clock.ts';
import type { PublishOf } from '../model/events.ts';
import {
  DELIVERY_LEASE_MS,
  type DeliverySettlement,
  type DeliverySettleResult,
  type DisabledReason,
  type LeasedDelivery,
  MAX_START_DELAY_MS,
} from '../model/webhook.ts';
import type { WebhookWorkerStore } from '../store/contract.ts';
import type { WebhookAttemptResult } from './attempt.ts';
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

export interface SendResult extends WebhookAttemptResult, Pick<DeliverySettlement, 'isInstallationFault'> {
  /** No attempt follows a failure. */
  readonly isFinal: boolean;
  /** The message of a notification by mail. */
  readonly messageId?: string | null;
}

/** What differs between webhooks and notifications. Each lane has its own slots, so a backlog in one delays no other. */
export interface Lane {
  readonly name: 'webhook' | 'notification';
  /** Only for notifications. */
  readonly targets?: readonly string[] | undefined;
  /** Default: those of webhooks. */
  readonly retryDelaysMs?: readonly number[];
  /** From the start of a run to the start of the next. */
  readonly getPauseMs: WebhookPace['getPauseMs'];
  /** Adds deliveries for recorded events. */
  moveEvents?(maxEvents: number): Promise<{ readonly events: number; readonly hasMore: boolean }>;
  /** The endpoints whose last attempt failed. */
  listFailing?(): Promise<readonly number[]>;
  /** Never rejects. */
  send(delivery: LeasedDelivery, at: number): Promise<SendResult>;
  publishResult(delivery: LeasedDelivery, settlement: DeliverySettlement, disabled: DisabledReason | null): void;
}

export interface OutboundWorkerParts {
  readonly node: string;
  readonly clock: MonotonicClock;
  readonly random: () => number;
  readonly store: Pick<WebhookWorkerStore, 'claimDeliveries' | 'releaseDeliveryLeases' | 'recoverDeliveries'>;
  readonly settle: (settlement: DeliverySettlement) => Promise<DeliverySettleResult>;
  readonly lane: Lane;
  readonly publish: PublishOf<'node.operation_failed'>;
}

export interface OutboundWorker {
  wake(): void;
  /** Waits up to `timeoutMs` for the results of the running attempts, then releases the other leases. */
  drain(timeoutMs: number): Promise<void>;
  readonly inProgressCount: number;
}

export function startOutboundWorker(parts: OutboundWorkerParts): OutboundWorker {
  const { node, clock, random, store, settle, lane, publish } = parts;
  const { name, targets, getPauseMs } = lane;
  /** The targets of a notification share its id. */
  const inProgress = new Set<LeasedDelivery>();
  const slots = createSlots(clock.monotonic);
  /** The next claim continues after this endpoint; null begins a pass. */
  let position: number | null = null;
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
    const pauseMs = Math.max(pausedUntil, runStartedAt + getPauseMs()) - clock.monotonic();
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
      onError(`claim ${name}s`, error);
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
    const ownLeasesExcept = [...inProgress].map(({ id }) => id);
    const until = now + 2 * DELIVERY_LEASE_MS;
    const areNotifications = targets !== undefined;
    await store.recoverDeliveries({ now, until, node, includeAllLeases: false, ownLeasesExcept, areNotifications });
  }

  async function moveEvents(): Promise<void> {
    if (lane.moveEvents === undefined) return;
    let eventCount = 0;
    // The outbox is emptied in steps. Between two steps, due deliveries are claimed.
    for (let hasMore = true; hasMore && !isStopping; ) {
      const isPaced = getPauseMs() > 0;
      const maxEvents = isPaced ? MAX_EVENTS_PER_PACED_RUN : MAX_EVENTS_PER_RUN;
      const step = await lane.moveEvents(maxEvents);
      eventCount += step.events;
      hasMore = step.hasMore;
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
    let hasWrapped = passEnd === null;
    let examinedStepCount = 0;
    let freeAttempts = getPauseMs() > 0 ? MAX_ATTEMPTS_PER_PACED_RUN : Number.POSITIVE_INFINITY;
    while (!isStopping) {
      const slotLimits = slots.getLimits();
      const limits = { ...slotLimits, maxDeliveries: Math.min(slotLimits.maxDeliveries, freeAttempts) };
      if (limits.maxDeliveries <= 0) return;
      const startedAt = clock.monotonic();
      const now = clock.now();
      const claimLimits = { ...limits, after: position, targets };
      const { deliveries, next } = await store.claimDeliveries(claimLimits, node, now + DELIVERY_LEASE_MS, now);
      freeAttempts -= deliveries.length;
      await startAttempts(deliveries, limits, startedAt);
      if (deliveries.length < limits.maxDeliveries) examinedStepCount += 1;
      position = next;
      if (hasWrapped && (next === null || (passEnd !== null && next >= passEnd))) break;
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
    for (const delivery of deliveries) inProgress.add(delivery);
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

  function endDelivery(delivery: LeasedDelivery): void {
    // A shutdown removes all deliveries from `inProgress`.
    if (!inProgress.delete(delivery)) return;
    const delayMs = slots.freeSlot(delivery.webhookId);
    if (inProgress.size === 0) notifyEmpty();
    if (hasBacklog) requestRun(0);
    else if (delayMs !== null) requestRun(delayMs);
  }

  async function deliver(delivery: LeasedDelivery): Promise<void> {
    const startedAt = clock.now();
    const sendResult = await lane.send(delivery, startedAt);
    slots.reportResult(delivery.webhookId, sendResult.error === null);
    const settlement = createSettlement(delivery, sendResult, startedAt);
    const result = await recordSettlement(delivery, settlement);
    if (result?.kind === 'settled') lane.publishResult(delivery, settlement, result.disabled);
    endDelivery(delivery);
  }

  function createSettlement(delivery: LeasedDelivery, sendResult: SendResult, at: number): DeliverySettlement {
    const { id, webhookId, owner, lease } = delivery;
    const { durationMs, status, error, body, isInstallationFault } = sendResult;
    return {
      ...{ id, webhookId, owner, lease },
      attempt: { at, durationMs, status, error, body },
      result: decideResult(delivery, sendResult),
      isGone: status === STATUS_GONE,
      isInstallationFault,
    };
  }

  function decideResult(
    { attempt: attemptNumber }: LeasedDelivery,
    { error, retryAfterMs, isFinal, messageId = null }: SendResult,
  ): DeliverySettlement['result'] {
    if (error === null) return { kind: 'delivered', messageId };
    const delayMs = isFinal ? null : computeRetryDelayMs(attemptNumber, retryAfterMs, random(), lane.retryDelaysMs);
    return delayMs === null ? { kind: 'failed' } : { kind: 'retry', dueAt: clock.now() + delayMs };
  }

  /** Null if the worker stops first. */
  async function recordSettlement(
    delivery: LeasedDelivery,
    settlement: DeliverySettlement,
  ): Promise<DeliverySettleResult | null> {
    for (let failureCount = 0; inProgress.has(delivery); failureCount += 1) {
      try {
        return await settle(settlement);
      } catch (error) {
        onError(`record a ${name}`, error);
        const delayMs = RECORD_RETRY_DELAYS_MS[Math.min(failureCount, RECORD_RETRY_DELAYS_MS.length - 1)] ?? POLL_MS;
        await new Promise<void>((resolve) => clock.after(delayMs, resolve));
      }
    }
    return null;
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
    const leases = [...inProgress];
    inProgress.clear();
    if (leases.length === 0) return;
    await store
      .releaseDeliveryLeases(leases, clock.now())
      .catch((error: unknown) => onError(`release ${name}s`, error));
  }

  /** So that they do not use every slot after a restart. */
  async function readFailingEndpoints(): Promise<void> {
    try {
      for (const id of (await lane.listFailing?.()) ?? []) slots.markFailing(id);
    } catch (error) {
      onError(`list ${name}s`, error);
    }
  }

  startRun(readFailingEndpoints);
  return {
    wake,
    drain,
    get inProgressCount() {
      return inProgress.size;
    },
  };
}
