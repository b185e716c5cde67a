/**
 * Decides how many deliveries of each endpoint a node may lease, so that endpoints that do not respond do not delay the
 * other endpoints. Performs no I/O.
 *
 * Guarantees: at most `MAX_CONCURRENT_ATTEMPTS` attempts run at a time, and at most `MAX_ATTEMPTS_PER_WEBHOOK` to one
 * endpoint. The initial limit of an endpoint is two attempts at a time. Each success doubles this limit, and a failure
 * sets it to one. Endpoints whose last attempt failed use at most `MAX_FAILING_SLOTS` slots. While the endpoints that
 * are not failing use at least half of the remaining slots, the limit of each such endpoint is one attempt. Therefore,
 * if many endpoints stop responding at the same time, each of them occupies only one slot. The time between the
 * attempts to an endpoint increases with each consecutive failure, up to one second. Therefore, the backlog of an
 * endpoint that immediately refuses connections does not overload the store.
 */
import type { DeliveryClaimLimits } from '../store/contract.ts';

/** The maximum number of attempts of this node that run at a time, over all endpoints. */
export const MAX_CONCURRENT_ATTEMPTS = 512;
/** The maximum number of attempts of this node to one endpoint that run at a time. */
export const MAX_ATTEMPTS_PER_WEBHOOK = 16;
/** The maximum number of slots that all endpoints whose last attempt failed use together. */
export const MAX_FAILING_SLOTS = 192;
/** The maximum number of attempts at a time to an endpoint before the first result is known. */
const INITIAL_LIMIT = 2;
/** The pause after a failure is `PAUSE_PER_FAILURE_MS` for each consecutive failure, but at most `MAX_PAUSE_MS`. */
const PAUSE_PER_FAILURE_MS = 10;
const MAX_PAUSE_MS = 1_000;
/** If endpoints that are not failing use at least this number of slots, each of them has at most one attempt. */
const BUSY_SLOT_COUNT = (MAX_CONCURRENT_ATTEMPTS - MAX_FAILING_SLOTS) / 2;
/**
 * The maximum number of deliveries of one claim. The limits of the next claim take the results of this claim into
 * account.
 */
const MAX_CLAIMED_DELIVERIES = 64;

/** The state of an endpoint in the memory of this node. */
interface EndpointState {
  /** The number of used slots. */
  count: number;
  /** The maximum number of attempts at a time. */
  limit: number;
  /** The number of failed attempts since the last success. */
  failureCount: number;
  /** The monotonic time before which no delivery is claimed. */
  pausedUntil: number;
  /** True if the last claim may have left due deliveries of this endpoint unclaimed. */
  hasBacklog: boolean;
}

/** The limits of a claim that depend on the slots. */
export type SlotLimits = Pick<DeliveryClaimLimits, 'maxDeliveries' | 'freeSlots' | 'defaultFreeSlots'>;

export interface Slots {
  /** Marks an endpoint as failing. */
  markFailing(webhookId: number): void;
  /**
   * Occupies a slot for each claimed delivery, from the claim until the result is recorded. `webhookIds` contains the
   * endpoint of each delivery, in ascending order. `limits` are the limits of the claim.
   */
  occupySlots(webhookIds: readonly number[], limits: SlotLimits): void;
  /** Stores the result of an attempt. The slot of the attempt remains occupied. */
  reportResult(webhookId: number, isSuccess: boolean): void;
  /**
   * Frees a slot. Returns the time in milliseconds after which a claim may find a delivery of the endpoint, or null if
   * the last claim left no due delivery.
   */
  freeSlot(webhookId: number): number | null;
  /** Returns the limits of the next claim. `maxDeliveries` is 0 if every slot is used. */
  getLimits(): SlotLimits;
  /**
   * Removes the state of endpoints that use no slot and are not failing. Called when no delivery of these endpoints is
   * due.
   */
  removeIdle(): void;
}

/** `monotonic` returns the monotonic time in milliseconds. */
export function createSlots(monotonic: () => number): Slots {
  const states = new Map<number, EndpointState>();
  let usedCount = 0;

  function getState(webhookId: number): EndpointState {
    const knownState = states.get(webhookId);
    if (knownState !== undefined) return knownState;
    const state = { count: 0, limit: INITIAL_LIMIT, failureCount: 0, pausedUntil: 0, hasBacklog: false };
    states.set(webhookId, state);
    return state;
  }

  return {
    markFailing(webhookId) {
      getState(webhookId).failureCount = 1;
    },
    occupySlots(webhookIds, { maxDeliveries, freeSlots, defaultFreeSlots }) {
      const freeSlotsByWebhook = new Map(freeSlots.map(({ webhookId, count }) => [webhookId, count]));
      const claimedCounts = new Map<number, number>();
      for (const webhookId of webhookIds) claimedCounts.set(webhookId, (claimedCounts.get(webhookId) ?? 0) + 1);
      for (const [webhookId, count] of claimedCounts) {
        const state = getState(webhookId);
        state.count += count;
        state.hasBacklog = count >= (freeSlotsByWebhook.get(webhookId) ?? defaultFreeSlots);
      }
      usedCount += webhookIds.length;
      // The claim may have reached `maxDeliveries` before it contained every due delivery of the last endpoint.
      const lastWebhookId = webhookIds.at(-1);
      if (lastWebhookId !== undefined && webhookIds.length >= maxDeliveries) getState(lastWebhookId).hasBacklog = true;
    },
    reportResult(webhookId, isSuccess) {
      const state = getState(webhookId);
      state.failureCount = isSuccess ? 0 : state.failureCount + 1;
      state.limit = isSuccess ? Math.min(MAX_ATTEMPTS_PER_WEBHOOK, 2 * state.limit) : 1;
      state.pausedUntil = monotonic() + Math.min(MAX_PAUSE_MS, PAUSE_PER_FAILURE_MS * state.failureCount);
    },
    freeSlot(webhookId) {
      const state = getState(webhookId);
      state.count -= 1;
      usedCount -= 1;
      return state.hasBacklog ? Math.max(0, state.pausedUntil - monotonic()) : null;
    },
    getLimits() {
      const now = monotonic();
      let failingCount = 0;
      for (const { failureCount, count } of states.values()) if (failureCount > 0) failingCount += count;
      const isBusy = usedCount - failingCount >= BUSY_SLOT_COUNT;
      const failingEndpointLimit = failingCount + MAX_CLAIMED_DELIVERIES > MAX_FAILING_SLOTS ? 0 : 1;
      const freeSlots = [...states].map(([webhookId, { count, limit, failureCount, pausedUntil }]) => {
        const maxCount = failureCount > 0 ? (pausedUntil > now ? 0 : failingEndpointLimit) : isBusy ? 1 : limit;
        return { webhookId, count: Math.max(0, maxCount - count) };
      });
      const maxDeliveries = Math.min(MAX_CLAIMED_DELIVERIES, MAX_CONCURRENT_ATTEMPTS - usedCount);
      return { maxDeliveries, freeSlots, defaultFreeSlots: isBusy ? 1 : INITIAL_LIMIT };
    },
    removeIdle() {
      for (const [webhookId, { count, failureCount }] of states)
        if (count === 0 && failureCount === 0) states.delete(webhookId);
    },
  };
}
