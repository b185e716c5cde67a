/**
 * Creates a transport whose implementation can be replaced while the service runs, for example after a change of the relay's
 * password.
 *
 * Guarantees: an attempt ends on the implementation on which it began.
 */
import type { LocalAnswer, Transport } from './transport.ts';

export interface ReplaceableTransport extends Transport {
  /**
   * Replaces the implementation. Later attempts use `next`. The previous implementation is closed when its attempts have ended,
   * at most `timeoutMs` later.
   */
  replace(next: Transport, timeoutMs: number): void;
}

export function createReplaceableTransport(initialTransport: Transport): ReplaceableTransport {
  let current = initialTransport;
  const closing = new Set<Promise<void>>();
  return {
    // The value is read each time, because some transports adapt to the provider's rate limit.
    get concurrency() {
      return current.concurrency;
    },
    attempt: (message, beforeCompletion) => current.attempt(message, beforeCompletion),
    answerLocally: (to): LocalAnswer | null => current.answerLocally?.(to) ?? null,
    replace(next, timeoutMs) {
      const closed = current.close(timeoutMs).finally(() => closing.delete(closed));
      closing.add(closed);
      current = next;
    },
    async close(timeoutMs) {
      await Promise.all([current.close(timeoutMs), ...closing]);
    },
  };
}
