/**
 * Creates a transport whose implementation can be replaced while the service runs, for example after a change of the
 * relay's password.
 *
 * Guarantees: an attempt ends on the implementation on which it began.
 */
import type { LocalAnswer, Transport } from './transport.ts';

export interface ReplaceableTransport extends Transport {
  /**
   * Replaces the implementation. Later attempts use `next`. The previous implementation is closed when its attempts
   * have ended, and at the latest after `timeoutMs`.
   */
  replace(next: Transport, timeoutMs: number): void;
}

export function createReplaceableTransport(initialTransport: Transport): ReplaceableTransport {
  let currentTransport = initialTransport;
  const closePromises = new Set<Promise<void>>();
  return {
    // The concurrency is read at each access, because some transports adapt their concurrency to the provider's rate
    // limit.
    get concurrency() {
      return currentTransport.concurrency;
    },
    attempt: (message, beforeCompletion) => currentTransport.attempt(message, beforeCompletion),
    answerLocally: (to): LocalAnswer | null => currentTransport.answerLocally?.(to) ?? null,
    replace(next, timeoutMs) {
      const closePromise = currentTransport.close(timeoutMs).finally(() => closePromises.delete(closePromise));
      closePromises.add(closePromise);
      currentTransport = next;
    },
    async close(timeoutMs) {
      await Promise.all([currentTransport.close(timeoutMs), ...closePromises]);
    },
  };
}
