/** Everything that an overview is made of, asked for at once; what only a running service knows is handed in, or absent. */
import type { Settings } from '../../config/settings.ts';
import type { NodeStanding } from '../../model/node.ts';
import type { OverviewFacts, QueueFigures } from '../../model/overview.ts';
import { MINUTE_MS, type TrafficStep } from '../../model/traffic.ts';
import type { Alarm, Failure } from '../../observability/standing.ts';
import type { Store } from '../../store/contract.ts';
import { beginningOf, RANGES, type Range } from './figures.ts';
import { RATE_MS } from './queue.ts';

/** What the service that is asked knows of itself. */
export interface ServiceStanding {
  readonly node: string;
  readonly version: string;
  /** Why the store cannot be written, or null. */
  readonly storeFault: string | null;
  /** What to do about it where the store says so itself, or null. */
  readonly storeRemedy?: string | null;
  /** Null where this process does not deliver. */
  readonly delivery: {
    readonly breaker: { readonly state: 'closed' | 'probing' | 'open'; readonly retryAt: number | null };
    readonly alarms: readonly Alarm[];
    /** The last attempt that failed for a reason which is not a message's own. */
    readonly lastFailure: Failure | null;
  } | null;
}

export interface Facts {
  readonly now: number;
  readonly settings: Settings;
  /** Null for a command beside the service. */
  readonly service: ServiceStanding | null;
  readonly steps: readonly TrafficStep[];
  /** By minutes, of the last hour. */
  readonly recent: readonly TrafficStep[];
  readonly queue: QueueFigures;
  readonly store: OverviewFacts;
  readonly nodes: readonly NodeStanding[];
  readonly lastFeedbackAt: number | null;
}

/** True where something listens for bounces and complaints. */
export function hasFeedback({ feedbackListen, feedbackHttpListen, sesQueue }: Settings): boolean {
  return feedbackListen !== null || feedbackHttpListen !== null || sesQueue !== null;
}

export async function gather(
  store: Store,
  settings: Settings,
  service: ServiceStanding | null,
  range: Range,
  now: number,
): Promise<Facts> {
  const until = now + RATE_MS;
  const minutes = store.traffic(beginningOf('1h', now), until, MINUTE_MS);
  const [steps, recent, queue, facts, nodes, lastFeedbackAt] = await Promise.all([
    range === '1h' ? minutes : store.traffic(beginningOf(range, now), until, RANGES[range].stepMs),
    minutes,
    store.queueFigures(),
    store.overviewFacts(now),
    store.listNodes(now),
    hasFeedback(settings) ? store.lastFeedbackAt() : null,
  ]);
  return { now, settings, service, steps, recent, queue, store: facts, nodes, lastFeedbackAt };
}
