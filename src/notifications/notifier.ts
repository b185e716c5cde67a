/**
 * Checks which items need attention, and records the changes. Exactly one node records a change, with a delivery for each
 * target, and any node can make it.
 */
import type { MonotonicClock } from '../clock.ts';
import type { AttentionItem } from '../model/attention.ts';
import type { PublishOf } from '../model/events.ts';
import {
  type AttentionChange,
  buildNotificationData,
  type CurrentAttentionItems,
  formatTarget,
  type NotificationTarget,
  planAttention,
  selectForTarget,
} from '../model/notification.ts';
import type { AttentionRecord, NotificationStore } from '../store/contract.ts';
import { buildNotificationMail } from './mail-text.ts';
import { createOutageNotifier } from './outage.ts';
import type { DeliverNotification } from './target.ts';

const CHECK_INTERVAL_MS = 10_000;
/** Between any two checks in the cluster. Shorter, so that a check is not omitted if the previous check was late. */
const MIN_CHECK_INTERVAL_MS = CHECK_INTERVAL_MS / 2;

export interface NotifierParts {
  readonly clock: MonotonicClock;
  /** Creates a UUIDv7. */
  readonly createId: (now: number) => string;
  readonly targets: readonly NotificationTarget[];
  readonly operatorUrl: string | null;
  readonly store: Pick<NotificationStore, 'readAttentionCheck' | 'recordAttention'>;
  readonly readAttention: () => Promise<CurrentAttentionItems>;
  /** Null while commits succeed. */
  readonly readOutage: () => AttentionItem | null;
  /** For the notification that the database does not commit. All others are recorded. */
  readonly deliver: DeliverNotification;
  readonly wakeWorker: () => void;
  readonly getSecret: () => string;
  readonly publish: PublishOf<
    'notification.recorded' | 'notification.delivered' | 'notification.attempt_failed' | 'node.operation_failed'
  >;
}

export interface Notifier {
  /** Starts no further check, and waits up to `timeoutMs` for a running one. */
  stop(timeoutMs: number): Promise<void>;
}

export function startNotifier(parts: NotifierParts): Notifier {
  const { clock, createId, targets, operatorUrl, store, readAttention, readOutage, deliver, wakeWorker, publish } =
    parts;
  let isStopping = false;
  let currentCheck: Promise<void> | null = null;
  let cancelCheck: () => void = () => undefined;

  const onError = (operation: string, error: unknown) =>
    publish({ type: 'node.operation_failed', at: clock.now(), operation, error });

  const outageNotifier = createOutageNotifier({
    ...{ clock, targets, deliver, operatorUrl, getSecret: parts.getSecret },
    onDelivered: (target, notificationId) =>
      publish({
        ...{ type: 'notification.delivered', at: clock.now(), notificationId, target: formatTarget(target.text) },
        ...{ messageId: null, tookMs: 0 },
      }),
    onFailed: (target, notificationId, error) => {
      const at = clock.now();
      const retryAt = at + CHECK_INTERVAL_MS;
      const name = formatTarget(target.text);
      publish({ type: 'notification.attempt_failed', at, notificationId, target: name, error, retryAt });
    },
  });

  function scheduleCheck(delayMs: number): void {
    cancelCheck();
    if (!isStopping) cancelCheck = clock.after(delayMs, runCheck);
  }

  /** Runs after every interval, even while a check waits for the store, so that an outage is detected. */
  function runCheck(): void {
    outageNotifier.observe(readOutage());
    scheduleCheck(CHECK_INTERVAL_MS);
    currentCheck ??= checkAttention()
      .catch((error: unknown) => onError('check what needs attention', error))
      .then(() => {
        currentCheck = null;
      });
  }

  async function checkAttention(): Promise<void> {
    // A node that has not recorded the end of an outage yet does not wait for `MIN_CHECK_INTERVAL_MS`.
    const intervalMs = outageNotifier.hasUnrecordedEnd ? 0 : MIN_CHECK_INTERVAL_MS;
    const recordedCheck = await store.readAttentionCheck(clock.now(), intervalMs);
    if (recordedCheck === null) return;
    outageNotifier.setSequence(recordedCheck.sequence);
    const { items, incompleteCodes } = await readAttention();
    const now = clock.now();
    // This node sends the notification of a database outage directly, so the check excludes the outage. If the check
    // is recorded, the database commits again, so the outage has ended.
    const currentAttention = { items: items.filter(({ code }) => code !== 'database-unavailable'), incompleteCodes };
    const { changedStates, removedKeys, notification } = planAttention(
      outageNotifier.addEndedOutage(recordedCheck, now),
      currentAttention,
      now,
    );
    const deliveries = notification === null ? [] : buildDeliveries(notification);
    const record: AttentionRecord = {
      ...{ round: recordedCheck.round, now, changedStates, removedKeys },
      notification: notification === null || deliveries.length === 0 ? null : { id: createId(now), deliveries },
    };
    if ((await store.recordAttention(record)) === 'stale') return;
    outageNotifier.markRecorded();
    if (record.notification !== null && notification !== null) {
      publish({
        ...{ type: 'notification.recorded', at: now, notificationId: record.notification.id },
        ...{ beganCount: notification.began.length, endedCount: notification.ended.length },
      });
      wakeWorker();
    }
  }

  function buildDeliveries(change: AttentionChange): { target: string; data: string }[] {
    return targets.flatMap(({ kind, text: target }) => {
      const targetChange = selectForTarget(change, kind);
      if (targetChange === null) return [];
      const build = kind === 'https' ? buildNotificationData : buildNotificationMail;
      return [{ target, data: JSON.stringify(build(targetChange, operatorUrl)) }];
    });
  }

  scheduleCheck(0);
  return {
    async stop(timeoutMs) {
      isStopping = true;
      cancelCheck();
      if (currentCheck === null) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const cancel = clock.after(timeoutMs, resolve);
      await Promise.race([currentCheck, promise]);
      cancel();
    },
  };
}
