import { describe, expect, test } from 'vitest';
import type { Suppression } from '../../src/model/suppression.ts';
import type { Store } from '../../src/store/contract.ts';
import { createMessage, createSettlement } from '../rig/messages.ts';
import { expectDone, STORES } from '../rig/stores.ts';

const NOW = Date.UTC(2030, 0, 1);
const LIMITS = { maxMessages: 10, maxBytes: 1_000_000 };
const LEASE = { owner: 'node-a', until: NOW + 600_000 };

describe.each(STORES)('the $name store', ({ openWithAccounts }) => {
  test('a message expires at the maximum age of its account, which it has from its acceptance', async () => {
    const store = await openWithAccounts();
    const older = createMessage({ acceptedAt: NOW });
    await store.accept([older]);
    await store.setAccount('default', { maxAgeMs: 60_000 }, NOW);
    const [message, other] = [createMessage({ acceptedAt: NOW }), createMessage({ acceptedAt: NOW + 1 })];
    expect(await store.accept([message])).toMatchObject([{ expiresAt: NOW + 60_000 }]);
    const claimed = await store.claim(LIMITS, LEASE, NOW);
    expect(claimed.messages.map(({ id, expiresAt }) => [id, expiresAt])).toEqual([
      [older.id, undefined],
      [message.id, NOW + 60_000],
    ]);
    await store.release(
      claimed.messages.map(({ id, attempts }) => ({ id, owner: LEASE.owner, attempts })),
      NOW,
    );
    await store.accept([other]);
    expect(await store.expire(NOW - 1, NOW + 59_999, 10, 'node-a')).toEqual([]);
    expect(await store.expire(NOW - 1, NOW + 60_000, 10, 'node-a')).toEqual([message.id]);
    expect(await store.findMessage(message.id)).toMatchObject({ state: 'expired', expiresAt: NOW + 60_000 });
    await store.setAccount('default', { maxAgeMs: null }, NOW);
    // Both reasons apply to `other`, which expires once.
    expect(await store.expire(NOW + 1, NOW + 60_001, 10, 'node-a')).toEqual([older.id, other.id]);
  });

  test('an account with allowed recipients suppresses other messages at acceptance and at each claim', async () => {
    const store = await openWithAccounts();
    const queued = createMessage({ acceptedAt: NOW, to: 'rita@example.net' });
    const notification = createMessage({ acceptedAt: NOW, to: 'ops@example.net', keyId: -1 });
    await store.accept([queued, notification]);
    await store.setAccount('default', { onlyTo: ['@example.com', 'qa@example.org'] }, NOW);
    const recipients = ['a@example.com', 'QA@example.org', 'b@sub.example.com', 'success@simulator.postrider.test'];
    const messages = recipients.map((to) => createMessage({ acceptedAt: NOW, to }));
    const results = await store.accept(messages);
    expect(results.map((result) => result.kind === 'accepted' && result.state)).toEqual([
      ...['queued', 'queued', 'suppressed', 'queued'],
    ]);
    const claimed = await store.claim(LIMITS, LEASE, NOW);
    expect(claimed.suppressed.map(({ id }) => id)).toEqual([queued.id]);
    expect(claimed.messages).toHaveLength(4);
    for (const id of [queued.id, messages[2]?.id ?? '']) {
      const message = await store.findMessage(id);
      expect(message).toMatchObject({ state: 'suppressed' });
      expect(message?.events.at(-1)).toMatchObject({
        by: 'not-allowed',
        detail: expect.stringMatching(/^not-allowed/),
      });
    }
    await store.setAccount('default', { onlyTo: null }, NOW);
    const newId = createMessage({ acceptedAt: NOW + 1 }).id;
    expect(await store.resendMessage({ id: queued.id, newId }, NOW + 1)).toMatchObject({
      kind: 'done',
      message: { state: 'queued' },
    });
  });

  test('a message has the name and the Reply-To of its sender at acceptance, the more specific entry first', async () => {
    const store = await openWithAccounts();
    const set = (sender: string, change: object) => store.setSender('default', sender, change);
    await set('@acme.example', { name: 'Acme', replyTo: 'help@acme.example' });
    await set('billing@acme.example', { name: 'Acme Billing' });
    expect(await set('@*.acme.example', { name: 'Acme "Süd"' })).toMatchObject({ kind: 'done' });
    expect(await store.setSender('unknown', '@acme.example', {})).toEqual({ kind: 'missing' });
    const senders = ['Billing@acme.example', 'a@acme.example', 'a@eu.acme.example', 'a@other.example'];
    const messages = senders.map((from) => createMessage({ acceptedAt: NOW, from }));
    const sendersOfMessages = [
      { name: 'Acme Billing', replyTo: 'help@acme.example' },
      { name: 'Acme', replyTo: 'help@acme.example' },
      { name: 'Acme "Süd"', replyTo: null },
      undefined,
    ];
    const results = await store.accept(messages);
    expect(results.map((result) => result.kind === 'accepted' && result.sender)).toEqual(sendersOfMessages);
    await set('billing@acme.example', { name: null, replyTo: 'billing@acme.example' });
    expect(await store.removeSender('default', '@acme.example')).toEqual({ kind: 'done', value: true });
    expect(await store.removeSender('default', '@acme.example')).toEqual({ kind: 'done', value: false });
    const claimed = await store.claim(LIMITS, LEASE, NOW);
    expect(claimed.messages.map(({ sender }) => sender)).toEqual(sendersOfMessages);
    expect((await store.listAccounts())[0]?.senders).toEqual([
      { pattern: '@*.acme.example', name: 'Acme "Süd"', replyTo: null },
      { pattern: 'billing@acme.example', name: null, replyTo: 'billing@acme.example' },
    ]);
  });

  test('an entry for a domain or its subdomains suppresses messages at acceptance, at a claim and before an attempt', async () => {
    const store = await openWithAccounts({}, 'other');
    const addresses = ['a@example.com', 'a@sub.example.com', 'a@deep.example.org', 'a@example.org'];
    const createAll = () => addresses.map((to) => createMessage({ acceptedAt: NOW, to }));
    const [leased, queued] = [createAll(), createAll()];
    await store.accept(leased);
    const claimed = await store.claim(LIMITS, LEASE, NOW);
    expect(claimed.messages).toHaveLength(4);
    await store.accept(queued);
    await add(store, 'default', '@example.com');
    await add(store, '*', '@*.example.org');
    await add(store, 'other', '@example.org');
    expect(await store.checkSuppression(leased, NOW)).toEqual([false, true, false, true]);
    expect((await store.claim(LIMITS, LEASE, NOW)).suppressed.map(({ to }) => to)).toEqual([
      ...['a@example.com', 'a@deep.example.org'],
    ]);
    const results = await store.accept(createAll());
    expect(results.map((result) => result.kind === 'accepted' && result.state)).toEqual([
      ...['suppressed', 'queued', 'suppressed', 'queued'],
    ]);
    expect(await store.findSuppression('a@deep.example.org')).toMatchObject([{ list: '*', address: '@*.example.org' }]);
    expect(await store.findSuppressed(addresses)).toEqual(['a@example.com', 'a@deep.example.org', 'a@example.org']);
    expect(await store.removeSuppression('default', '@example.com')).toEqual({ kind: 'done', value: true });
    expect(await store.checkSuppression(leased, NOW)).toEqual([true, true, false, true]);
  });

  test('an entry with an expiry suppresses until then, and a bounce makes it permanent', async () => {
    const store = await openWithAccounts();
    const to = 'a@example.com';
    const expiresAt = NOW + 60_000;
    const accept = async (acceptedAt: number) => {
      const [result] = await store.accept([createMessage({ acceptedAt, to })]);
      return result?.kind === 'accepted' ? result.state : null;
    };
    expect(await add(store, 'default', to, { expiresAt })).toBe(1);
    expect(await add(store, 'default', to, { expiresAt: expiresAt - 1 })).toBe(0);
    expect([await accept(NOW), await accept(expiresAt)]).toEqual(['suppressed', 'queued']);
    const [message] = (await store.claim(LIMITS, LEASE, expiresAt)).messages;
    if (message === undefined) throw new Error('no message');
    await store.settle([createSettlement(message, { to: 'bounced', suppress: 'bounce' })]);
    expect(await store.findSuppression(to)).toMatchObject([{ reason: 'bounce', source: message.id }]);
    expect(await add(store, 'default', 'b@example.com', { expiresAt })).toBe(1);
    expect([await store.purgeSuppressions(expiresAt - 1, 10), await store.purgeSuppressions(expiresAt, 10)]).toEqual([
      0, 1,
    ]);
    expect([await accept(expiresAt), await store.findSuppression('b@example.com')]).toEqual(['suppressed', []]);
  });
});

async function add(store: Store, list: string, address: string, members: Partial<Suppression> = {}): Promise<number> {
  const entry: Suppression = { address, reason: 'manual', source: null, at: NOW, ...members };
  return expectDone(await store.addSuppressions(list, [entry]));
}
