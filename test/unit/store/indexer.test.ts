import { expect, onTestFinished, test } from 'vitest';
import { getMinIdAt } from '../../../src/store/rules/messages.ts';
import type { IndexStep } from '../../../src/store/search/indexer.ts';
import { startIndexer } from '../../../src/store/search/indexer.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const START = Date.UTC(2026, 0, 1);
const ROUND_INTERVAL_MS = 5_000;

function createRig({ isShared = false }: { isShared?: boolean } = {}) {
  const clock = createVirtualClock(START);
  const steps: IndexStep[] = [];
  const faults: unknown[] = [];
  const state = { newest: getMinIdAt(START) as string | null, waiting: 0, failing: false };
  const stop = startIndexer({
    clock,
    monotonic: clock.now,
    sharesStore: isShared,
    store: {
      findNewestId: async () => state.newest,
      async indexMessages(step) {
        steps.push(step);
        if (state.failing) throw new Error('the disk is full');
        const newerCount = state.waiting >= step.minMessages ? Math.min(state.waiting, 16_000) : 0;
        state.waiting -= newerCount;
        return { hasChanged: newerCount > 0, unindexedCount: state.waiting, indexedCount: newerCount };
      },
    },
    reportFailure: (operation, error) => faults.push([operation, error]),
  });
  onTestFinished(stop);
  return { clock, steps, faults, state };
}

test('messages are indexed up to the newest message of the previous round', async () => {
  const { clock, steps, state } = createRig();
  await clock.advance(ROUND_INTERVAL_MS - 1);
  expect(steps).toEqual([]);
  state.newest = getMinIdAt(START + 10);
  await clock.advance(ROUND_INTERVAL_MS);
  expect(steps.map(({ horizon }) => horizon)).toEqual([getMinIdAt(START)]);
  await clock.advance(ROUND_INTERVAL_MS);
  expect(steps.at(-1)?.horizon).toBe(getMinIdAt(START + 10));
});

test('an idle store is indexed completely, and no further step runs until a new message is accepted', async () => {
  const { clock, steps, state } = createRig();
  state.waiting = 40_000;
  await clock.advance(2 * ROUND_INTERVAL_MS);
  expect(state.waiting).toBe(0);
  const stepCount = steps.length;
  await clock.advance(4 * ROUND_INTERVAL_MS);
  expect(steps).toHaveLength(stepCount);
  state.newest = getMinIdAt(START + 1);
  await clock.advance(2 * ROUND_INTERVAL_MS);
  expect(steps.length).toBeGreaterThan(stepCount);
});
