/**
 * Implements the token bucket that all nodes share for one account. The functions have no side effects. PostgreSQL
 * applies the same rules in one statement (token-buckets.ts), so that a node holds no lock during a round trip. A test
 * compares the results of that statement with those of this file.
 */
import type { TokenGrant, TokenRequest } from '../../model/node.ts';

/** The state of a bucket at the time `at` (ms since the epoch), with the limit that applied at that time. */
export interface TokenBucket {
  readonly tokens: number;
  readonly perSecond: number;
  readonly burst: number;
  readonly at: number;
}

/** The tolerance for rounding errors of rates without an exact binary representation. */
const ROUNDING_TOLERANCE = 1e-9;

/**
 * Takes up to the requested number of tokens. The bucket is first refilled for the time since `at`, at the old rate. If
 * the clock was set back, the bucket is not refilled. A new bucket is full. After a change of the limit, a full bucket
 * remains full under the new limit, and any other bucket keeps its tokens up to the new burst.
 */
export function takeTokens(
  before: TokenBucket | null,
  { perSecond, burst, requested }: TokenRequest,
  now: number,
): { readonly bucket: TokenBucket; readonly answer: TokenGrant } {
  const level = before === null ? burst : getRefilledLevel(before, burst, now);
  const grantedTokens = Math.min(Math.floor(level + ROUNDING_TOLERANCE), requested);
  const tokens = level - grantedTokens;
  const nextTokenMs = tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * 1000) / perSecond);
  return {
    bucket: { tokens, perSecond, burst, at: now },
    answer: { granted: grantedTokens, remaining: Math.floor(tokens + ROUNDING_TOLERANCE), nextTokenMs },
  };
}

function getRefilledLevel(before: TokenBucket, burst: number, now: number): number {
  const addedTokens = (Math.max(0, now - before.at) * before.perSecond) / 1000;
  const level = Math.min(before.burst, before.tokens + addedTokens);
  return level >= before.burst ? burst : Math.min(level, burst);
}
