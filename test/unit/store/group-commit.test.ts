import { expect, test } from 'vitest';
import { groupCommit } from '../../../src/store/group-commit.ts';

/** A commit that a test lets finish. */
function heldCommits() {
  const held: { batch: readonly number[]; finish: () => void; fail: (error: Error) => void }[] = [];
  const commit = (batch: readonly number[]) =>
    new Promise<number[]>((resolve, reject) => {
      held.push({ batch, finish: () => resolve(batch.map((n) => n * 10)), fail: reject });
    });
  return { held, commit };
}

const now = () => 0;

test('what arrives while commits run shares the next one, and each gets its own answer', async () => {
  const { held, commit } = heldCommits();
  const group = groupCommit(commit, { maxBatch: 100, now });
  const first = group.submit(1);
  await expect.poll(() => held.length).toBe(1);
  const second = group.submit(2);
  await expect.poll(() => held.length).toBe(2);
  const rest = [3, 4, 5].map((n) => group.submit(n));
  expect(group.waiting).toBe(5);
  held[0]?.finish();
  expect(await first).toBe(10);
  await expect.poll(() => held.length).toBe(3);
  expect(held.map(({ batch }) => batch)).toEqual([[1], [2], [3, 4, 5]]);
  held[1]?.finish();
  held[2]?.finish();
  expect(await Promise.all([second, ...rest])).toEqual([20, 30, 40, 50]);
  expect(group.waiting).toBe(0);
});

test('a failed commit rejects everything in it and nothing else', async () => {
  const { held, commit } = heldCommits();
  const group = groupCommit(commit, { maxBatch: 100, now });
  const lost = [1, 2].map((n) => group.submit(n));
  await expect.poll(() => held.length).toBe(1);
  const kept = group.submit(3);
  await expect.poll(() => held.length).toBe(2);
  held[0]?.fail(new Error('disk full'));
  held[1]?.finish();
  const settled = await Promise.allSettled([...lost, kept]);
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
});

test('a batch is never larger than its bound, and the order is kept', async () => {
  const { held, commit } = heldCommits();
  const group = groupCommit(commit, { maxBatch: 2, now });
  const all = [1, 2, 3, 4, 5].map((n) => group.submit(n));
  for (let n = 0; n < 3; n += 1) {
    await expect.poll(() => held.length).toBeGreaterThan(n);
    held[n]?.finish();
  }
  await Promise.all(all);
  expect(held.map(({ batch }) => batch)).toEqual([[1, 2], [3, 4], [5]]);
});

test('an answer missing from the store rejects instead of acknowledging', async () => {
  const group = groupCommit<number, number>(async () => [], { maxBatch: 2, now });
  await expect(group.submit(1)).rejects.toThrow('no answer');
});

test('it tells how long the oldest has waited', async () => {
  let at = 0;
  const { held, commit } = heldCommits();
  const group = groupCommit(commit, { maxBatch: 1, now: () => at });
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
