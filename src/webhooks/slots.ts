/**
 * Decides how many deliveries of each endpoint a node may lease, so that endpoints that do not respond delay no other.
 * The limit of an endpoint begins at `INITIAL_LIMIT`, doubles with success and falls to one with failure. Pure.
 */
import type { DeliveryClaimLimits } from '../store/contract.ts';

export const MAX_CONCURRENT_ATTEMPTS = 512;
export const MAX_ATTEMPTS_PER_WEBHOOK = 16;
/** All endpoints whose last attempt failed share these slots. */
export const MAX_FAILING_SLOTS = 192;
const INITIAL_LIMIT = 2;
const PAUSE_PER_FAILURE_MS = 10;
const MAX_PAUSE_MS = 1_000;
/** If endpoints that are not failing use at least this number of slots, each of them has at most one attempt. */
const BUSY_SLOT_COUNT = (MAX_CONCURRENT_ATTEMPTS - MAX_FAILING_SLOTS) / 2;
/** The limits of the next claim take the results of this claim into account. */
const MAX_CLAIMED_DELIVERIES = 64;

interface EndpointState {
  count: number;
  limit: number;
  failureCount: number;
  pausedUntil: number;
  /** The last claim may have left due deliveries. */
  hasBacklog: boolean;
}

export type SlotLimits = Pick<DeliveryClaimLimits, 'maxDeliveries' | 'freeSlots' | 'defaultFreeSlots'>;

export interface Slots {
  markFailing(webhookId: number): void;
  /** From the claim until the result is recorded. `webhookIds` are in ascending order. */
  occupySlots(webhookIds: readonly number[], limits: SlotLimits): void;
  reportResult(webhookId: number, isSuccess: boolean): void;
  /** Returns the time after which a claim may find a delivery of the endpoint, or null. */
  freeSlot(webhookId: number): number | null;
  getLimits(): SlotLimits;
  /** Called when no delivery of these endpoints is due. */
  removeIdle(): void;
}

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
