/**
 * The headers that tell a client about its limits: RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers
 * 10 and 11, structured fields) and Retry-After (RFC 9110 section 10.2.3). Whole seconds, rounded up, so that a client
 * that obeys them is never too early.
 */
import type { LimitsLeft } from '../model/account.ts';
import type { ThrottleAnswer, ThrottleLimit } from './throttle.ts';

export type Headers = Record<string, string | number>;

/** Milliseconds as whole seconds, at least 1. */
export function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** Adds the RateLimit headers for whichever limits are set; none for none. */
export function addLimits(
  headers: Headers,
  throttle: ThrottleLimit | null,
  taken: ThrottleAnswer | null,
  rate: LimitsLeft['rate'],
): void {
  let policy = '';
  let state = '';
  if (throttle !== null && taken !== null) {
    // `w` is the time an empty bucket takes to fill; `t` the time until the quota is whole, or the next token is there.
    policy = `"throttle";q=${Math.floor(throttle.burst)};w=${wholeSeconds((throttle.burst * 1000) / throttle.perSecond)}`;
    state = taken.ok
      ? `"throttle";r=${taken.left};t=${wholeSeconds(taken.resetMs)}`
      : `"throttle";r=0;t=${wholeSeconds(taken.retryAfterMs)}`;
  }
  if (rate !== null) {
    const comma = policy === '' ? '' : ', ';
    policy += `${comma}"rate";q=${rate.limit};w=${wholeSeconds(rate.periodMs)}`;
    state += `${comma}"rate";r=${Math.max(0, rate.left)};t=${wholeSeconds(rate.resetMs)}`;
  }
  if (policy === '') return;
  headers['RateLimit-Policy'] = policy;
  headers.RateLimit = state;
}
