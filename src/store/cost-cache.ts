/**
 * Caches a query whose cost grows with the queue (40 to 75 ms for 1,000,000 messages) for 20 times its duration, at
 * most 2 s. Then the stale result of a slow query is served during a refresh.
 */

const TTL_FACTOR = 20;
const MAX_TTL_MS = 2_000;
const SLOW_QUERY_MS = 20;
const MAX_STALE_MS = 5_000;

/** A failure rejects every caller that waits for it and is not cached. */
export function cacheByCost<T>(query: () => Promise<T>, now: () => number): () => Promise<T> {
  let cachedResult: { readonly answer: T; readonly storedAt: number; readonly tookMs: number } | null = null;
  let runningQuery: Promise<T> | null = null;

  async function refreshResult(): Promise<T> {
    const startedAt = now();
    try {
      const answer = await query();
      cachedResult = { answer, storedAt: now(), tookMs: now() - startedAt };
      return answer;
    } finally {
      runningQuery = null;
    }
  }

  return () => {
    const ageMs = cachedResult === null ? 0 : now() - cachedResult.storedAt;
    if (cachedResult !== null && ageMs < Math.min(MAX_TTL_MS, cachedResult.tookMs * TTL_FACTOR))
      return Promise.resolve(cachedResult.answer);
    runningQuery ??= refreshResult();
    if (cachedResult === null || cachedResult.tookMs < SLOW_QUERY_MS || ageMs > MAX_STALE_MS) return runningQuery;
    // The error is ignored here, because only callers that wait for this refresh are rejected.
    runningQuery.catch(() => undefined);
    return Promise.resolve(cachedResult.answer);
  };
}
