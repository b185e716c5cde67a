/**
 * Live updates of the dashboard: publishes changed topics to subscribers, at most twice per second.
 *
 * Guarantees: while there is a subscriber, a change by this process is published within half a second. A change by
 * another process is published within two seconds, because the change feed of the store is polled. Without a
 * subscriber, there is no subscription to events and no poll, and changes are not published. A failed poll is repeated.
 */

import type { Clock } from '../clock.ts';
import type { ChangeFeedPosition } from '../model/overview.ts';
import type { Topic } from '../model/topic.ts';
import type { AccessStore, OverviewStore } from '../store/contract.ts';
import type { Events, Handlers } from './events.ts';

const MIN_INTERVAL_MS = 500;
const POLL_INTERVAL_MS = 1_500;
/**
 * Maximum number of audit log entries that one poll reads. If a poll finds more entries, it publishes all topics that
 * operators can change.
 */
const MAX_AUDIT_ENTRIES = 50;

export interface LiveUpdates {
  publish(...topics: readonly Topic[]): void;
  /** Polls the change feed at once. Called after an operator has made a change through this process. */
  poll(): void;
  /** Calls `onChange` with the changed topics after each change, until the caller calls the returned function. */
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
   * without subscribers is not published.
   */
  readonly changes: () => Promise<readonly Topic[]>;
  readonly events: Pick<Events, 'subscribe'>;
}

export function createLiveUpdates({ clock, topics: installedTopics, changes, events }: LiveUpdateParts): LiveUpdates {
  const subscribers = new Set<(topics: readonly Topic[]) => void>();
  const pending = new Set<Topic>();
  let publishedAt = 0;
  let cancelPublishing: (() => void) | null = null;
  let cancelPoll: (() => void) | null = null;
  let unsubscribe: (() => void) | null = null;
  let polling = false;
  let pollRequested = false;

  const updates: LiveUpdates = {
    publish,
    poll() {
      if (subscribers.size > 0) void poll(true);
    },
    subscribe(onChange) {
      subscribers.add(onChange);
      unsubscribe ??= events.subscribe(liveUpdateHandlers(updates));
      // The first poll reads the current position in the change feed.
      if (subscribers.size === 1) void poll(false);
      return () => {
        subscribers.delete(onChange);
        if (subscribers.size === 0) pause();
      };
    },
    stop() {
      subscribers.clear();
      pause();
    },
  };
  return updates;

  function publish(...topics: readonly Topic[]): void {
    if (subscribers.size === 0) return;
    for (const topic of topics) if (installedTopics.includes(topic)) pending.add(topic);
    if (cancelPublishing !== null || pending.size === 0) return;
    const sinceMs = clock.now() - publishedAt;
    // After the clock was set back, the wait is at most one interval.
    const waitMs = sinceMs < 0 ? MIN_INTERVAL_MS : Math.max(0, MIN_INTERVAL_MS - sinceMs);
    cancelPublishing = clock.after(waitMs, callSubscribers);
  }

  function callSubscribers(): void {
    cancelPublishing = null;
    publishedAt = clock.now();
    const topics = installedTopics.filter((topic) => pending.has(topic));
    pending.clear();
    for (const onChange of [...subscribers]) onChange(topics);
  }

  async function poll(publishesResult: boolean): Promise<void> {
    cancelPoll?.();
    cancelPoll = null;
    if (polling) {
      pollRequested = true;
      return;
    }
    polling = true;
    try {
      const topics = await changes();
      if (publishesResult) publish(...topics);
    } catch {
      // The health check reports a store that does not answer. The next poll finds the same changes.
    }
    polling = false;
    if (subscribers.size === 0) return;
    if (pollRequested) {
      pollRequested = false;
      void poll(true);
    } else cancelPoll = clock.after(POLL_INTERVAL_MS, () => void poll(true));
  }

  function pause(): void {
    unsubscribe?.();
    cancelPublishing?.();
    cancelPoll?.();
    unsubscribe = null;
    cancelPublishing = null;
    cancelPoll = null;
    pollRequested = false;
    pending.clear();
  }
}

/** Returns the event handlers, which publish the topics that each event changes. */
function liveUpdateHandlers(updates: Pick<LiveUpdates, 'publish' | 'poll'>): Handlers {
  const messages = () => updates.publish('messages', 'overview');
  const overview = () => updates.publish('overview');
  const settled = ({ suppresses }: { readonly suppresses: boolean }) => {
    messages();
    if (suppresses) updates.publish('suppressions');
  };
  return {
    'message.accepted': messages,
    'message.suppressed': messages,
    'message.delivered': (event) => {
      settled(event);
      updates.publish('inbox');
    },
    'message.deferred': settled,
    'message.bounced': settled,
    'message.complained': settled,
    'message.expired': settled,
    'message.uncertain': settled,
    'message.cancelled': messages,
    'message.retried': messages,
    'message.reported': settled,
    'report.not_understood': messages,
    'account.changed': () => updates.publish('accounts', 'overview'),
    'domain.changed': () => updates.publish('domains', 'overview'),
    'operator.changed': () => updates.poll(),
    'store.files_lost': overview,
    'store.files_restored': overview,
    'circuit_breaker.opened': overview,
    'circuit_breaker.half_opened': overview,
    'circuit_breaker.closed': overview,
  };
}

/** The topics that each kind of audit log entry changes. The key is the part of the action before the dot. */
const AUDIT_TOPICS: Readonly<Record<string, readonly Topic[]>> = {
  account: ['accounts', 'overview'],
  key: ['accounts', 'overview'],
  domain: ['domains', 'overview'],
  suppression: ['suppressions'],
  message: ['messages', 'overview'],
  token: [],
};
const ALL_AUDIT_TOPICS: readonly Topic[] = [...new Set(Object.values(AUDIT_TOPICS).flat())];

/**
 * Creates the function that reads the change feed of the store. Each call resolves to the topics that processes have
 * changed since the previous call. Rejects if the store does not answer; the next call then returns the same changes.
 */
export function createChangeFeedReader(
  store: Pick<OverviewStore, 'changeFeedPosition'> & Pick<AccessStore, 'listAudit'>,
  now: () => number,
): () => Promise<readonly Topic[]> {
  let last: ChangeFeedPosition | null = null;
  return async () => {
    const position = await store.changeFeedPosition(now());
    const before = last ?? position;
    const topics: Topic[] = [];
    if (position.newestId !== before.newestId) topics.push('messages', 'overview');
    if (position.recentCounts !== before.recentCounts) topics.push('messages', 'overview', 'inbox');
    if (position.suppressingCounts !== before.suppressingCounts) topics.push('suppressions');
    if (position.newestAuditId !== before.newestAuditId) {
      const entries = (await store.listAudit(null, MAX_AUDIT_ENTRIES)).filter(({ id }) => id > before.newestAuditId);
      const changed = entries.flatMap(({ action }) => AUDIT_TOPICS[action.split('.')[0] ?? ''] ?? ALL_AUDIT_TOPICS);
      topics.push('audit', ...(entries.length < MAX_AUDIT_ENTRIES ? changed : ALL_AUDIT_TOPICS));
    }
    // The position is set after all reads, so that the next call returns the same changes if a read fails.
    last = position;
    return topics;
  };
}
