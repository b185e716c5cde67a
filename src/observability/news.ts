/**
 * Tells whoever looks on which topics have changed, twice a second at most. While nobody looks on it costs a look at an empty
 * set and nothing else; while somebody does, the store is looked at now and then for what other processes have done.
 */

import type { Clock } from '../clock.ts';
import type { Topic } from '../model/topic.ts';
import type { Handlers } from './events.ts';

const LEAST_GAP_MS = 500;
const LOOK_EVERY_MS = 1_500;

export interface News {
  tell(...topics: readonly Topic[]): void;
  /** Looks at the store soon: somebody here has changed something. */
  look(): void;
  /** Calls back with what has changed until the returned function is called. */
  listen(heard: (topics: readonly Topic[]) => void): () => void;
  /** Tells nobody anything any more. */
  stop(): void;
}

export interface NewsParts {
  readonly clock: Clock;
  /** Those that there is something of in this installation; others are not told. */
  readonly topics: readonly Topic[];
  /** What has changed in the store since it was last asked; the first answer after a pause is not told. */
  readonly changes: () => Promise<readonly Topic[]>;
}

export function createNews({ clock, topics: known, changes }: NewsParts): News {
  const listeners = new Set<(topics: readonly Topic[]) => void>();
  const pending = new Set<Topic>();
  let toldAt = 0;
  let cancelTelling: (() => void) | null = null;
  let cancelLook: (() => void) | null = null;
  let looking = false;
  let again = false;

  function tell(...topics: readonly Topic[]): void {
    if (listeners.size === 0) return;
    for (const topic of topics) if (known.includes(topic)) pending.add(topic);
    if (cancelTelling !== null || pending.size === 0) return;
    const sinceMs = clock.now() - toldAt;
    cancelTelling = clock.after(sinceMs < 0 ? LEAST_GAP_MS : Math.max(0, LEAST_GAP_MS - sinceMs), broadcast);
  }

  function broadcast(): void {
    cancelTelling = null;
    toldAt = clock.now();
    const topics = known.filter((topic) => pending.has(topic));
    pending.clear();
    for (const heard of [...listeners]) heard(topics);
  }

  async function lookNow(told: boolean): Promise<void> {
    cancelLook?.();
    cancelLook = null;
    if (looking) {
      again = true;
      return;
    }
    looking = true;
    try {
      const topics = await changes();
      if (told) tell(...topics);
    } catch {
      // A store that is away says so elsewhere; the next look finds what was missed.
    }
    looking = false;
    if (listeners.size === 0) return;
    if (again) {
      again = false;
      void lookNow(true);
    } else cancelLook = clock.after(LOOK_EVERY_MS, () => void lookNow(true));
  }

  function rest(): void {
    cancelTelling?.();
    cancelLook?.();
    cancelTelling = null;
    cancelLook = null;
    again = false;
    pending.clear();
  }

  return {
    tell,
    look() {
      if (listeners.size > 0) void lookNow(true);
    },
    listen(heard) {
      listeners.add(heard);
      // The first look only learns how things are.
      if (listeners.size === 1) void lookNow(false);
      return () => {
        listeners.delete(heard);
        if (listeners.size === 0) rest();
      };
    },
    stop() {
      listeners.clear();
      rest();
    },
  };
}

/** The live updates as a subscriber: the topics of each event. */
export function newsHandlers(news: News): Handlers {
  const moved = () => news.tell('messages', 'overview');
  const ended = ({ suppresses }: { readonly suppresses: boolean }) => {
    moved();
    if (suppresses) news.tell('suppressions');
  };
  const overview = () => news.tell('overview');
  return {
    'message.accepted': moved,
    'message.suppressed': moved,
    'message.delivered': (event) => {
      ended(event);
      news.tell('inbox');
    },
    'message.deferred': ended,
    'message.bounced': ended,
    'message.complained': ended,
    'message.expired': ended,
    'message.uncertain': ended,
    'message.cancelled': moved,
    'message.retried': moved,
    'message.reported': ended,
    'report.kept': moved,
    'account.changed': () => news.tell('accounts', 'overview'),
    'domain.changed': () => news.tell('domains', 'overview'),
    'operator.changed': () => news.look(),
    'store.files-lost': overview,
    'store.files-back': overview,
    'breaker.changed': overview,
  };
}
