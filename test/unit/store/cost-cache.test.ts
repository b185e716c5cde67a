import { expect, test } from 'vitest';
import { cacheByCost } from '../../../src/store/cost-cache.ts';

function createRig() {
  const time = { now: 0, tookMs: 0, fault: false };
  let queryCount = 0;
  const readFigures = cacheByCost(
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
  return { time, readFigures };
}

test('a fast query runs on every call', async () => {
  const { time, readFigures } = createRig();
  expect([await readFigures(), await readFigures()]).toEqual([1, 2]);
  time.now += 1;
  expect(await Promise.all([readFigures(), readFigures()])).toEqual([3, 3]);
});

test('the answer of a slow query is shared for a short time, and then served stale during a refresh until its maximum age', async () => {
  const { time, readFigures } = createRig();
  time.tookMs = 60;
  expect(await readFigures()).toBe(1);
  time.now += 1_100;
  expect(await readFigures()).toBe(1);
  time.now += 200;
  expect(await readFigures()).toBe(1);
  await expect.poll(readFigures).toBe(2);
  time.now += 6_000;
  expect(await readFigures()).toBe(3);
});

test('a failure of the query is reported and not cached', async () => {
  const { time, readFigures } = createRig();
  time.fault = true;
  await expect(readFigures()).rejects.toThrow('away');
  time.fault = false;
  expect(await readFigures()).toBe(2);
});
