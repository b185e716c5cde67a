/**
 * The bucket of tokens that the nodes of an installation share for one account. Pure. PostgreSQL takes tokens in one statement
 * (postgres/nodes.ts), so that no lock is held while a node computes; a test holds that statement equal to this file.
 */
import type { TokenRequest, TokensGranted } from '../../model/node.ts';

/** A bucket as it was left at `at` (ms since the epoch), under the limit that held then. */
export interface TokenBucket {
  readonly tokens: number;
  readonly perSecond: number;
  readonly burst: number;
  readonly at: number;
}

/** Tokens that binary fractions of a rate take away. */
const ROUNDING = 1e-9;

/**
 * Takes what there is of the tokens wanted. Time that has passed is paid at the rate that held then; a clock set back pays
 * nothing. A new bucket is full, and a full one stays full under a new limit; any other keeps its tokens as far as they fit.
 */
export function takeTokens(
  before: TokenBucket | null,
  { perSecond, burst, requested: wanted }: TokenRequest,
  now: number,
): { readonly bucket: TokenBucket; readonly answer: TokensGranted } {
  const level = before === null ? burst : levelOf(before, burst, now);
  const granted = Math.min(Math.floor(level + ROUNDING), wanted);
  const tokens = level - granted;
  const nextMs = tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * 1000) / perSecond);
  return {
    bucket: { tokens, perSecond, burst, at: now },
    answer: { granted, left: Math.floor(tokens + ROUNDING), nextMs },
  };
}

function levelOf(before: TokenBucket, burst: number, now: number): number {
  const paid = (Math.max(0, now - before.at) * before.perSecond) / 1000;
  const level = Math.min(before.burst, before.tokens + paid);
  return level >= before.burst ? burst : Math.min(level, burst);
}
