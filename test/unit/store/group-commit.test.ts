import { expect, test } from 'vitest';
import { createGroupCommit } from '../../../src/store/commits.ts';

/** Returns a commit function whose calls end when the test finishes or fails them. */
function heldCommits() {
  const held: { batch: readonly number[]; finish: () => void; fail: (error: Error) => void }[] = [];
  const commit = (batch: readonly number[]) =>
    new Promise<number[]>((resolve, reject) => {
      held.push({ batch, finish: () => resolve(batch.map((n) => n * 10)), fail: reject });
    });
  return { held, commit };
}

const now = () => 0;

test('items that arrive during commits share the next commit, and each item has its own result', async () => {
  const { held, commit } = heldCommits();
  const group = createGroupCommit(commit, { maxBatch: 100, now });
  const first = group.submit(1);
  await expect.poll(() => held.length).toBe(1);
  const second = group.submit(2);
  await expect.poll(() => held.length).toBe(2);
  const rest = [3, 4, 5].map((n) => group.submit(n));
  held[0]?.finish();
  expect(await first).toBe(10);
  await expect.poll(() => held.length).toBe(3);
  expect(held.map(({ batch }) => batch)).toEqual([[1], [2], [3, 4, 5]]);
  held[1]?.finish();
  held[2]?.finish();
  expect(await Promise.all([second, ...rest])).toEqual([20, 30, 40, 50]);
});

test('a failed commit rejects only its own items', async () => {
  const { held, commit } = heldCommits();
  const group = createGroupCommit(commit, { maxBatch: 100, now });
  const lost = [1, 2].map((n) => group.submit(n));
  await expect.poll(() => held.length).toBe(1);
  const kept = group.submit(3);
  await expect.poll(() => held.length).toBe(2);
  held[0]?.fail(new Error('disk full'));
  held[1]?.finish();
  for (const part of [2, 3]) {
    await expect.poll(() => held.length).toBeGreaterThan(part);
    held[part]?.fail(new Error('disk full'));
  }
  const settled = await Promise.allSettled([...lost, kept]);
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
});

/** Returns a commit function that rejects every batch that contains an item of `poisoned` and records the batches. */
function poisonedCommits(poisoned: (item: number) => boolean) {
  const asked: (readonly number[])[] = [];
  const commit = async (batch: readonly number[]) => {
    asked.push(batch);
    if (batch.some(poisoned)) throw new Error('constraint failed');
    return batch.map((n) => n * 10);
  };
  return { asked, group: createGroupCommit(commit, { maxBatch: 512, now }) };
}

test('an item that cannot be committed is rejected alone, at any position, with a few additional commits', async () => {
  for (const bad of [0, 100, 511]) {
    const { asked, group } = poisonedCommits((item) => item === bad);
    const all = await Promise.allSettled(Array.from({ length: 512 }, (_, n) => group.submit(n)));
    expect(all.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([bad]);
    expect(all.every((one, n) => one.status === 'rejected' || one.value === n * 10)).toBe(true);
    expect(asked.length).toBeLessThan(60);
  }
});

test('several items that cannot be committed are rejected alone', async () => {
  const { group } = poisonedCommits((item) => [3, 4, 77].includes(item));
  const all = await Promise.allSettled(Array.from({ length: 100 }, (_, n) => group.submit(n)));
  expect(all.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([3, 4, 77]);
});

test('if every commit fails, the store is not called once per item', async () => {
  const { asked, group } = poisonedCommits(() => true);
  const all = await Promise.allSettled(Array.from({ length: 512 }, (_, n) => group.submit(n)));
  expect(all.every(({ status }) => status === 'rejected')).toBe(true);
  expect(asked.length).toBeLessThan(100);
});

test('a batch is never larger than its maximum, and the order is kept', async () => {
  const { held, commit } = heldCommits();
  const group = createGroupCommit(commit, { maxBatch: 2, now });
  const all = [1, 2, 3, 4, 5].map((n) => group.submit(n));
  for (let n = 0; n < 3; n += 1) {
    await expect.poll(() => held.length).toBeGreaterThan(n);
    held[n]?.finish();
  }
  await Promise.all(all);
  expect(held.map(({ batch }) => batch)).toEqual([[1, 2], [3, 4], [5]]);
});

test('an item without a result from the store is rejected', async () => {
  const group = createGroupCommit<number, number>(async () => [], { maxBatch: 2, now });
  await expect(group.submit(1)).rejects.toThrow('no result');
});

test('the waiting time of the oldest item is reported', async () => {
  let at = 0;
  const { held, commit } = heldCommits();
  const group = createGroupCommit(commit, { maxBatch: 1, now: () => at });
  const all = [1, 2, 3].map((n) => group.submit(n));
  await expect.poll(() => held.length).toBe(2);
  at = 40;
  expect(group.oldestWaitMs()).toBe(40);
  for (const { finish } of held) finish();
  await expect.poll(() => held.length).toBe(3);
  held[2]?.finish();
  await Promise.all(all);
  expect(group.oldestWaitMs()).toBe(0);
});
