import { describe, expect, test } from 'vitest';
import type { BulkAction, BulkStep } from '../../src/model/message.ts';
import { createMessage, createMessageIdAt, NO_LIMITS } from '../rig/messages.ts';
import { STORES } from '../rig/stores.ts';

const NOW = Date.UTC(2030, 0, 1);
const ACTOR = { name: 'page', at: NOW };

describe.each(STORES)('the $name store', ({ open }) => {
  async function createStoreWith(count: number, limits = NO_LIMITS) {
    const store = await open();
    await store.createAccount('acme', limits, NOW);
    const messages = Array.from({ length: count }, (_, index) => createMessage({ acceptedAt: NOW + index }));
    await store.accept(messages);
    return { store, ids: messages.map(({ id }) => id) };
  }
  const createStep = (action: BulkAction, ids: readonly string[], step: Partial<BulkStep> = {}): BulkStep => ({
    action,
    targets: ids.map((id) => ({ id, newId: createMessageIdAt(NOW + 9_000) })),
    filter: 'state=queued',
    refused: 0,
    entry: null,
    isLast: false,
    ...step,
  });

  test('each batch reports the outcome of every message, and the run has one audit log entry with the counts of all batches', async () => {
    const { store, ids } = await createStoreWith(3);
    const unknownId = createMessageIdAt(NOW);
    const firstResult = await store.changeMessages(createStep('cancel', [...ids.slice(0, 2), unknownId]), NOW, ACTOR);
    expect(firstResult.outcomes).toEqual([
      { kind: 'done', id: ids[0], resent: null },
      { kind: 'done', id: ids[1], resent: null },
      { kind: 'refused', id: unknownId, reason: 'missing' },
    ]);
    expect(await store.listAudit(null, 9)).toMatchObject([
      {
        ...{ action: 'message.change', actor: 'page', target: 'state=queued' },
        after: JSON.stringify({ action: 'cancel', done: 2, refused: 1, unfinished: true }),
      },
    ]);
    const secondResult = await store.changeMessages(
      createStep('cancel', ids.slice(1), { entry: firstResult.entry, isLast: true, refused: 4 }),
      NOW,
      ACTOR,
    );
    expect(secondResult.outcomes).toEqual([
      { kind: 'refused', id: ids[1], reason: 'wrong-state' },
      { kind: 'done', id: ids[2], resent: null },
    ]);
    const entries = await store.listAudit(null, 9);
    expect(entries.map(({ after }) => after)).toEqual([JSON.stringify({ action: 'cancel', done: 3, refused: 6 })]);
    for (const id of ids) expect(await store.findMessage(id)).toMatchObject({ state: 'cancelled' });
    // A step whose actor or filter differs from that of the entry creates a separate entry.
    await store.changeMessages(createStep('retry', [], { entry: firstResult.entry }), NOW, { name: 'cli:x', at: NOW });
    await store.changeMessages(
      createStep('retry', [], { entry: firstResult.entry, filter: 'state=other' }),
      NOW,
      ACTOR,
    );
    expect((await store.listAudit(null, 9)).at(-1)).toEqual(entries[0]);
    expect(await store.listAudit(null, 9)).toHaveLength(3);
  });

  test('two concurrent runs resend each message at most once, and resend exactly as many messages as the volume allows', async () => {
    const { store, ids } = await createStoreWith(6, { ...NO_LIMITS, volume: 10 });
    await store.changeMessages(createStep('cancel', ids), NOW);
    const results = await Promise.all(
      [1, 2].map(() => store.changeMessages(createStep('resend', [...ids].reverse()), NOW + 9_000, ACTOR)),
    );
    const outcomes = results.flatMap((result) => result.outcomes);
    expect(outcomes.filter(({ kind }) => kind === 'done')).toHaveLength(4);
    const reasons = outcomes.flatMap((outcome) => (outcome.kind === 'refused' ? [outcome.reason] : []));
    expect(reasons.filter((reason) => reason === 'already-resent')).toHaveLength(4);
    expect(reasons.filter((reason) => reason === 'volume-exhausted')).toHaveLength(4);
    expect(await store.listAccounts()).toMatchObject([{ volumeUsed: 10 }]);
    for (const id of ids) {
      const events = (await store.findMessage(id))?.events ?? [];
      expect(events.filter(({ verb }) => verb === 'resent').length).toBeLessThanOrEqual(1);
    }
  });

  test('retried messages are due now', async () => {
    const { store, ids } = await createStoreWith(2);
    await store.changeMessages(createStep('retry', ids), NOW + 70);
    for (const id of ids) expect(await store.findMessage(id)).toMatchObject({ state: 'queued', dueAt: NOW + 70 });
  });
});
