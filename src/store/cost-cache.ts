/**
 * A cache for a query whose cost grows with the queue. The TTL follows from the cost: a fast query runs on every call;
 * the answer of a slow one is reused for a short time and then served stale while it is refreshed.
 *
 * At 1,000,000 queued messages the queue figures take 40 ms on SQLite and 50 to 75 ms on PostgreSQL. A page with live
 * updates requests them twice per second.
 */

/** The TTL is this many times the query's duration, so that the query uses at most a twentieth of the time. */
const TIMES = 20;
const LONGEST_MS = 2_000;
/**
 * The answer of a query slower than this is served stale while it is refreshed, unless it is older than the second
 * value.
 */
const SLOW_MS = 20;
const STALE_MS = 5_000;

/** `now` is monotonic, in ms. A fault rejects every caller that waits for that query and is not cached. */
export function cacheByCost<T>(ask: () => Promise<T>, now: () => number): () => Promise<T> {
  let known: { readonly answer: T; readonly at: number; readonly tookMs: number } | null = null;
  let asking: Promise<T> | null = null;

  async function find(): Promise<T> {
    const began = now();
    try {
      const answer = await ask();
      known = { answer, at: now(), tookMs: now() - began };
      return answer;
    } finally {
      asking = null;
    }
  }

  return () => {
    const ageMs = known === null ? 0 : now() - known.at;
    if (known !== null && ageMs < Math.min(LONGEST_MS, known.tookMs * TIMES)) return Promise.resolve(known.answer);
    asking ??= find();
    if (known === null || known.tookMs < SLOW_MS || ageMs > STALE_MS) return asking;
    // A fault of this refresh reaches the next caller that waits.
    asking.catch(() => undefined);
    return Promise.resolve(known.answer);
  };
}
