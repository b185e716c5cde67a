import { expect, test } from 'vitest';
import { cacheByCost } from '../../../src/store/cost-cache.ts';

/** Creates a cache. The result of each query is its sequence number. `tookMs` is the duration of a query. */
function createRig() {
  const time = { now: 0, tookMs: 0, fault: false };
  let queryCount = 0;
  const figures = cacheByCost(
    async () => {
      queryCount += 1;
      const answer = queryCount;
      await Promise.resolve();
      time.now += time.tookMs;
      if (time.fault) throw new Error('away');
      return answer;
    },
    () => time.now,
  );
  return { time, figures };
}

test('a fast query runs on every call', async () => {
  const { time, figures } = createRig();
  expect([await figures(), await figures()]).toEqual([1, 2]);
  time.now += 1;
  expect(await Promise.all([figures(), figures()])).toEqual([3, 3]);
});

test('the answer of a slow query is shared for a short time, and then served stale during a refresh until its maximum age', async () => {
  const { time, figures } = createRig();
  time.tookMs = 60;
  expect(await figures()).toBe(1);
  time.now += 1_100;
  expect(await figures()).toBe(1);
  time.now += 200;
  expect(await figures()).toBe(1);
  await expect.poll(figures).toBe(2);
  time.now += 6_000;
  expect(await figures()).toBe(3);
});

test('a failure of the query is reported and not cached', async () => {
  const { time, figures } = createRig();
  time.fault = true;
  await expect(figures()).rejects.toThrow('away');
  time.fault = false;
  expect(await figures()).toBe(2);
});
