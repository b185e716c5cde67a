/**
 * The token bucket that all nodes share for one account. Pure. PostgreSQL applies the same rules in one statement
 * (postgres/nodes.ts), so that a node holds no lock while it computes; a test compares that statement with this file.
 */
import type { TokenRequest, TokensGranted } from '../../model/node.ts';

/** A bucket as it was left at `at` (ms since the epoch), under the limit of that time. */
export interface TokenBucket {
  readonly tokens: number;
  readonly perSecond: number;
  readonly burst: number;
  readonly at: number;
}

/** Compensates the rounding of rates that have no exact binary form. */
const ROUNDING_TOLERANCE = 1e-9;

/**
 * Takes up to the requested number of tokens. The time since `at` refills the bucket at the old rate; a clock set back
 * refills nothing. A new bucket is full. After a change of the limit, a full bucket is full under the new limit; any
 * other keeps its tokens up to the new burst.
 */
export function takeTokens(
  before: TokenBucket | null,
  { perSecond, burst, requested }: TokenRequest,
  now: number,
): { readonly bucket: TokenBucket; readonly answer: TokensGranted } {
  const level = before === null ? burst : refilledLevel(before, burst, now);
  const granted = Math.min(Math.floor(level + ROUNDING_TOLERANCE), requested);
  const tokens = level - granted;
  const nextMs = tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * 1000) / perSecond);
  return {
    bucket: { tokens, perSecond, burst, at: now },
    answer: { granted, remaining: Math.floor(tokens + ROUNDING_TOLERANCE), nextTokenMs: nextMs },
  };
}

function refilledLevel(before: TokenBucket, burst: number, now: number): number {
  const refill = (Math.max(0, now - before.at) * before.perSecond) / 1000;
  const level = Math.min(before.burst, before.tokens + refill);
  return level >= before.burst ? burst : Math.min(level, burst);
}
