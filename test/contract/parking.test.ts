import { describe, expect, test } from 'vitest';
import { type Lease, PARKED_BY_HOLD } from '../../src/model/message.ts';
import type { Store } from '../../src/store/contract.ts';
import { createMessage, createSettlement } from '../rig/messages.ts';
import { STORES } from '../rig/stores.ts';

const NOW = Date.UTC(2030, 0, 1);
const HOUR_MS = 3_600_000;
const LEASE: Lease = { owner: 'node-a', until: NOW + 10 * HOUR_MS };
const ACTOR = { name: 'cli:tester', at: NOW };

describe.each(STORES)('the $name store', ({ openWithAccounts }) => {
  const claim = async (store: Store, now: number) =>
    (await store.claim({ maxMessages: 10, maxBytes: 1_000_000 }, LEASE, now)).messages;

  async function openWithLeased() {
    const store = await openWithAccounts();
    const message = createMessage({ acceptedAt: NOW });
    await store.accept([message]);
    const [leased] = await claim(store, NOW);
    if (leased === undefined) throw new Error('nothing leased');
    return { store, message, lease: { id: leased.id, owner: LEASE.owner, attempts: leased.attempts } };
  }

  test.each(['hold', 'route'] as const)(
    'a message parked by a %s is queued, is leased by no claim until it is unparked, and gets no entry and no attempt',
    async (reason) => {
      const { store, message, lease } = await openWithLeased();
      expect(await store.park([{ ...lease, owner: 'node-b' }, lease, lease], reason, NOW + 5)).toEqual([
        ...['lost', 'settled', 'lost'],
      ]);
      expect(await claim(store, NOW + 1_000 * HOUR_MS)).toEqual([]);
      const parked = { reason, at: NOW + 5 };
      expect(await store.findMessage(message.id)).toMatchObject({
        ...{ state: 'queued', dueAt: null, owner: null, attempts: 0, parked, events: [{ verb: 'accepted' }] },
      });
      const { id, accountId, from, to } = message;
      expect(await store.listParked(null, 10)).toEqual([{ id, accountId, from, to, parked }]);
      expect([await store.unpark([id], NOW + 6), await store.unpark([id], NOW + 7)]).toEqual([1, 0]);
      expect(await store.listParked(null, 10)).toEqual([]);
      expect(await store.findMessage(id)).toMatchObject({ dueAt: NOW + 6, parked: null });
      expect((await claim(store, NOW + 6)).map(({ attempts }) => attempts)).toEqual([1]);
    },
  );

  test('a message that is parked before its attempt keeps where it was dealt', async () => {
    const { store, message, lease } = await openWithLeased();
    await store.park([{ ...lease, route: 'backup' }], 'route', NOW);
    await store.unpark([message.id], NOW);
    const [dealt] = await claim(store, NOW);
    await store.park([{ ...lease, route: null }], 'hold', NOW);
    await store.unpark([message.id], NOW);
    expect([dealt?.route, (await claim(store, NOW))[0]?.route]).toEqual(['backup', 'backup']);
  });

  test('a message can be accepted parked by a hold, and the parked messages are listed in order of acceptance', async () => {
    const store = await openWithAccounts();
    const messages = [0, 1, 2].map((offset) => createMessage({ acceptedAt: NOW + offset, isHeld: true }));
    expect((await store.accept(messages)).map((result) => 'state' in result && result.state)).toEqual([
      ...['queued', 'queued', 'queued'],
    ]);
    const ids = messages.map(({ id }) => id);
    const firstPage = await store.listParked(null, 2);
    const secondPage = await store.listParked(ids[1] ?? null, 2);
    expect([...firstPage, ...secondPage].map(({ id }) => id)).toEqual(ids);
    expect(secondPage[0]?.parked).toEqual({ reason: 'hold', at: NOW + 2 });
    expect(await claim(store, NOW + HOUR_MS)).toEqual([]);
  });

  test('a message parked by a hold does not expire, and a message parked for a route does', async () => {
    const store = await openWithAccounts();
    const held = createMessage({ acceptedAt: NOW, isHeld: true });
    const waiting = createMessage({ acceptedAt: NOW });
    await store.accept([held, waiting]);
    await claim(store, NOW);
    await store.park([{ id: waiting.id, owner: LEASE.owner, attempts: 1 }], 'route', NOW);
    expect(await store.expire(NOW + HOUR_MS, NOW + HOUR_MS, 10, 'node-a')).toEqual([waiting.id]);
    expect(await store.findMessage(held.id)).toMatchObject({ state: 'queued' });
  });

  test('after a release a message expires only after an attempt, and its age does not include the held time', async () => {
    const store = await openWithAccounts();
    const message = createMessage({ acceptedAt: NOW, isHeld: true });
    await store.accept([message]);
    const releasedAt = NOW + 48 * HOUR_MS;
    await store.unpark([message.id], releasedAt);
    expect(await store.expire(releasedAt + 1_000 * HOUR_MS, releasedAt, 10, 'node-a')).toEqual([]);
    const [leased] = await claim(store, releasedAt);
    if (leased === undefined) throw new Error('nothing leased');
    await store.settle([createSettlement(leased, { to: 'queued', dueAt: releasedAt })]);
    expect((await store.readQueueStatistics()).oldest).toEqual({ id: message.id, acceptedAt: releasedAt });
    expect(await store.expire(releasedAt - 1, releasedAt, 10, 'node-a')).toEqual([]);
    expect(await store.expire(releasedAt, releasedAt, 10, 'node-a')).toEqual([message.id]);
  });

  test('the maximum age of an account goes on while a message is held, which then expires at the release', async () => {
    const store = await openWithAccounts();
    await store.setAccount('default', { maxAgeMs: HOUR_MS }, NOW);
    const message = createMessage({ acceptedAt: NOW, isHeld: true });
    await store.accept([message]);
    const releasedAt = NOW + 2 * HOUR_MS;
    expect(await store.expire(NOW - 1, releasedAt, 10, 'node-a')).toEqual([]);
    await store.unpark([message.id], releasedAt);
    expect(await store.expire(NOW - 1, releasedAt, 10, 'node-a')).toEqual([message.id]);
  });

  test('an operator can make a held message due, which keeps its held time, and can cancel one', async () => {
    const store = await openWithAccounts();
    const [retried, cancelled] = [createMessage({ acceptedAt: NOW, isHeld: true }), createMessage({ isHeld: true })];
    await store.accept([retried, cancelled]);
    await store.retryMessage(retried.id, NOW + HOUR_MS, ACTOR);
    await store.cancelMessage(cancelled.id, NOW + HOUR_MS, ACTOR);
    expect((await store.listAudit(null, 5)).map(({ before }) => before)).toEqual([
      ...Array(2).fill('{"state":"queued","dueAt":null}'),
    ]);
    expect(await store.expire(NOW + HOUR_MS, NOW + HOUR_MS, 10, 'node-a')).toEqual([]);
    expect((await claim(store, NOW + HOUR_MS)).map(({ id }) => id)).toEqual([retried.id]);
    expect(await store.listParked(null, 5)).toEqual([]);
  });

  test('held messages are counted as queued and as held, and are neither the oldest nor the next due message', async () => {
    const store = await openWithAccounts();
    const held = createMessage({ acceptedAt: NOW, isHeld: true });
    await store.accept([held]);
    expect(await store.readQueueStatistics()).toEqual({ queued: 1, sending: 0, uncertain: 0, held: 1, oldest: null });
    expect((await store.readOverviewData(NOW)).nextDueAt).toBeNull();
    const due = createMessage({ acceptedAt: NOW + HOUR_MS });
    await store.accept([due]);
    const oldest = { id: due.id, acceptedAt: NOW + HOUR_MS };
    expect(await store.readQueueStatistics()).toMatchObject({ queued: 2, held: 1, oldest });
    expect((await store.readOverviewData(NOW)).nextDueAt).toBe(NOW + HOUR_MS);
  });

  test('a due time that is reset because the clock was set back is not that of a parked message', async () => {
    const store = await openWithAccounts();
    const [held, late] = [createMessage({ isHeld: true }), createMessage({ acceptedAt: PARKED_BY_HOLD / 8 })];
    await store.accept([held]);
    await store.accept([{ ...late, id: createMessage().id }]);
    expect(await store.resetExcessiveDueTimes(NOW, NOW, 10)).toBe(1);
    expect((await store.listParked(null, 5)).map(({ id }) => id)).toEqual([held.id]);
  });
});
