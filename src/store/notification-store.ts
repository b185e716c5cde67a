/**
 * Defines the role of the store for notifications to operators: the states of items that need attention, and the
 * notifications to deliver.
 */
import type {
  AttentionCheck,
  AttentionState,
  LeasedNotification,
  NotificationSettlement,
  StoredNotification,
} from '../model/notification.ts';

/** The record of one check. */
export interface AttentionRecord {
  /** The round that `readAttentionCheck` returned. */
  readonly round: number;
  readonly now: number;
  readonly changedStates: readonly AttentionState[];
  /** The keys of the states that are removed. */
  readonly removedKeys: readonly string[];
  /** The notification of this check with one payload for each target, or null. */
  readonly notification: {
    readonly id: string;
    readonly deliveries: readonly { readonly target: string; readonly payload: string }[];
  } | null;
}

export interface NotificationStore {
  /**
   * Starts a check. Resolves to null if a check by any node was recorded within the last `intervalMs`. If the recorded
   * time is in the future because the clock was set back, it is ignored.
   */
  readAttentionCheck(now: number, intervalMs: number): Promise<AttentionCheck | null>;
  /**
   * Records a check and its notification in one transaction. Resolves to `stale`, and records nothing, if another check
   * was recorded since `readAttentionCheck`. Therefore exactly one node records each change.
   */
  recordAttention(record: AttentionRecord): Promise<'recorded' | 'stale'>;
  /**
   * Leases the earliest due notification of each target until `leaseUntil`, and increments the attempt count of each
   * leased notification. A notification whose lease has expired is due again.
   */
  claimNotifications(
    targets: readonly string[],
    owner: string,
    leaseUntil: number,
    now: number,
  ): Promise<readonly LeasedNotification[]>;
  /** Records the result of an attempt. Resolves to `lost` if the lease is no longer valid. */
  settleNotification(settlement: NotificationSettlement): Promise<'settled' | 'lost'>;
  /** Lists up to `limit` notifications of a target, newest first. */
  listNotifications(target: string, limit: number): Promise<readonly StoredNotification[]>;
  /**
   * Purges up to `limit` notifications that were created at or before `createdBefore`. Resolves to the number of purged
   * notifications.
   */
  purgeNotifications(createdBefore: number, limit: number): Promise<number>;
}
