/**
 * Publishes changed topics to the subscribers of the dashboard's live updates, at most twice per second.
 *
 * Guarantees: while there is a subscriber, a change by this process is published within half a second. A change by
 * another process is published within two seconds, because the change feed of the store is polled. Without a
 * subscriber, this module neither subscribes to events nor polls the store. A failed poll is repeated.
 */

import type { Clock } from '../clock.ts';
import type { Handlers } from '../model/events.ts';
import type { ChangeFeedPosition } from '../model/overview.ts';
import type { Topic } from '../model/topic.ts';
import type { AccessStore, OverviewStore } from '../store/contract.ts';
import type { Events } from './events.ts';

const MIN_PUBLISH_INTERVAL_MS = 500;
const POLL_INTERVAL_MS = 1_500;
/**
 * The maximum number of audit log entries that one poll reads. If a poll reads this number of new entries, it publishes
 * all topics that operators can change.
 */
const MAX_AUDIT_ENTRIES = 50;

export interface LiveUpdates {
  /** Publishes topics to the subscribers. Does nothing without a subscriber. */
  publish(...topics: readonly Topic[]): void;
  /** Polls the change feed at once. Called after an operator has made a change through this process. */
  poll(): void;
  /** Calls `onChange` with the changed topics after each change. The returned function ends the subscription. */
  subscribe(onChange: (topics: readonly Topic[]) => void): () => void;
  /** Removes all subscribers. */
  stop(): void;
}

export interface LiveUpdateParts {
  readonly clock: Clock;
  /** The topics that exist in this installation. Other topics are not published. */
  readonly topics: readonly Topic[];
  /**
   * Resolves to the topics that have changed in the store since the previous call. The first result after a period
   * without subscribers is ignored.
   */
  readonly readChanges: () => Promise<readonly Topic[]>;
  readonly events: Pick<Events, 'subscribe'>;
}

/** Creates live updates without a subscriber. */
export function createLiveUpdates({
  clock,
  topics: installedTopics,
  readChanges,
  events,
}: LiveUpdateParts): LiveUpdates {
  const subscribers = new Set<(topics: readonly Topic[]) => void>();
  const pendingTopics = new Set<Topic>();
  let publishedAt = 0;
  let cancelPublishing: (() => void) | null = null;
  let cancelPoll: (() => void) | null = null;
  let unsubscribe: (() => void) | null = null;
  let isPolling = false;
  let isPollRequested = false;

  const updates: LiveUpdates = {
    publish,
    poll() {
      if (subscribers.size > 0) void poll(true);
    },
    subscribe(onChange) {
      subscribers.add(onChange);
      unsubscribe ??= events.subscribe(createLiveUpdateHandlers(updates));
      // The first poll reads the current position in the change feed.
      if (subscribers.size === 1) void poll(false);
      return () => {
        subscribers.delete(onChange);
        if (subscribers.size === 0) pausePolling();
      };
    },
    stop() {
      subscribers.clear();
      pausePolling();
    },
  };
  return updates;

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

/** Returns the event handlers. The handler of an event publishes the topics that the event changes. */
function createLiveUpdateHandlers(updates: Pick<LiveUpdates, 'publish' | 'poll'>): Handlers {
  const publishMessages = () => updates.publish('messages', 'overview');
  const publishWebhooks = () => updates.publish('webhooks');
  const publishOverview = () => updates.publish('overview');
  const publishSettlement = ({ suppresses }: { readonly suppresses: boolean }) => {
    publishMessages();
    if (suppresses) updates.publish('suppressions');
  };
  // The attempt may have captured the message or used a rule of the inbox.
  const publishAttempt = (event: { readonly suppresses: boolean }) => {
    publishSettlement(event);
    updates.publish('inbox');
  };
  return {
    'message.accepted': publishMessages,
    'message.suppressed': publishMessages,
    'message.delivered': publishAttempt,
    'message.deferred': publishAttempt,
    'message.bounced': publishAttempt,
    'message.complained': publishSettlement,
    'message.expired': publishSettlement,
    'message.uncertain': publishAttempt,
    'message.cancelled': publishMessages,
    'message.retried': publishMessages,
    'message.confirmed': publishMessages,
    'message.reported': publishSettlement,
    'report.not_understood': () => updates.publish('messages', 'overview', 'feedback'),
    'account.changed': () => updates.publish('accounts', 'overview'),
    'domain.changed': () => updates.publish('domains', 'overview'),
    'operator.changed': () => updates.poll(),
    'webhook.attempt_succeeded': publishWebhooks,
    'webhook.attempt_failed': publishWebhooks,
    'webhook.delivery_failed': publishWebhooks,
    'webhook.disabled': () => updates.publish('webhooks', 'overview'),
    'store.files_lost': publishOverview,
    'store.files_restored': publishOverview,
    'circuit_breaker.opened': publishOverview,
    'circuit_breaker.half_opened': publishOverview,
    'circuit_breaker.closed': publishOverview,
  };
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
  inbox: ['inbox'],
};
const ALL_AUDIT_TOPICS: readonly Topic[] = [...new Set(Object.values(AUDIT_TOPICS).flat())];

/**
 * Creates the function that reads the change feed of the store. Each call resolves to the topics that any process has
 * changed since the previous call. A call rejects if the store does not answer, and the next call then returns the same
 * changes.
 */
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
