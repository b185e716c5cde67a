/**
 * Runs the notifications of one node: checks which items need attention, records the changes, and delivers the recorded
 * notifications. Exactly one node records a change, with a notification for each target, and any node can deliver it. A
 * target that does not respond delays no other target. A URL may receive a notification more than once, with the same
 * `webhook-id`; a mail is accepted at most once.
 */
import type { MonotonicClock } from '../clock.ts';
import type { AttentionItem } from '../model/attention.ts';
import type { PublishOf } from '../model/events.ts';
import {
  type AttentionChange,
  buildNotificationPayload,
  type CurrentAttentionItems,
  formatTarget,
  type LeasedNotification,
  NOTIFICATION_RETENTION_MS,
  type NotificationSettlement,
  type NotificationTarget,
  planAttention,
  selectForTarget,
} from '../model/notification.ts';
import type { AttentionRecord, NotificationStore } from '../store/contract.ts';
import { ATTEMPT_TIMEOUT_MS } from '../webhooks/attempt.ts';
import { computeRetryDelayMs } from '../webhooks/schedule.ts';
import { buildNotificationMail } from './mail-text.ts';
import { createOutageNotifier } from './outage.ts';
import type { DeliverNotification, TargetResult } from './target.ts';

const CHECK_INTERVAL_MS = 10_000;
/** Between any two checks in the cluster. Shorter, so that a check is not omitted if the previous check was late. */
const MIN_CHECK_INTERVAL_MS = CHECK_INTERVAL_MS / 2;
const DELIVERY_POLL_MS = 5_000;
/** Covers the attempt and the time to record its result. */
const LEASE_MS = ATTEMPT_TIMEOUT_MS + 45_000;
const PURGE_INTERVAL_MS = 3_600_000;
const MAX_PURGED_NOTIFICATIONS = 1_000;
const MINUTE_MS = 60_000;
/**
 * After the last delay the notification has failed. Shorter than for webhooks, because `postrider overview` also shows
 * the items.
 */
const RETRY_DELAYS_MS = [5_000, 30_000, ...[2, 10, 30, 60, 120, 240].map((minutes) => minutes * MINUTE_MS)];

export interface NotifierParts {
  readonly node: string;
  readonly clock: MonotonicClock;
  readonly random: () => number;
  readonly createId: () => string;
  readonly targets: readonly NotificationTarget[];
  readonly operatorUrl: string | null;
  readonly store: Omit<NotificationStore, 'listNotifications'>;
  readonly readAttention: () => Promise<CurrentAttentionItems>;
  /** Null while commits succeed. */
  readonly readOutage: () => AttentionItem | null;
  readonly deliver: DeliverNotification;
  readonly getSecret: () => string;
  readonly publish: PublishOf<
    | 'notification.recorded'
    | 'notification.delivered'
    | 'notification.attempt_failed'
    | 'notification.failed'
    | 'node.operation_failed'
  >;
}

export interface Notifier {
  /** Starts no further check or attempt, and waits up to `timeoutMs` for the results of the running attempts. */
  stop(timeoutMs: number): Promise<void>;
}

export function startNotifier(parts: NotifierParts): Notifier {
  const { node, clock, random, createId, targets, operatorUrl, store, readAttention, readOutage, deliver, publish } =
    parts;
  const inProgress = new Map<string, Promise<void>>();
  let isStopping = false;
  let currentCheck: Promise<void> | null = null;
  let isClaiming = false;
  let purgedAt: number | null = null;
  let cancelCheck: () => void = () => undefined;
  let cancelClaim: () => void = () => undefined;

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
      notification: notification === null || deliveries.length === 0 ? null : { id: `ntf_${createId()}`, deliveries },
    };
    if ((await store.recordAttention(record)) === 'stale') return;
    outageNotifier.markRecorded();
    if (record.notification !== null && notification !== null) {
      publish({
        ...{ type: 'notification.recorded', at: now, notificationId: record.notification.id },
        ...{ beganCount: notification.began.length, endedCount: notification.ended.length },
      });
      claimDueNotifications();
    }
    await purgeNotifications(now);
  }

  function buildDeliveries(change: AttentionChange): { target: string; payload: string }[] {
    return targets.flatMap(({ kind, text: target }) => {
      const targetChange = selectForTarget(change, kind);
      if (targetChange === null) return [];
      const content =
        kind === 'https'
          ? buildNotificationPayload(targetChange, operatorUrl)
          : buildNotificationMail(targetChange, operatorUrl);
      return [{ target, payload: JSON.stringify(content) }];
    });
  }

  async function purgeNotifications(now: number): Promise<void> {
    if (purgedAt !== null && Math.abs(now - purgedAt) < PURGE_INTERVAL_MS) return;
    purgedAt = now;
    while (
      (await store.purgeNotifications(now - NOTIFICATION_RETENTION_MS, MAX_PURGED_NOTIFICATIONS)) ===
      MAX_PURGED_NOTIFICATIONS
    );
  }

  function claimDueNotifications(): void {
    cancelClaim();
    if (isStopping) return;
    cancelClaim = clock.after(DELIVERY_POLL_MS, claimDueNotifications);
    const idleTargets = targets.map(({ text }) => text).filter((text) => !inProgress.has(text));
    if (isClaiming || idleTargets.length === 0) return;
    isClaiming = true;
    const now = clock.now();
    void store
      .claimNotifications(idleTargets, node, now + LEASE_MS, now)
      .then(
        (leased) => {
          for (const notification of leased) startAttempt(notification);
        },
        (error: unknown) => onError('claim notifications', error),
      )
      .then(() => {
        isClaiming = false;
      });
  }

  function startAttempt(notification: LeasedNotification): void {
    const target = targets.find(({ text }) => text === notification.target);
    if (target === undefined) return;
    const attempt = attemptDelivery(target, notification)
      .catch((error: unknown) => onError('record a notification', error))
      .then(() => {
        inProgress.delete(notification.target);
        // More notifications may be due for this target.
        claimDueNotifications();
      });
    inProgress.set(notification.target, attempt);
  }

  async function attemptDelivery(target: NotificationTarget, notification: LeasedNotification): Promise<void> {
    const { id, owner, attempt } = notification;
    const startedAt = clock.monotonic();
    const outcome = await deliver(target, notification);
    const at = clock.now();
    const result = decideResult(outcome, attempt, at);
    const settlement: NotificationSettlement = { id, target: target.text, owner, attempt, at, result };
    if ((await store.settleNotification(settlement)) === 'lost') return;
    publishResult(settlement, Math.round(clock.monotonic() - startedAt));
  }

  function decideResult(outcome: TargetResult, attempt: number, at: number): NotificationSettlement['result'] {
    if (outcome.kind === 'delivered') return { kind: 'delivered', messageId: outcome.messageId };
    const { error, isFinal, retryAfterMs } = outcome;
    const delayMs = isFinal ? null : computeRetryDelayMs(attempt, retryAfterMs, random(), RETRY_DELAYS_MS);
    return delayMs === null ? { kind: 'failed', error } : { kind: 'retry', dueAt: at + delayMs, error };
  }

  function publishResult({ id, target: text, at, result }: NotificationSettlement, tookMs: number): void {
    const members = { at, notificationId: id, target: formatTarget(text) };
    switch (result.kind) {
      case 'delivered':
        publish({ type: 'notification.delivered', ...members, messageId: result.messageId, tookMs });
        break;
      case 'retry':
        publish({ type: 'notification.attempt_failed', ...members, error: result.error, retryAt: result.dueAt });
        break;
      case 'failed':
        publish({ type: 'notification.failed', ...members, error: result.error });
        break;
    }
  }

  scheduleCheck(0);
  claimDueNotifications();
  return {
    async stop(timeoutMs) {
      isStopping = true;
      cancelCheck();
      cancelClaim();
      const runningTasks = [...inProgress.values(), currentCheck].filter((task) => task !== null);
      if (runningTasks.length === 0) return;
      await new Promise<void>((resolve) => {
        const cancel = clock.after(timeoutMs, resolve);
        void Promise.allSettled(runningTasks).then(() => {
          cancel();
          resolve();
        });
      });
    },
  };
}
