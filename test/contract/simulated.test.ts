import { describe, expect, test } from 'vitest';
import { createMessageIdGenerator } from '../../src/model/submission.ts';
import type { StoreEnvironment } from '../../src/store/environment.ts';
import { createVirtualClock } from '../rig/clock.ts';
import { createMessage, createSettlement, NO_LIMITS } from '../rig/messages.ts';
import { createSeededRandom } from '../rig/random.ts';
import { STORES } from '../rig/stores.ts';

const START = Date.UTC(2031, 4, 5, 6, 7, 8);
const NODE = { name: 'node-a', roles: ['api', 'deliver'], version: '1.0.0' };

describe.each(STORES)('the $name store in the caller’s thread', ({ open }) => {
  async function runSeed(seed: number): Promise<readonly unknown[]> {
    const clock = createVirtualClock(START);
    const random = createSeededRandom(seed);
    const environment: StoreEnvironment = { clock, random, isSimulated: true };
    const store = await open({ environment });
    const results: unknown[] = [];
    const record = async (answer: Promise<unknown>) => results.push(await answer);
    const createUuid = () =>
      `00000000-0000-4000-8000-${Math.floor(random() * 2 ** 48)
        .toString(16)
        .padStart(12, '0')}`;
    const ids = createMessageIdGenerator(null, createUuid);
    await record(store.createAccount('default', { ...NO_LIMITS, rate: { limit: 30, periodMs: 60_000 } }, clock.now()));
    await record(store.createAccount('other', NO_LIMITS, clock.now()));
    await record(store.updateRunningTime(0, clock.now()));
    const acceptedIds: string[] = [];
    for (let round = 0; round < 12; round += 1) {
      const now = clock.now();
      await record(store.recordHeartbeat(NODE, 15_000, now));
      await record(store.takeTokens([{ accountId: 1, perSecond: 2, burst: 5, requested: 3 }], now));
      const batch = Array.from({ length: 1 + Math.floor(random() * 6) }, () =>
        createMessage({
          id: ids.next(now),
          acceptedAt: now,
          accountId: random() < 0.5 ? 1 : 2,
          to: `r${Math.floor(random() * 9)}@example.com`,
        }),
      );
      acceptedIds.push(...batch.map(({ id }) => id));
      await record(store.accept(batch));
      const lease = { owner: NODE.name, until: now + 60_000 };
      const claimResult = await store.claim({ maxMessages: 4, maxBytes: 100_000 }, lease, now);
      results.push(claimResult);
      const settlements = claimResult.messages
        .filter(() => random() < 0.8)
        .map((message) => {
          const event = { at: now, by: NODE.name, detail: null, failure: null, attempt: null };
          if (random() < 0.3)
            return createSettlement(message, {
              to: 'bounced',
              suppress: 'bounce',
              event: { ...event, verb: 'bounced' },
            });
          return createSettlement(message, { event: { ...event, verb: 'delivered' } });
        });
      await record(store.settle(settlements));
      await clock.advance(7_000 + Math.floor(random() * 10_000));
      const recovery = {
        includeAllLeases: false,
        includeDeadNodes: true,
        onUncertain: 'resend',
        node: 'node-b',
      } as const;
      await record(store.recover({ ...recovery, now: clock.now() }));
    }
    await record(store.listNodes(clock.now()));
    await record(store.updateRunningTime(1_000, clock.now()));
    await record(store.readQueueStatistics());
    await record(store.listAccounts());
    await record(store.readAllReputations(clock.now()));
    await record(
      store.indexMessages({ horizon: ids.next(clock.now()), minMessages: 1, unindexedCount: null, now: clock.now() }),
    );
    for (const id of acceptedIds) await record(store.findMessage(id));
    return results;
  }

  test('two runs with the same seed have the same results, histories and times, and a run with another seed has other results', async () => {
    const [firstResults, secondResults, otherResults] = [await runSeed(7), await runSeed(7), await runSeed(8)];
    expect(secondResults).toEqual(firstResults);
    expect(firstResults.length).toBeGreaterThan(90);
    expect(otherResults).not.toEqual(firstResults);
  });

  test('only the injected clock determines the time', async () => {
    const clock = createVirtualClock(START);
    const store = await open({ environment: { clock, random: () => 0.5, isSimulated: true } });
    expect(await store.recordHeartbeat(NODE, 15_000, clock.now())).toBe(START);
    await clock.advance(3_600_000);
    expect(await store.recordHeartbeat(NODE, 15_000, clock.now())).toBe(START + 3_600_000);
    expect((await store.updateRunningTime(0, clock.now())).seenAt).toBe(START + 3_600_000);
  });
});
