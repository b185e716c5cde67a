/**
 * Lists the problems that need the attention of an operator: one line for each, with the remedy and the page of the
 * dashboard, failures first. Pure.
 */

import type { Account } from '../../model/account.ts';
import type { AttentionCode } from '../../model/attention.ts';
import { GRACE_PERIOD_MS, maySend } from '../../model/domain.ts';
import { type Alarm, type DeliveryFailure, type DeliveryStatus, SIGNING_ALARM } from '../../model/node.ts';
import { findSenderFault } from '../../model/notification-sender.ts';
import {
  type DomainProblem,
  MAX_OVERVIEW_ITEMS,
  RECENT_USE_MS,
  VOLUME_WARNING_FRACTION,
} from '../../model/overview.ts';
import { requiresAuthenticatedSender } from '../../model/submission.ts';
import { formatWebhookId, type Webhook } from '../../model/webhook.ts';
import { formatSpan, formatTime, shortenText } from '../../printing/text.ts';
import { sumTraffic } from './figures.ts';
import { getTransportName } from './health.ts';
import { getNotificationSenderDomain, hasFeedbackSource, listDeliveries, type OverviewInput } from './input.ts';
import type { AttentionItem } from './schemas.ts';

const OLD_MESSAGE_AGE_MS = 3_600_000;
const DAY_MS = 24 * 3_600_000;
const MAX_TEXT_LENGTH = 200;

/** The code and the subject of an item. They do not change while the problem lasts. */
type Identity = readonly [code: AttentionCode, subject: string | null];
const MAX_URL_LENGTH = 80;

export function listAttention(input: OverviewInput): readonly AttentionItem[] {
  const { store, now, settings } = input;
  const items = [
    ...listInstallationProblems(input),
    ...listQueueProblems(input),
    // With the transport `capture:`, no message is sent, so missing records have no effect.
    ...(settings.transport.kind === 'capture'
      ? []
      : store.domains.problems
          .filter(({ status, failedRecords }) => status !== 'authenticated' || failedRecords.length > 0)
          .map((domain) => describeDomainProblem(domain, input))),
    ...store.accounts.flatMap((account) => listAccountProblems(account, now)),
    ...store.keys.map((key) => describeKeyProblem(key, now)),
    ...listReportProblems(input),
    ...listNotificationProblems(input),
    ...store.disabledWebhooks.map(describeDisabledWebhook),
  ];
  return [...items.filter(({ level }) => level === 'failure'), ...items.filter(({ level }) => level === 'warning')];
}

function createFailure(
  [code, subject]: Identity,
  text: string,
  remedy: string,
  page: string | null = null,
): AttentionItem {
  return { code, subject, level: 'failure', text, remedy, page };
}

function createWarning(
  [code, subject]: Identity,
  text: string,
  remedy: string,
  page: string | null = null,
): AttentionItem {
  return { code, subject, level: 'warning', text, remedy, page };
}

function getAccountPage(name: string): string {
  return `/accounts/${encodeURIComponent(name)}`;
}

function listInstallationProblems(input: OverviewInput): readonly AttentionItem[] {
  const { settings, status, nodes, recentSteps, now } = input;
  const items: AttentionItem[] = [];
  if (status !== null && status.storeFault !== null) {
    const { storeFault, storeRemedy = null } = status;
    const remedy = 'Check the disk, or the database server and its log; requests fail with 500, and clients retry';
    items.push(
      storeRemedy === null
        ? createFailure(['database-unavailable', null], 'The database does not commit: no message is accepted', remedy)
        : createFailure(['database-unavailable', null], `No message is accepted: ${storeFault}`, storeRemedy),
    );
  }
  const deliveries = listDeliveries(input);
  const openDeliveries = deliveries.filter(({ breaker }) => breaker.state !== 'closed');
  const lastFailure = findLastFailure(openDeliveries);
  // An older refusal is not the reason why the circuit breaker is open.
  const alarms = listLatestAlarms(deliveries).filter(
    ({ reason, lastAt }) => reason === SIGNING_ALARM || lastFailure === null || lastAt >= lastFailure.at,
  );
  if (openDeliveries.length > 0) {
    const nodeCountText = deliveries.length === 1 ? '' : ` on ${openDeliveries.length} of ${deliveries.length} nodes`;
    const failureText =
      lastFailure === null
        ? ''
        : `; last failure ${formatSpan(now - lastFailure.at)} ago: ${shortenText(lastFailure.text, MAX_TEXT_LENGTH)}`;
    const remedy = 'Run `postrider doctor`; delivery resumes automatically once the next hop answers';
    items.push(
      createFailure(
        ['circuit-breaker-open', null],
        `The circuit breaker of the next hop is open${nodeCountText}: ${getTransportName(settings.transport)}${failureText}`,
        remedy,
        '/messages?state=queued',
      ),
    );
  }
  const { alarmed } = sumTraffic(recentSteps);
  for (const { reason, text, lastAt } of alarms) {
    const details = `last failure ${formatSpan(now - lastAt)} ago: ${shortenText(text, MAX_TEXT_LENGTH)}`;
    const remedy = ALARM_REMEDIES[reason] ?? 'Run `postrider doctor`, which checks the transport';
    items.push(
      reason === SIGNING_ALARM
        ? createFailure(['signing-failed', null], `Messages cannot be signed, ${details}`, remedy, '/domains')
        : createFailure(
            ['next-hop-refusal', reason],
            `The next hop rejects this service (${reason}), ${details}`,
            remedy,
          ),
    );
  }
  if (alarmed > 0 && alarms.length === 0 && openDeliveries.length === 0) {
    const remedy = 'Read the events `attempt.alarm_raised` in the log of the delivering nodes';
    const text = `In the last hour ${formatAttemptCount(alarmed)} failed because the next hop rejected this service or signing failed`;
    items.push(createWarning(['attempts-refused', null], text, remedy));
  }
  if (settings.database.kind === 'postgres') {
    for (const { name, aliveUntil, seenAt } of nodes) {
      if (aliveUntil > now) continue;
      const remedy =
        'Start the node again, or do nothing: other nodes have recovered its leases, and its entry is removed within one hour';
      items.push(
        createWarning(
          ['node-lost', name],
          `Node ${name} sent its last heartbeat ${formatSpan(now - seenAt)} ago`,
          remedy,
        ),
      );
    }
    const hasDeliveringNode = nodes.some(({ roles, aliveUntil }) => aliveUntil > now && roles.includes('deliver'));
    if (!hasDeliveringNode)
      items.push(
        createFailure(
          ['no-delivering-node', null],
          'No node delivers',
          'Start a node with POSTRIDER_ROLES=all, or with the role deliver',
        ),
      );
  }
  if (requiresAuthenticatedSender(settings) && input.store.domains.all === 0) {
    items.push(
      createWarning(
        ['no-sending-domain', null],
        'There is no sending domain: messages of every sender are refused',
        'Add a domain and publish its records',
        '/domains',
      ),
    );
  }
  return items;
}

function findLastFailure(deliveries: readonly DeliveryStatus[]): DeliveryFailure | null {
  return deliveries.flatMap(({ lastFailure }) => lastFailure ?? []).sort((a, b) => b.at - a.at)[0] ?? null;
}

/** Returns the latest alarm of each reason, newest first. */
function listLatestAlarms(deliveries: readonly DeliveryStatus[]): readonly Alarm[] {
  const sortedAlarms = deliveries.flatMap(({ alarms }) => alarms).sort((a, b) => b.lastAt - a.lastAt);
  return [...new Set(sortedAlarms.map(({ reason }) => reason))].flatMap(
    (reason) => sortedAlarms.find((alarm) => alarm.reason === reason) ?? [],
  );
}

const ALARM_REMEDIES: Readonly<Record<string, string>> = {
  configuration: 'Correct POSTRIDER_TRANSPORT or the account at the provider, then run `postrider doctor`',
  reputation:
    "Read the provider's reply and check which messages were sent; then ask the provider's support to remove the block",
  [SIGNING_ALARM]:
    'Run `postrider doctor`; then verify the domain, restore the secret that its keys were encrypted with, or rotate the keys',
};

function listQueueProblems({ queue: { uncertain, oldest }, now, settings }: OverviewInput): readonly AttentionItem[] {
  const items: AttentionItem[] = [];
  if (uncertain > 0) {
    const remedy = 'Decide for each message: retry sends it again, cancel ends it without another attempt';
    items.push(
      createWarning(
        ['messages-uncertain', null],
        `${uncertain} ${uncertain === 1 ? 'message is' : 'messages are'} uncertain: sent without a recorded reply`,
        remedy,
        '/messages?state=uncertain',
      ),
    );
  }
  if (oldest !== null && now - oldest.acceptedAt > OLD_MESSAGE_AGE_MS) {
    const remedy = `The page of the message explains why the message waits; the message expires at the age of ${formatSpan(settings.maxAgeMs)}`;
    items.push(
      createWarning(
        ['queue-delayed', null],
        `The oldest message in the queue was accepted ${formatSpan(now - oldest.acceptedAt)} ago`,
        remedy,
        `/messages/${oldest.id}`,
      ),
    );
  }
  return items;
}

function describeDomainProblem(domain: DomainProblem, { settings, now }: OverviewInput): AttentionItem {
  const { name, status, failingSince, failedRecords } = domain;
  const page = `/domains/${encodeURIComponent(name)}`;
  if (status !== 'authenticated' && !requiresAuthenticatedSender(settings))
    return createWarning(
      [status === 'failing' ? 'domain-failing' : 'domain-pending', name],
      `${name} is not authenticated; its messages are accepted nevertheless`,
      'Publish its records, then verify the domain',
      page,
    );
  switch (status) {
    case 'pending':
      return createWarning(
        ['domain-pending', name],
        `${name} may not send yet: its records were not found`,
        'Publish its records, then verify the domain',
        page,
      );
    case 'failing': {
      const remedy = 'Publish its DKIM records again';
      if (!maySend(domain))
        return createFailure(
          ['domain-refused', name],
          `${name}: the DKIM records are missing or wrong, and its messages are refused`,
          remedy,
          page,
        );
      const remainingMs = (failingSince ?? now) + GRACE_PERIOD_MS - now;
      return createFailure(
        ['domain-failing', name],
        `${name}: the DKIM records are missing or wrong; its messages are refused ${remainingMs > 0 ? `in ${formatSpan(remainingMs)}` : 'soon'}`,
        remedy,
        page,
      );
    }
    case 'authenticated': {
      const purposes = [...new Set(failedRecords.map(({ purpose }) => purpose))].join(', ');
      return createWarning(
        ['domain-records', name],
        `${name} has missing or wrong records: ${purposes}`,
        'On the domain page, compare the records with DNS',
        page,
      );
    }
  }
}

function listAccountProblems(account: Account, now: number): readonly AttentionItem[] {
  const { name, locked, warning: reputationWarning, limits, volumeUsed } = account;
  const page = getAccountPage(name);
  if (locked !== null)
    return [
      createFailure(
        ['account-locked', name],
        `Account ${name} is locked: ${shortenText(locked.reason, MAX_TEXT_LENGTH)}`,
        'Remove the cause, then unlock the account',
        page,
      ),
    ];
  const items: AttentionItem[] = [];
  if (reputationWarning !== null)
    items.push(
      createWarning(
        ['account-warned', name],
        `Account ${name} has reached half of a lock threshold`,
        'Check the counts on the account page, and the recipients of the messages of the account',
        page,
      ),
    );
  const { volume, volumeExpiresAt } = limits;
  const volumeRemedy = 'Set a new volume, or inform the owner of the account';
  if (volume !== null && volumeUsed >= volume)
    items.push(
      createFailure(['volume-exhausted', name], `Account ${name} has used its volume of ${volume}`, volumeRemedy, page),
    );
  else if (volume !== null && volumeUsed >= volume * VOLUME_WARNING_FRACTION)
    items.push(
      createWarning(
        ['volume-low', name],
        `Account ${name} has used ${volumeUsed} of its volume of ${volume}`,
        volumeRemedy,
        page,
      ),
    );
  if (volumeExpiresAt !== null && volumeExpiresAt <= now)
    items.push(
      createFailure(
        ['volume-expired', name],
        `The volume of account ${name} expired at ${formatTime(volumeExpiresAt)}`,
        volumeRemedy,
        page,
      ),
    );
  else if (volumeExpiresAt !== null && volumeExpiresAt - now < 7 * DAY_MS)
    items.push(
      createWarning(
        ['volume-expiring', name],
        `The volume of account ${name} expires in ${formatSpan(volumeExpiresAt - now)}`,
        volumeRemedy,
        page,
      ),
    );
  return items;
}

function describeKeyProblem(
  { id, name, account, expiresAt, lastUsedAt, successor }: OverviewInput['store']['keys'][number],
  now: number,
): AttentionItem {
  const identity: Identity = ['key-expiring', `key_${id}`];
  const remainingMs = (expiresAt ?? now) - now;
  if (successor !== null) {
    const usage = `clients still use it although key_${successor} replaces it`;
    const text = `key_${id} (${name}) of account ${account} expires in ${formatSpan(remainingMs)}: ${usage}`;
    return createWarning(
      identity,
      text,
      'Configure the new key in all clients before the expiry',
      getAccountPage(account),
    );
  }
  const isInUse = lastUsedAt !== null && now - lastUsedAt < RECENT_USE_MS;
  const usage = isInUse ? `last used ${formatSpan(now - lastUsedAt)} ago` : 'every key of the account expires soon';
  const text = `key_${id} (${name}) of account ${account} expires in ${formatSpan(remainingMs)}: ${usage}`;
  const remedy = 'Rotate the key, or configure another key in its clients before the expiry';
  return isInUse && remainingMs < DAY_MS
    ? createFailure(identity, text, remedy, getAccountPage(account))
    : createWarning(identity, text, remedy, getAccountPage(account));
}

function listReportProblems({ store, settings }: OverviewInput): readonly AttentionItem[] {
  const { notUnderstoodCount } = store;
  if (notUnderstoodCount === 0 || !hasFeedbackSource(settings)) return [];
  const count = notUnderstoodCount < MAX_OVERVIEW_ITEMS ? String(notUnderstoodCount) : `${MAX_OVERVIEW_ITEMS} or more`;
  const text = `${count} ${notUnderstoodCount === 1 ? 'report' : 'reports'} of the last 24 h ${notUnderstoodCount === 1 ? 'was' : 'were'} not understood`;
  const remedy = 'Read the reports with `postrider feedback list` and `postrider feedback show ID`';
  return [createWarning(['reports-not-understood', null], text, remedy, '/feedback')];
}

/** Lists the reason why notifications to operators cannot be sent by mail. No notification reports this problem. */
function listNotificationProblems({ settings, store, notificationDomain }: OverviewInput): readonly AttentionItem[] {
  const senderDomain = getNotificationSenderDomain(settings);
  if (senderDomain === null) return [];
  // `store.accounts` contains every locked account, up to the limit of the list. An account that it does not contain is
  // treated as not locked.
  const account = store.accounts.find(({ id }) => id === notificationDomain?.accountId) ?? { name: '', locked: null };
  const fault = findSenderFault(senderDomain, notificationDomain, account, requiresAuthenticatedSender(settings));
  if (fault === null) return [];
  const text = `Notifications are not sent by mail: ${fault.text}`;
  return [createFailure(['notifications-failing', null], text, fault.remedy, '/domains')];
}

/** Describes an endpoint that the service disabled. The text does not change while the endpoint stays disabled. */
function describeDisabledWebhook({ id, url, disabled }: Webhook): AttentionItem {
  const webhookId = formatWebhookId(id);
  const cause = disabled?.reason === 'gone' ? 'it responded with 410' : 'no attempt succeeded for five days';
  const disabledAtText = disabled === null ? '' : ` at ${formatTime(disabled.at)}`;
  const consequence = 'its events are not sent and are purged after 30 days';
  return createFailure(
    ['webhook-disabled', webhookId],
    `Endpoint ${webhookId} (${shortenText(url, MAX_URL_LENGTH)}) was disabled${disabledAtText}, because ${cause}: ${consequence}`,
    `Correct the receiver, then run \`postrider webhook enable ${webhookId}\`; or run \`postrider webhook disable ${webhookId}\` or \`postrider webhook delete ${webhookId}\``,
    `/webhooks/${webhookId}`,
  );
}

function formatAttemptCount(count: number): string {
  return count === 1 ? 'one attempt' : `${count} attempts`;
}
