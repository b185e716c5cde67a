/** Reads the data of an overview from the store, in parallel. */
import type { Settings } from '../../config/settings.ts';
import type { NodeStatus, RuntimeStatus } from '../../model/node.ts';
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
  readonly recent: readonly TrafficStep[];
  readonly queue: QueueStatistics;
  readonly store: OverviewData;
  readonly nodes: readonly NodeStatus[];
  readonly lastFeedbackAt: number | null;
}

/** Returns true if a listener or queue for bounces and complaints is configured. */
export function hasFeedbackSource({ feedbackListen, feedbackHttpListen, sesQueue }: Settings): boolean {
  return feedbackListen !== null || feedbackHttpListen !== null || sesQueue !== null;
}

export async function readOverviewInput(
  store: OperatorStore,
  settings: Settings,
  service: RuntimeStatus | null,
  range: Range,
  now: number,
): Promise<OverviewInput> {
  const until = now + RATE_WINDOW_MS;
  const minutes = store.readTraffic(getRangeStart('1h', now), until, MINUTE_MS);
  const [steps, recent, queue, overviewData, nodes, lastFeedbackAt] = await Promise.all([
    range === '1h' ? minutes : store.readTraffic(getRangeStart(range, now), until, RANGES[range].stepMs),
    minutes,
    store.readQueueStatistics(),
    store.readOverviewData(now),
    store.listNodes(now),
    hasFeedbackSource(settings) ? store.findLastFeedbackAt() : null,
  ]);
  return { now, settings, status: service, steps, recent, queue, store: overviewData, nodes, lastFeedbackAt };
}
