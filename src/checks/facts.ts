import type { Settings } from '../config/settings.ts';
import { parseAddress } from '../model/address.ts';
import type { OverviewData, QueueStatistics } from '../model/attention.ts';
import { maySend, type SendingDomain } from '../model/domain.ts';
import type { LastFeedback } from '../model/feedback.ts';
import type { DeliveryStatus, NodeStatus, RuntimeStatus } from '../model/node.ts';
import { findSenderDomain, listDomainCandidates } from '../model/notification.ts';
import { FIRST_SENDER } from '../model/outcome.ts';
import { requiresAuthenticatedSender } from '../model/submission.ts';
import { MINUTE_MS, type TrafficStep } from '../model/traffic.ts';
import type { Webhook } from '../model/webhook.ts';
import { getRangeStart, RATE_WINDOW_MS } from '../statistics/figures.ts';
import type { OperatorStore } from '../store/contract.ts';
import type { Health, Problem, Step } from './finding.ts';

export interface Facts {
  readonly now: number;
  readonly settings: Settings;
  /** The runtime status of this process. Null for a command. */
  readonly status: RuntimeStatus | null;
  readonly recentSteps: readonly TrafficStep[];
  readonly queue: QueueStatistics;
  readonly store: OverviewData;
  readonly nodes: readonly NodeStatus[];
  readonly lastFeedbackAt: number | null;
  /** The sending domain of POSTRIDER_NOTIFY_FROM. Null without mail targets, or if no account has this domain. */
  readonly notificationDomain: SendingDomain | null;
}

export async function readFacts(
  store: OperatorStore,
  settings: Settings,
  status: RuntimeStatus | null,
  now: number,
  maxItems?: number,
): Promise<Facts> {
  const [recentSteps, queue, overviewData, nodes, lastFeedbackAt, notificationDomain] = await Promise.all([
    store.readTraffic(getRangeStart('1h', now), now + RATE_WINDOW_MS, MINUTE_MS),
    store.readQueueStatistics(),
    store.readOverviewData(now, maxItems),
    store.listNodes(now),
    hasFeedbackSource(settings) ? store.findLastFeedbackAt() : null,
    readNotificationDomain(store, settings),
  ]);
  const read = { recentSteps, queue, store: overviewData, nodes, lastFeedbackAt, notificationDomain };
  return { now, settings, status, ...read };
}

export interface SetupFacts extends Pick<Facts, 'now' | 'settings' | 'status' | 'store' | 'nodes'> {
  readonly lastFeedback: readonly LastFeedback[];
  readonly webhooks: readonly Webhook[];
  /** The name of an account to which a domain can be added. Null without an account, or if there is a domain. */
  readonly account: string | null;
  /** An address from which a first message is accepted, or null if every sender is refused. */
  readonly testSender: string | null;
}

export async function readSetupFacts(
  store: OperatorStore,
  settings: Settings,
  status: RuntimeStatus | null,
  now: number,
): Promise<SetupFacts> {
  const [overviewData, lastFeedback, nodes, webhooks] = await Promise.all([
    store.readOverviewData(now, 1),
    store.listLastFeedback(),
    store.listNodes(now),
    store.listWebhooks(),
  ]);
  const needsSenderDomain = !overviewData.everAccepted && requiresAuthenticatedSender(settings);
  const senderDomain = needsSenderDomain ? (await store.listDomains()).find(maySend) : undefined;
  const domainSender = senderDomain === undefined ? null : `hello@${senderDomain.name}`;
  const account = overviewData.domains.all === 0 ? ((await store.listAccounts())[0]?.name ?? null) : null;
  return {
    ...{ now, settings, status, store: overviewData, nodes, lastFeedback, webhooks, account },
    testSender: needsSenderDomain ? domainSender : FIRST_SENDER,
  };
}

export interface Check {
  problems?(facts: Facts): readonly Problem[];
  health?(facts: Facts): Health | null;
  /** Steps of the setup checklist. No step stores a state, so a step completed by a command is complete here too. */
  steps?(facts: SetupFacts): readonly Step[];
}

export function hasFeedbackSource({ feedbackListen, feedbackHttpListen, sesQueue }: Settings): boolean {
  return feedbackListen !== null || feedbackHttpListen !== null || sesQueue !== null;
}

/** Returns the delivery status of this process and those that the other live nodes have stored. */
export function listDeliveries({
  status,
  nodes,
  now,
}: Pick<Facts, 'status' | 'nodes' | 'now'>): readonly DeliveryStatus[] {
  const otherNodes = nodes.filter(({ name, aliveUntil }) => name !== status?.node && aliveUntil > now);
  const deliveries = [status?.delivery ?? null, ...otherNodes.map(({ delivery }) => delivery)];
  return deliveries.filter((delivery) => delivery !== null);
}

export function getNotificationSenderDomain({ notifyFrom }: Pick<Settings, 'notifyFrom'>): string | null {
  return notifyFrom === null ? null : (parseAddress(notifyFrom)?.domain ?? null);
}

async function readNotificationDomain(
  store: Pick<OperatorStore, 'findDomain'>,
  settings: Settings,
): Promise<SendingDomain | null> {
  const name = getNotificationSenderDomain(settings);
  if (name === null) return null;
  const domains = await Promise.all(listDomainCandidates(name).map((candidate) => store.findDomain(candidate)));
  return findSenderDomain(name, (candidate) => domains.find((domain) => domain?.name === candidate) ?? null);
}
