/**
 * The health of a route on this node. The circuit breaker opens after three failures of the route in a row, or after a
 * minute without a success since the next hop began to throttle. Half-open allows one probe; each failed one doubles
 * the wait, less a random part of up to a quarter. Any other outcome closes it, and the traffic returns within a minute.
 */
import { BREAKER_EVENTS, type BreakerState, type PublishOf } from '../model/events.ts';
import type { Outcome } from '../model/outcome.ts';

/** A longer attempt is aborted. The timeouts of each transport are less in sum. */
export const MAX_ATTEMPT_MS = 10 * 60_000;
const MIN_FAILURES_TO_OPEN = 3;
const MIN_OPEN_MS = 10_000;
const MAX_OPEN_MS = 120_000;
/** A route that fails again within this time after its return is left for twice as long. */
const FLAP_WINDOW_MS = 600_000;
const MAX_FLAPS = 5;
const RETURN_MS = 60_000;
const MIN_RETURN_SHARE = 0.05;
const MIN_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 15_000;
const MAX_THROTTLED_MS = 60_000;

export interface CircuitBreaker {
  /** If not closed, true reserves the probe: record its outcome or release it. */
  allowsAttempt(now: number): boolean;
  /** `startedAt`: of the attempt. A failure of an attempt from before the last change of the state says nothing. */
  recordOutcome(outcome: Outcome, now: number, startedAt?: number): void;
  releaseProbe(now: number): void;
  /** Milliseconds since the epoch; null while closed. */
  getRetryAt(now: number): number | null;
  /** Of `maximum` attempts at the same time, how many the next hop takes: it halves at each throttling reply. */
  getConcurrency(maximum: number, now: number): number;
  /** The part of its messages that the route gets: less than 1 in the first minute after its return. */
  getShare(now: number): number;
}

export interface RouteHealth extends CircuitBreaker {
  readonly state: BreakerState;
  /** Null while closed. */
  readonly failingSince: number | null;
  readonly isThrottled: boolean;
  /** Opens a closed circuit breaker, because a probe of the route failed. */
  open(now: number): void;
  /** Allows a probe at once, because another next hop has replaced the failed one. */
  retryNow(now: number): void;
}

export function createRouteHealth({
  route,
  random,
  publish,
}: {
  readonly route: string;
  readonly random: () => number;
  readonly publish: PublishOf<(typeof BREAKER_EVENTS)[BreakerState]>;
}): RouteHealth {
  let state: BreakerState = 'closed';
  let failureCount = 0;
  let flapCount = 0;
  let nextOpenMs = MIN_OPEN_MS;
  let enteredAt = 0;
  /** When a probe may start; half-open, when another one may start if the current one does not end. */
  let waitEndsAt = 0;
  let failingSince: number | null = null;
  let returnedAt: number | null = null;
  let throttledSince: number | null = null;
  let throttlePauseMs = MIN_PAUSE_MS;
  let pausedUntil = 0;
  /** The failure that opened the circuit breaker: a throttled probe is then no success. */
  let isOpenByThrottling = false;
  let concurrencyLimit = Number.POSITIVE_INFINITY;

  // If the clock is set back, the circuit breaker must not stay open for longer than the wait.
  const getRetryAt = (now: number): number | null => (state === 'closed' ? null : now < enteredAt ? now : waitEndsAt);

  function enterState(nextState: BreakerState, now: number, durationMs: number): void {
    state = nextState;
    enteredAt = now;
    waitEndsAt = now + durationMs;
    publish({ type: BREAKER_EVENTS[state], at: now, route, retryAt: getRetryAt(now) });
  }

  function openBreaker(now: number): void {
    if (state === 'closed') {
      const isFlapping = returnedAt !== null && now - returnedAt < FLAP_WINDOW_MS;
      flapCount = isFlapping ? Math.min(flapCount + 1, MAX_FLAPS) : 0;
      nextOpenMs = MIN_OPEN_MS * 2 ** flapCount;
      failingSince = now;
      isOpenByThrottling = throttledSince !== null && now - throttledSince >= MAX_THROTTLED_MS;
    }
    failureCount = 0;
    endThrottling();
    const durationMs = Math.round(nextOpenMs * (1 - random() * 0.25));
    nextOpenMs = Math.max(nextOpenMs, Math.min(nextOpenMs * 2, MAX_OPEN_MS));
    enterState('open', now, durationMs);
  }

  function closeBreaker(now: number): void {
    failingSince = null;
    returnedAt = now;
    enterState('closed', now, 0);
  }

  function recordThrottling(now: number): void {
    throttledSince ??= now;
    if (now - throttledSince >= MAX_THROTTLED_MS) {
      openBreaker(now);
      return;
    }
    if (now < pausedUntil) return;
    pausedUntil = now + throttlePauseMs;
    throttlePauseMs = Math.min(throttlePauseMs * 2, MAX_PAUSE_MS);
    concurrencyLimit = Math.max(1, Math.floor(concurrencyLimit / 2));
  }

  function endThrottling(): void {
    throttledSince = null;
    throttlePauseMs = MIN_PAUSE_MS;
    pausedUntil = 0;
  }

  return {
    get state() {
      return state;
    },
    get failingSince() {
      return failingSince;
    },
    get isThrottled() {
      return throttledSince !== null;
    },
    getRetryAt,

    getConcurrency(maximum, now) {
      concurrencyLimit = Math.min(concurrencyLimit, maximum);
      return now < pausedUntil && pausedUntil - now <= MAX_PAUSE_MS ? 0 : concurrencyLimit;
    },

    getShare(now) {
      if (returnedAt === null || now < returnedAt) return 1;
      return Math.min(1, MIN_RETURN_SHARE + (now - returnedAt) / RETURN_MS);
    },

    allowsAttempt(now) {
      if (state === 'closed') return true;
      if (now < waitEndsAt && now >= enteredAt) return false;
      enterState('half-open', now, MAX_ATTEMPT_MS);
      return true;
    },

    recordOutcome(outcome, now, startedAt = now) {
      const isStale = startedAt < enteredAt && now >= enteredAt;
      if (isThrottling(outcome)) {
        if (state === 'open' || (state === 'half-open' && isStale)) return;
        if (state === 'half-open' && isOpenByThrottling) return openBreaker(now);
        if (state === 'half-open') closeBreaker(now);
        recordThrottling(now);
        return;
      }
      if (!isRouteFailure(outcome)) {
        failureCount = 0;
        concurrencyLimit += 1;
        endThrottling();
        if (state !== 'closed') closeBreaker(now);
        return;
      }
      if (isStale || state === 'open') return;
      failureCount += 1;
      // After its return, one failure is enough: the outage goes on.
      const isReturning = returnedAt !== null && now >= returnedAt && now - returnedAt < RETURN_MS;
      if (state === 'half-open' || isReturning || failureCount >= MIN_FAILURES_TO_OPEN) openBreaker(now);
    },

    releaseProbe(now) {
      if (state === 'half-open') enterState('open', now, 0);
    },

    open(now) {
      if (state === 'closed') openBreaker(now);
    },

    retryNow(now) {
      endThrottling();
      failureCount = 0;
      nextOpenMs = MIN_OPEN_MS;
      concurrencyLimit = Number.POSITIVE_INFINITY;
      if (state === 'closed') enteredAt = now;
      else enterState('open', now, 0);
    },
  };
}

/** Back-pressure: the next hop takes messages, and takes them later. */
export function isThrottling(outcome: Outcome): boolean {
  return outcome.kind === 'deferred' && outcome.scope === 'route' && outcome.reason === 'throttled';
}

/** `unanswered`: a next hop that fails after each complete message may cause a duplicate with every retry. */
export function isRouteFailure(outcome: Outcome): boolean {
  return (
    outcome.kind === 'unanswered' ||
    (outcome.kind === 'deferred' && outcome.scope === 'route' && outcome.reason !== 'throttled')
  );
}
