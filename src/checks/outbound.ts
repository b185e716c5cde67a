import {
  findSenderFault,
  formatTarget,
  type NotificationSenderFault,
  type NotificationTarget,
} from '../model/notification.ts';
import { requiresAuthenticatedSender } from '../model/submission.ts';
import { formatWebhookId, type StoredDelivery, type Webhook, type WebhookAttempt } from '../model/webhook.ts';
import { formatSpan, formatTime, shortenText } from '../printing/text.ts';
import { type Check, type Finding, getNotificationSenderDomain, type Problem, report, reportStep } from './facts.ts';

const MAX_URL_LENGTH = 80;
const MAX_ERROR_LENGTH = 200;
const MAX_QUEUED_MS = 10 * 60_000;

export const notifications: Check = {
  /** Lists the reason why notifications cannot be sent by mail. No notification reports this problem. */
  problems({ settings, store, notificationDomain }) {
    const senderDomain = getNotificationSenderDomain(settings);
    if (senderDomain === null) return [];
    // `store.accounts` contains every locked account, up to the limit of the list.
    const account = store.accounts.find(({ id }) => id === notificationDomain?.accountId) ?? { name: '', locked: null };
    const fault = findSenderFault(senderDomain, notificationDomain, account, requiresAuthenticatedSender(settings));
    if (fault === null) return [];
    const { failure } = report('notifications-failing', null, '/domains');
    return [failure(`Notifications are not sent by mail: ${fault.text}`, fault.remedy)];
  },
};

export const webhooks: Check = {
  problems: ({ store }) => store.disabledWebhooks.map(describeDisabledWebhook),
  steps({ webhooks: allWebhooks }) {
    const { done, optional } = reportStep('webhook', 'Send events to your application', '/webhooks');
    const enabledCount = allWebhooks.filter(({ disabled }) => disabled === null).length;
    if (enabledCount > 0)
      return [done(enabledCount === 1 ? 'One endpoint is enabled.' : `${enabledCount} endpoints are enabled.`)];
    return [
      optional(
        allWebhooks.length === 0 ? 'There is no endpoint.' : 'Every endpoint is disabled.',
        'Create an endpoint, which receives the outcome of each message.',
        'postrider webhook create https://app.example.com/webhooks',
      ),
    ];
  },
};

/** The text does not change while the endpoint stays disabled. */
function describeDisabledWebhook({ id, url, disabled }: Webhook): Problem {
  const webhookId = formatWebhookId(id);
  const cause = disabled?.reason === 'gone' ? 'it responded with 410' : 'no attempt succeeded for five days';
  const when = disabled === null ? '' : ` at ${formatTime(disabled.at)}`;
  return report('webhook-disabled', webhookId, `/webhooks/${webhookId}`).failure(
    `Endpoint ${webhookId} (${shortenText(url, MAX_URL_LENGTH)}) was disabled${when}, because ${cause}: its events are not sent and are purged after 30 days`,
    `Correct the receiver, then run \`postrider webhook enable ${webhookId}\`; or run \`postrider webhook disable ${webhookId}\` or \`postrider webhook delete ${webhookId}\``,
  );
}

export interface NotificationTargetFacts {
  readonly target: NotificationTarget;
  /** The newest notifications, newest first. */
  readonly notifications: readonly StoredDelivery[];
  /** The state of the message that contains the newest delivered notification to an address, or null. */
  readonly messageState: string | null;
  readonly isSuppressed: boolean;
}

export interface NotificationFacts {
  readonly now: number;
  readonly senderFault: NotificationSenderFault | null;
  readonly targets: readonly NotificationTargetFacts[];
}

export function checkNotifications({ now, senderFault, targets }: NotificationFacts): readonly Finding[] {
  const { ok, warning } = report('notifications');
  if (targets.length === 0)
    return [ok('not set up: POSTRIDER_NOTIFY is not set; `postrider overview` lists the problems')];
  const mailOnly = warning(
    'every target is an address, so failures of the transport and of the database cause no notification',
    'add an https target to POSTRIDER_NOTIFY',
  );
  const hasHttps = targets.some(({ target }) => target.kind === 'https');
  return [...(hasHttps ? [] : [mailOnly]), ...targets.map((facts) => checkTarget(facts, senderFault, now))];
}

function checkTarget(
  { target, notifications: recent, messageState, isSuppressed }: NotificationTargetFacts,
  senderFault: NotificationSenderFault | null,
  now: number,
): Finding {
  const { ok, warning, failure } = report('notifications', formatTarget(target.text));
  if (target.kind === 'mail' && senderFault !== null)
    return (senderFault.kind === 'refused' ? failure : warning)(senderFault.text, senderFault.remedy);
  if (isSuppressed) {
    const address = target.kind === 'mail' ? target.address : '';
    return failure(
      'the address is on a suppression list, so it receives no notification',
      `correct the mailbox, then remove the address: \`postrider suppression show ${address}\` shows the lists that contain it`,
    );
  }
  const attempted = recent.find(({ attempts }) => attempts.length > 0);
  const lastAttempt = attempted?.attempts.at(-1);
  const delivered = recent.find(({ status }) => status === 'delivered');
  const formatAge = (attempts: readonly WebhookAttempt[]) => formatSpan(now - (attempts.at(-1)?.at ?? now));
  const lastDelivery =
    delivered === undefined
      ? 'no notification has been delivered yet'
      : `the last notification was delivered ${formatAge(delivered.attempts)} ago`;
  if (attempted !== undefined && lastAttempt !== undefined && lastAttempt.error !== null) {
    const next = attempted.status === 'failed' ? 'no attempt follows' : 'another attempt follows';
    const error = shortenText(lastAttempt.error, MAX_ERROR_LENGTH);
    return warning(
      `the last attempt failed ${formatAge(attempted.attempts)} ago: ${error} (${next}); ${lastDelivery}`,
      target.kind === 'https'
        ? 'check that the URL is reachable from every node, and that the receiver uses POSTRIDER_NOTIFY_SECRET'
        : 'check the domain of POSTRIDER_NOTIFY_FROM and its account',
    );
  }
  if (target.kind === 'mail' && delivered !== undefined && isUndelivered(messageState, delivered, now))
    return warning(
      `the message of the last notification is ${messageState}`,
      `run \`postrider message explain ${delivered.messageId}\``,
    );
  return ok(lastDelivery);
}

function isUndelivered(state: string | null, { attempts }: StoredDelivery, now: number): boolean {
  if (state === null || state === 'delivered') return false;
  const isWaiting = state === 'queued' || state === 'sending';
  return !isWaiting || now - (attempts.at(-1)?.at ?? now) > MAX_QUEUED_MS;
}
