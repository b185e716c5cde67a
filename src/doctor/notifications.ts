/**
 * Checks the notifications to operators: the sender address of notifications by mail, and the last delivery and the
 * last failure of each target.
 */
import { formatTarget, type NotificationTarget, type StoredNotification } from '../model/notification.ts';
import type { NotificationSenderFault } from '../model/notification-sender.ts';
import { formatSpan, shortenText } from '../printing/text.ts';
import { createFailure, createOkFinding, createWarning, type Finding } from './finding.ts';

const MAX_ERROR_LENGTH = 200;
/** A message that is queued for longer than this time is reported. */
const MAX_QUEUED_MS = 10 * 60_000;

export interface NotificationTargetFacts {
  readonly target: NotificationTarget;
  /** The newest notifications, newest first. */
  readonly notifications: readonly StoredNotification[];
  /** The state of the message that contains the newest delivered notification to an address, or null. */
  readonly messageState: string | null;
  /** True if the address is on a suppression list. */
  readonly isSuppressed: boolean;
}

export interface NotificationFacts {
  readonly now: number;
  readonly senderFault: NotificationSenderFault | null;
  readonly targets: readonly NotificationTargetFacts[];
}

/**
 * Returns one finding for each target, and a warning if every target is an address. Returns one finding if no target is
 * configured.
 */
export function checkNotifications({ now, senderFault, targets }: NotificationFacts): readonly Finding[] {
  if (targets.length === 0) {
    const detail = 'not set up: POSTRIDER_NOTIFY is not set; `postrider overview` lists the problems';
    return [createOkFinding('notifications', detail)];
  }
  const hasHttps = targets.some(({ target }) => target.kind === 'https');
  const mailOnlyFindings = hasHttps
    ? []
    : [
        createWarning(
          'notifications',
          'every target is an address, so failures of the transport and of the database cause no notification',
          'add an https target to POSTRIDER_NOTIFY',
        ),
      ];
  return [...mailOnlyFindings, ...targets.map((facts) => checkTarget(facts, senderFault, now))];
}

function checkTarget(
  facts: NotificationTargetFacts,
  senderFault: NotificationSenderFault | null,
  now: number,
): Finding {
  const { target, notifications, messageState, isSuppressed } = facts;
  const check = `notifications ${formatTarget(target.text)}`;
  if (target.kind === 'mail' && senderFault !== null) {
    const createFinding = senderFault.kind === 'refused' ? createFailure : createWarning;
    return createFinding(check, senderFault.text, senderFault.remedy);
  }
  if (isSuppressed)
    return createFailure(
      check,
      'the address is on a suppression list, so it receives no notification',
      `correct the mailbox, then remove the address: \`postrider suppression show ${getAddress(target)}\` shows the lists that contain it`,
    );
  const attemptedNotification = notifications.find(({ attemptedAt }) => attemptedAt !== null) ?? null;
  const deliveredNotification = notifications.find(({ status }) => status === 'delivered') ?? null;
  const lastDeliveryText =
    deliveredNotification === null
      ? 'no notification has been delivered yet'
      : `the last notification was delivered ${formatSpan(now - (deliveredNotification.attemptedAt ?? now))} ago`;
  if (attemptedNotification !== null && attemptedNotification.error !== null) {
    const elapsedText = formatSpan(now - (attemptedNotification.attemptedAt ?? now));
    const nextAttemptText =
      attemptedNotification.status === 'failed' ? 'no attempt follows' : 'another attempt follows';
    const detail = `the last attempt failed ${elapsedText} ago: ${shortenText(attemptedNotification.error, MAX_ERROR_LENGTH)} (${nextAttemptText}); ${lastDeliveryText}`;
    const remedy =
      target.kind === 'https'
        ? 'check that the URL is reachable from every node, and that the receiver uses POSTRIDER_NOTIFY_SECRET'
        : 'check the domain of POSTRIDER_NOTIFY_FROM and its account';
    return createWarning(check, detail, remedy);
  }
  if (
    target.kind === 'mail' &&
    deliveredNotification !== null &&
    isUndelivered(messageState, deliveredNotification, now)
  )
    return createWarning(
      check,
      `the message of the last notification is ${messageState}`,
      `run \`postrider message explain ${deliveredNotification.messageId}\``,
    );
  return createOkFinding(check, lastDeliveryText);
}

function isUndelivered(state: string | null, { attemptedAt }: StoredNotification, now: number): boolean {
  if (state === null || state === 'delivered') return false;
  const isWaiting = state === 'queued' || state === 'sending';
  return !isWaiting || now - (attemptedAt ?? now) > MAX_QUEUED_MS;
}

function getAddress(target: NotificationTarget): string {
  return target.kind === 'mail' ? target.address : '';
}
