/**
 * Publishes changed topics to the dashboard, at most twice per second. Changes of other processes are found by polling
 * the change feed. Without a subscriber, nothing is polled.
 */
import type { Clock } from '../clock.ts';
import type { ChangeFeedPosition } from '../model/attention.ts';
import type { Topic } from '../model/audit.ts';
import type { EventType, Handlers, ServiceEvent } from '../model/events.ts';
import type { AccessStore, OverviewStore } from '../store/contract.ts';
import type { Events } from './events.ts';

const MIN_PUBLISH_INTERVAL_MS = 500;
const POLL_INTERVAL_MS = 1_500;
/** If a poll reads this number of new audit log entries, it publishes all topics that operators can change. */
const MAX_AUDIT_ENTRIES = 50;

export type LiveUpdates = ReturnType<typeof createLiveUpdates>;

export interface LiveUpdateParts {
  readonly clock: Clock;
  readonly topics: readonly Topic[];
  /** The first result after a period without subscribers is ignored. */
  readonly readChanges: () => Promise<readonly Topic[]>;
  readonly events: Pick<Events, 'subscribe'>;
}

export function createLiveUpdates({ clock, topics: installedTopics, readChanges, events }: LiveUpdateParts) {
  const subscribers = new Set<(topics: readonly Topic[]) => void>();
  const pendingTopics = new Set<Topic>();
  let publishedAt = 0;
  let cancelPublishing: (() => void) | null = null;
  let cancelPoll: (() => void) | null = null;
  let unsubscribe: (() => void) | null = null;
  let isPolling = false;
  let isPollRequested = false;

  const pollAtOnce = () => {
    if (subscribers.size > 0) void poll(true);
  };
  return {
    publish,
    poll: pollAtOnce,
    subscribe(onChange: (topics: readonly Topic[]) => void): () => void {
      subscribers.add(onChange);
      unsubscribe ??= events.subscribe(createLiveUpdateHandlers(publish, pollAtOnce));
      // The first poll reads the current position in the change feed.
      if (subscribers.size === 1) void poll(false);
      return () => {
        subscribers.delete(onChange);
        if (subscribers.size === 0) pausePolling();
      };
    },
    stop(): void {
      subscribers.clear();
      pausePolling();
    },
  };

  function publish(...topics: readonly Topic[]): void {
    if (subscribers.size === 0) return;
    for (const topic of topics) if (installedTopics.includes(topic)) pendingTopics.add(topic);
    if (cancelPublishing !== null || pendingTopics.size === 0) return;
    const elapsedMs = clock.now() - publishedAt;
    // If the clock was set back, the wait is at most one interval.
    const waitMs = elapsedMs < 0 ? MIN_PUBLISH_INTERVAL_MS : Math.max(0, MIN_PUBLISH_INTERVAL_MS - elapsedMs);
    cancelPublishing = clock.after(waitMs, callSubscribers);
  }

  function callSubscribers(): void {
    cancelPublishing = null;
    publishedAt = clock.now();
    const topics = installedTopics.filter((topic) => pendingTopics.has(topic));
    pendingTopics.clear();
    for (const onChange of [...subscribers]) onChange(topics);
  }

  async function poll(publishesResult: boolean): Promise<void> {
    cancelPoll?.();
    cancelPoll = null;
    if (isPolling) {
      isPollRequested = true;
      return;
    }
    isPolling = true;
    try {
      const topics = await readChanges();
      if (publishesResult) publish(...topics);
    } catch {
      // The health check reports a store that does not answer. The next successful poll finds the same changes.
    }
    isPolling = false;
    if (subscribers.size === 0) return;
    if (isPollRequested) {
      isPollRequested = false;
      void poll(true);
    } else cancelPoll = clock.after(POLL_INTERVAL_MS, () => void poll(true));
  }

  function pausePolling(): void {
    unsubscribe?.();
    cancelPublishing?.();
    cancelPoll?.();
    unsubscribe = null;
    cancelPublishing = null;
    cancelPoll = null;
    isPollRequested = false;
    pendingTopics.clear();
  }
}

const EVENT_TOPICS: readonly (readonly [readonly Topic[], readonly EventType[]])[] = [
  [
    ['messages', 'overview'],
    ['message.accepted', 'message.suppressed', 'message.complained', 'message.expired', 'message.cancelled'],
  ],
  [
    ['messages', 'overview'],
    ['message.retried', 'message.confirmed', 'message.reported'],
  ],
  // An attempt may have captured the message or used a rule of the inbox.
  [
    ['messages', 'overview', 'inbox'],
    ['message.delivered', 'message.deferred', 'message.bounced', 'message.uncertain'],
  ],
  [['messages', 'overview', 'feedback'], ['report.not_understood']],
  [['accounts', 'overview'], ['account.changed']],
  [['domains', 'overview'], ['domain.changed']],
  [['webhooks'], ['webhook.attempt_succeeded', 'webhook.attempt_failed', 'webhook.delivery_failed']],
  [['webhooks', 'overview'], ['webhook.disabled']],
  [['overview'], ['store.files_lost', 'store.files_restored']],
  [['overview'], ['circuit_breaker.opened', 'circuit_breaker.half_opened', 'circuit_breaker.closed']],
];

function createLiveUpdateHandlers(publish: (...topics: readonly Topic[]) => void, poll: () => void): Handlers {
  const handlers = EVENT_TOPICS.flatMap(([topics, types]) => {
    const handle = (event: ServiceEvent) =>
      'suppresses' in event && event.suppresses ? publish(...topics, 'suppressions') : publish(...topics);
    return types.map((type) => [type, handle]);
  });
  return { ...Object.fromEntries(handlers), 'operator.changed': poll };
}

/** The topics that each kind of audit log entry changes. The key is the part of the action before the dot. */
const AUDIT_TOPICS: Readonly<Record<string, readonly Topic[]>> = {
  account: ['accounts', 'overview'],
  key: ['accounts', 'overview'],
  domain: ['domains', 'overview'],
  suppression: ['suppressions'],
  message: ['messages', 'overview'],
  token: ['tokens'],
  webhook: ['webhooks', 'overview'],
  hold: ['holds', 'overview'],
  route: ['routes', 'overview'],
  routing: ['routes', 'overview'],
  inbox: ['inbox'],
};
const ALL_AUDIT_TOPICS: readonly Topic[] = [...new Set(Object.values(AUDIT_TOPICS).flat())];

/** Resolves to the topics that any process has changed since the previous call. */
export function createChangeFeedReader(
  store: Pick<OverviewStore, 'readChangeFeedPosition'> & Pick<AccessStore, 'listAudit'>,
  now: () => number,
): () => Promise<readonly Topic[]> {
  let lastPosition: ChangeFeedPosition | null = null;
  return async () => {
    const position = await store.readChangeFeedPosition(now());
    const previousPosition = lastPosition ?? position;
    const topics: Topic[] = [];
    if (position.newestId !== previousPosition.newestId) topics.push('messages', 'overview');
    if (position.recentCounts !== previousPosition.recentCounts) topics.push('messages', 'overview', 'inbox');
    if (position.suppressingCounts !== previousPosition.suppressingCounts) topics.push('suppressions');
    if (position.newestAuditId !== previousPosition.newestAuditId) {
      const entries = (await store.listAudit(null, MAX_AUDIT_ENTRIES)).filter(
        ({ id }) => id > previousPosition.newestAuditId,
      );
      const changedTopics = entries.flatMap(
        ({ action }) => AUDIT_TOPICS[action.split('.')[0] ?? ''] ?? ALL_AUDIT_TOPICS,
      );
      topics.push('audit', ...(entries.length < MAX_AUDIT_ENTRIES ? changedTopics : ALL_AUDIT_TOPICS));
    }
    // The position is set after all reads, so that the next call returns the same changes if a read fails.
    lastPosition = position;
    return topics;
  };
}
