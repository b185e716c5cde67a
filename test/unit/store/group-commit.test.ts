import { expect, test } from 'vitest';
import { createGroupCommit } from '../../../src/store/commits.ts';

function createPendingCommits() {
  const pendingCommits: { batch: readonly number[]; finish: () => void; fail: (error: Error) => void }[] = [];
  const commit = (batch: readonly number[]) =>
    new Promise<number[]>((resolve, reject) => {
      pendingCommits.push({ batch, finish: () => resolve(batch.map((n) => n * 10)), fail: reject });
    });
  return { pendingCommits, commit };
}

const now = () => 0;

test('items that arrive during commits share the next commit, and each item has its own result', async () => {
  const { pendingCommits, commit } = createPendingCommits();
  const groupCommit = createGroupCommit(commit, { maxBatch: 100, now });
  const firstSubmit = groupCommit.submit(1);
  await expect.poll(() => pendingCommits.length).toBe(1);
  const secondSubmit = groupCommit.submit(2);
  await expect.poll(() => pendingCommits.length).toBe(2);
  const remainingItems = [3, 4, 5].map((n) => groupCommit.submit(n));
  pendingCommits[0]?.finish();
  expect(await firstSubmit).toBe(10);
  await expect.poll(() => pendingCommits.length).toBe(3);
  expect(pendingCommits.map(({ batch }) => batch)).toEqual([[1], [2], [3, 4, 5]]);
  pendingCommits[1]?.finish();
  pendingCommits[2]?.finish();
  expect(await Promise.all([secondSubmit, ...remainingItems])).toEqual([20, 30, 40, 50]);
});

function createPoisonedCommits(isPoisoned: (item: number) => boolean) {
  const committedBatches: (readonly number[])[] = [];
  const commit = async (batch: readonly number[]) => {
    committedBatches.push(batch);
    if (batch.some(isPoisoned)) throw new Error('constraint failed');
    return batch.map((n) => n * 10);
  };
  return { committedBatches, groupCommit: createGroupCommit(commit, { maxBatch: 512, now }) };
}

test('only the item that cannot be committed is rejected, at any position in the batch, and few additional commits are needed', async () => {
  for (const badItem of [0, 100, 511]) {
    const { committedBatches, groupCommit } = createPoisonedCommits((item) => item === badItem);
    const results = await Promise.allSettled(Array.from({ length: 512 }, (_, index) => groupCommit.submit(index)));
    expect(results.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([badItem]);
    expect(results.every((result, n) => result.status === 'rejected' || result.value === n * 10)).toBe(true);
    expect(committedBatches.length).toBeLessThan(60);
  }
});

test('if every commit fails, the store is called less often than once per item', async () => {
  const { committedBatches, groupCommit } = createPoisonedCommits(() => true);
  const results = await Promise.allSettled(Array.from({ length: 512 }, (_, index) => groupCommit.submit(index)));
  expect(results.every(({ status }) => status === 'rejected')).toBe(true);
  expect(committedBatches.length).toBeLessThan(100);
});

test('a batch is never larger than the maximum, and items are committed in order', async () => {
  const { pendingCommits, commit } = createPendingCommits();
  const group = createGroupCommit(commit, { maxBatch: 2, now });
  const submissions = [1, 2, 3, 4, 5].map((n) => group.submit(n));
  for (let n = 0; n < 3; n += 1) {
    await expect.poll(() => pendingCommits.length).toBeGreaterThan(n);
    pendingCommits[n]?.finish();
  }
  await Promise.all(submissions);
  expect(pendingCommits.map(({ batch }) => batch)).toEqual([[1, 2], [3, 4], [5]]);
});
