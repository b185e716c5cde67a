/** Reads the data of an overview from the store, in parallel. */
import type { Settings } from '../../config/settings.ts';
import { parseAddress } from '../../model/address.ts';
import type { SendingDomain } from '../../model/domain.ts';
import type { DeliveryStatus, NodeStatus, RuntimeStatus } from '../../model/node.ts';
import { findSenderDomain, listDomainCandidates } from '../../model/notification-sender.ts';
import type { OverviewData, QueueStatistics } from '../../model/overview.ts';
import { MINUTE_MS, type TrafficStep } from '../../model/traffic.ts';
import type { OperatorStore } from '../../store/contract.ts';
import { getRangeStart } from './figures.ts';
import { RATE_WINDOW_MS } from './queue.ts';
import { RANGES, type Range } from './schemas.ts';

export interface OverviewInput {
  readonly now: number;
  readonly settings: Settings;
  /** The runtime status of this process. Null for a command. */
  readonly status: RuntimeStatus | null;
  readonly steps: readonly TrafficStep[];
  /** The traffic of the last hour by minutes. */
  readonly recentSteps: readonly TrafficStep[];
  readonly queue: QueueStatistics;
  readonly store: OverviewData;
  readonly nodes: readonly NodeStatus[];
  readonly lastFeedbackAt: number | null;
  /** The sending domain of POSTRIDER_NOTIFY_FROM. Null without mail targets, or if no account has this domain. */
  readonly notificationDomain: SendingDomain | null;
}

/** Returns true if a listener or queue for bounces and complaints is configured. */
export function hasFeedbackSource({ feedbackListen, feedbackHttpListen, sesQueue }: Settings): boolean {
  return feedbackListen !== null || feedbackHttpListen !== null || sesQueue !== null;
}

/** Returns the delivery status of this process and those that the other live nodes have stored. */
export function listDeliveries({
  status,
  nodes,
  now,
}: Pick<OverviewInput, 'status' | 'nodes' | 'now'>): readonly DeliveryStatus[] {
  const ownDelivery = status?.delivery ?? null;
  const otherNodes = nodes.filter(({ name, aliveUntil }) => name !== status?.node && aliveUntil > now);
  return [ownDelivery, ...otherNodes.map(({ delivery }) => delivery)].filter((delivery) => delivery !== null);
}

/** Reads the data of one range. `maxItems` is the maximum number of items of each kind, such as accounts or keys. */
export async function readOverviewInput(
  store: OperatorStore,
  settings: Settings,
  status: RuntimeStatus | null,
  range: Range,
  now: number,
  maxItems?: number,
): Promise<OverviewInput> {
  const until = now + RATE_WINDOW_MS;
  const minutes = store.readTraffic(getRangeStart('1h', now), until, MINUTE_MS);
  const [steps, recentSteps, queue, overviewData, nodes, lastFeedbackAt, notificationDomain] = await Promise.all([
    range === '1h' ? minutes : store.readTraffic(getRangeStart(range, now), until, RANGES[range].stepMs),
    minutes,
    store.readQueueStatistics(),
    store.readOverviewData(now, maxItems),
    store.listNodes(now),
    hasFeedbackSource(settings) ? store.findLastFeedbackAt() : null,
    readNotificationDomain(store, settings),
  ]);
  return {
    now,
    settings,
    status,
    steps,
    recentSteps,
    queue,
    store: overviewData,
    nodes,
    lastFeedbackAt,
    notificationDomain,
  };
}

/** Returns the domain of the sender of notifications by mail, or null if there is no mail target. */
export function getNotificationSenderDomain({ notifyFrom }: Pick<Settings, 'notifyFrom'>): string | null {
  return notifyFrom === null ? null : (parseAddress(notifyFrom)?.domain ?? null);
}

async function readNotificationDomain(
  store: Pick<OperatorStore, 'findDomain'>,
  settings: Settings,
): Promise<SendingDomain | null> {
  const name = getNotificationSenderDomain(settings);
  if (name === null) return null;
  const candidateDomains = await Promise.all(
    listDomainCandidates(name).map((candidate) => store.findDomain(candidate)),
  );
  return findSenderDomain(name, (candidate) => candidateDomains.find((domain) => domain?.name === candidate) ?? null);
}
