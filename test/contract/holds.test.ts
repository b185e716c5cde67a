import { describe, expect, test } from 'vitest';
import type { DirectoryChanges } from '../../src/model/account.ts';
import { ENDED_HOLD_RETENTION_MS, MAX_ACTIVE_HOLDS, type NewHold } from '../../src/model/hold.ts';
import type { Store } from '../../src/store/contract.ts';
import { createMessage } from '../rig/messages.ts';
import { STORES } from '../rig/stores.ts';

const NOW = Date.UTC(2030, 0, 1);
const ACTOR = { name: 'cli:tester', at: NOW };
const NEW_HOLD: NewHold = {
  ...{ accountId: 1, from: '@example.org', to: 'rita@example.com', mailboxProvider: 'google', reason: 'Störung' },
  until: NOW + 1_000,
};

async function addHold(store: Store, members: Partial<NewHold> = {}, now = NOW): Promise<number> {
  const result = await store.addHold({ ...NEW_HOLD, ...members }, now, ACTOR);
  if (result.kind !== 'added') throw new Error(result.kind);
  return result.hold.id;
}

describe.each(STORES)('the $name store', ({ openWithAccounts }) => {
  test('a hold is stored with its filters, and every node learns of each change', async () => {
    const store = await openWithAccounts();
    const changes: DirectoryChanges['holds'][] = [];
    await store.watchDirectory(({ holds }) => void changes.push(holds));
    expect(changes).toEqual([null]);
    const id = await addHold(store);
    const stored = { ...NEW_HOLD, id, createdAt: NOW, by: 'cli:tester', releasedAt: null };
    await expect.poll(() => changes.at(-1)).toEqual([stored]);
    await store.lockAccount('default', 'abuse', NOW);
    await expect.poll(() => changes.at(-1)).toBeNull();
    await store.releaseHolds([id], NOW + 5, ACTOR);
    await expect.poll(() => changes.at(-1)).toEqual([{ ...stored, releasedAt: NOW + 5 }]);
    expect((await store.listAudit(null, 5)).map(({ action, target }) => [action, target])).toEqual([
      ['hold.release', String(id)],
      ['hold.add', String(id)],
    ]);
  });

  test('several holds are released together, or none if one is missing or not active', async () => {
    const store = await openWithAccounts();
    const [first, second, ended] = [await addHold(store), await addHold(store), await addHold(store, { until: NOW })];
    expect(await store.releaseHolds([first, 99], NOW, ACTOR)).toEqual({ kind: 'missing', id: 99 });
    expect(await store.releaseHolds([first, ended], NOW, ACTOR)).toMatchObject({ kind: 'not-active' });
    expect((await store.listHolds()).map(({ releasedAt }) => releasedAt)).toEqual([null, null, null]);
    expect(await store.releaseHolds([second, first], NOW, ACTOR)).toMatchObject({
      kind: 'released',
      holds: [{ id: first }, { id: second }],
    });
    expect((await store.listHolds()).map(({ id, releasedAt }) => [id, releasedAt])).toEqual([
      [ended, null],
      [second, NOW],
      [first, NOW],
    ]);
  });

  test('the number of active holds is limited, and an addition deletes holds that ended more than a week ago', async () => {
    const store = await openWithAccounts();
    for (let count = 0; count < MAX_ACTIVE_HOLDS; count += 1) await addHold(store);
    expect(await store.addHold(NEW_HOLD, NOW, ACTOR)).toEqual({ kind: 'full' });
    const id = await addHold(store, { until: null }, NOW + 1_000 + ENDED_HOLD_RETENTION_MS);
    expect((await store.listHolds()).map((hold) => hold.id)).toEqual([id]);
  });

  test('at the maximum age a queued message can be parked, and then does not expire', async () => {
    const store = await openWithAccounts();
    const [held, expiring] = [createMessage({ acceptedAt: NOW }), createMessage({ acceptedAt: NOW + 1 })];
    await store.accept([held, expiring, createMessage({ acceptedAt: NOW + 3 })]);
    const { id, accountId, from, to } = held;
    expect(await store.listExpiring(NOW + 2, 1)).toEqual([{ id, accountId, from, to }]);
    expect(await store.parkQueued([id], NOW + 5)).toBe(1);
    expect(await store.parkQueued([id], NOW + 6)).toBe(0);
    expect((await store.listParked(null, 5)).map(({ parked }) => parked)).toEqual([{ reason: 'hold', at: NOW + 5 }]);
    expect(await store.expire(NOW + 2, NOW + 5, 10, 'node-a')).toEqual([expiring.id]);
  });
});
