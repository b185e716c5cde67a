/**
 * Notifies HTTPS targets that the database does not commit. The notification cannot be recorded, so each node sends it
 * directly, at most once for each outage and target and for one outage within an hour. All nodes use the same
 * `webhook-id`, so that a receiver drops the duplicates. After the outage, its state is recorded, so that its end causes
 * a recorded notification, unless the node was restarted during the outage.
 */
import { createHmac } from 'node:crypto';
import type { MonotonicClock } from '../clock.ts';
import { type AttentionItem, getAttentionKey } from '../model/attention.ts';
import {
  type AttentionCheck,
  type AttentionState,
  buildNotificationData,
  hasElapsed,
  ITEM_INTERVAL_MS,
  type NotificationTarget,
} from '../model/notification.ts';
import { NOTIFICATION_TYPE } from '../model/webhook.ts';
import type { DeliverNotification, Notification } from './target.ts';

const MIN_OUTAGE_MS = 30_000;
const MAX_ATTEMPTS = 20;

export interface OutageParts {
  readonly clock: MonotonicClock;
  readonly targets: readonly NotificationTarget[];
  readonly deliver: DeliverNotification;
  readonly operatorUrl: string | null;
  readonly getSecret: () => string;
  readonly onDelivered: (target: NotificationTarget, id: string) => void;
  readonly onFailed: (target: NotificationTarget, id: string, error: string) => void;
}

interface Outage {
  readonly startedAt: number;
  readonly startedMonotonicMs: number;
  readonly item: AttentionItem;
  /** Null before the first attempt. */
  notification: Notification | null;
  readonly remainingAttempts: Map<NotificationTarget, number>;
  readonly inProgress: Set<NotificationTarget>;
  isNotified: boolean;
}

export interface OutageNotifier {
  observe(item: AttentionItem | null): void;
  setSequence(sequence: number): void;
  addEndedOutage(check: AttentionCheck, now: number): AttentionCheck;
  /** True until a check has recorded the end of an outage of whose start a target was notified. */
  readonly hasUnrecordedEnd: boolean;
  markRecorded(): void;
}

export function createOutageNotifier(parts: OutageParts): OutageNotifier {
  const { clock, deliver, operatorUrl, getSecret, onDelivered, onFailed } = parts;
  const targets = parts.targets.filter(({ kind }) => kind === 'https');
  let outage: Outage | null = null;
  let endedOutage: Outage | null = null;
  let lastNotifiedAt: number | null = null;
  let sequence = 0;

  function startOutage(item: AttentionItem): Outage {
    return {
      ...{ startedAt: clock.now(), startedMonotonicMs: clock.monotonic(), item, notification: null },
      remainingAttempts: new Map(targets.map((target) => [target, MAX_ATTEMPTS])),
      ...{ inProgress: new Set<NotificationTarget>(), isNotified: false },
    };
  }

  function notifyTargets(currentOutage: Outage): void {
    const { startedAt: at, startedMonotonicMs, item } = currentOutage;
    if (clock.monotonic() - startedMonotonicMs < MIN_OUTAGE_MS) return;
    if (currentOutage.notification === null) {
      if (!hasElapsed(lastNotifiedAt, ITEM_INTERVAL_MS, clock.now())) return;
      const change = { at, began: [{ ...item, beganAt: at, endedAt: null }], ended: [], ongoingCount: 1 };
      const data = buildNotificationData(change, operatorUrl);
      const hashedText = `outage ${sequence} ${Math.floor(at / ITEM_INTERVAL_MS)}`;
      const id = `ntf_${createHmac('sha256', getSecret()).update(hashedText).digest('hex').slice(0, 32)}`;
      currentOutage.notification = { id, event: { kind: 'resource', type: NOTIFICATION_TYPE, at, data } };
    }
    for (const target of targets) void attemptNotification(currentOutage, currentOutage.notification, target);
  }

  async function attemptNotification(
    currentOutage: Outage,
    notification: Notification,
    target: NotificationTarget,
  ): Promise<void> {
    const remainingCount = currentOutage.remainingAttempts.get(target) ?? 0;
    if (remainingCount === 0 || currentOutage.inProgress.has(target)) return;
    currentOutage.inProgress.add(target);
    const result = await deliver(target, notification);
    currentOutage.inProgress.delete(target);
    if (result.error !== null) {
      currentOutage.remainingAttempts.set(target, result.isFinal ? 0 : remainingCount - 1);
      onFailed(target, notification.id, result.error);
      return;
    }
    currentOutage.remainingAttempts.set(target, 0);
    currentOutage.isNotified = true;
    lastNotifiedAt = clock.now();
    onDelivered(target, notification.id);
  }

  return {
    observe(item) {
      if (item === null) {
        // An outage without a notification does not replace an earlier outage whose end has not been recorded yet.
        if (outage !== null && (endedOutage?.isNotified !== true || outage.isNotified)) endedOutage = outage;
        outage = null;
      } else {
        outage ??= startOutage(item);
        notifyTargets(outage);
      }
    },
    setSequence(recorded) {
      sequence = recorded;
    },
    addEndedOutage(check, now) {
      if (endedOutage === null || !endedOutage.isNotified) return check;
      const itemKey = getAttentionKey(endedOutage.item);
      const recordedState = check.states.find((state) => getAttentionKey(state.item) === itemKey);
      // True if another node has already recorded this outage.
      const isRecorded = recordedState !== undefined && (recordedState.announcedAt ?? 0) >= endedOutage.startedAt;
      if (isRecorded) return check;
      const state: AttentionState = {
        ...{ item: endedOutage.item, isPresent: true, beganAt: endedOutage.startedAt, endedAt: null },
        // The state stays in the store for one hour after the outage, so that the other nodes find it.
        ...{ isAnnounced: true, announcedAt: now },
      };
      return { ...check, states: [...check.states.filter((other) => other !== recordedState), state] };
    },
    get hasUnrecordedEnd() {
      return endedOutage?.isNotified === true;
    },
    markRecorded() {
      // A running attempt may still deliver the notification of the start. In this case, the next check records the
      // end.
      if (endedOutage?.inProgress.size === 0) endedOutage = null;
    },
  };
}
