import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { type TokenBucket, takeTokens } from '../../src/store/rules/token-bucket.ts';
import { createVirtualClock } from '../rig/clock.ts';
import { selectCaseCount } from '../rig/sample.ts';
import { STORES } from '../rig/stores.ts';

const START = Date.UTC(2031, 0, 1);
const BUCKET_LIMITS = [
  { perSecond: 0.25, burst: 1 },
  { perSecond: 2, burst: 5 },
  { perSecond: 10, burst: 3 },
] as const;

const requestCase = fc.record({
  passedMs: fc.integer({ min: 0, max: 5_000 }),
  limit: fc.constantFrom(...BUCKET_LIMITS),
  requested: fc.integer({ min: 0, max: 6 }),
  accountId: fc.constantFrom(1, 2),
});

test.each(STORES)('the $name store grants tokens by the rules of the function `takeTokens`', async ({ open }) => {
  const clock = createVirtualClock(START);
  const store = await open({ environment: { clock, random: () => 0.5, isSimulated: true } });
  onTestFinished(() => store.close());
  const buckets = new Map<number, TokenBucket>();
  for (const { passedMs, limit, requested, accountId } of fc.sample(requestCase, {
    numRuns: selectCaseCount(100, 150),
    seed: 13,
  })) {
    await clock.advance(passedMs);
    const request = { accountId, ...limit, requested };
    const expected = takeTokens(buckets.get(accountId) ?? null, request, clock.now());
    buckets.set(accountId, expected.bucket);
    expect(await store.takeTokens([request], clock.now())).toEqual([expected.answer]);
  }
});
