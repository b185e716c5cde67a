import { describe, expect, test } from 'vitest';
import type { NewMessage } from '../../src/model/message.ts';
import { toSeq } from '../../src/store/rules/messages.ts';
import { createMessage, createMessageIdAt, NO_LIMITS } from '../rig/messages.ts';
import { expectDone, STORES } from '../rig/stores.ts';

const NOW = Date.UTC(2030, 0, 1);

describe.each(STORES)('the $name store', ({ open }) => {
  async function createStoreWithMessage(limits = NO_LIMITS, overrides: Partial<NewMessage> = {}) {
    const store = await open();
    const { id: accountId } = expectDone(await store.createAccount('acme', limits, NOW));
    const message = createMessage({ accountId, acceptedAt: NOW, to: 'Rita@Example.com', ...overrides });
    expect(await store.accept([message])).toMatchObject([{ kind: 'accepted' }]);
    return { store, message, accountId };
  }

  test('a resent message is queued with the content of the old message, and the history of each message names the other message', async () => {
    const { store, message } = await createStoreWithMessage();
    await store.cancelMessage(message.id, NOW + 1);
    const newId = createMessageIdAt(NOW + 2);
    const result = await store.resendMessage({ id: message.id, newId }, NOW + 2, { name: 'page', at: NOW + 2 });
    expect(result).toMatchObject({ kind: 'done', message: { id: newId, to: 'Rita@Example.com', state: 'queued' } });
    const { to, from, subject, message: body } = message;
    const resentMessage = await store.findMessage(newId);
    expect(resentMessage).toMatchObject({
      to,
      from,
      subject,
      message: body,
      state: 'queued',
      acceptedAt: NOW + 2,
      attempts: 0,
    });
    expect(resentMessage?.events.map(({ verb, by, detail }) => [verb, by, detail])).toEqual([
      ['accepted', 'key_1', null],
      ['resend-of', 'operator', message.id],
    ]);
    const oldMessage = await store.findMessage(message.id);
    expect(oldMessage?.state).toBe('cancelled');
    expect(oldMessage?.events.at(-1)).toMatchObject({ verb: 'resent', by: 'operator', detail: newId, at: NOW + 2 });
    expect(await store.listAudit(null, 1)).toMatchObject([
      {
        actor: 'page',
        action: 'message.resend',
        target: message.id,
        after: JSON.stringify({ state: 'cancelled', resentAs: newId }),
      },
    ]);
    const claimResult = await store.claim(
      { maxMessages: 9, maxBytes: 9e6 },
      { owner: 'node', until: NOW + 9_000 },
      NOW + 2,
    );
    expect(claimResult.messages.map(({ id, message: text, attempts }) => [id, text, attempts])).toEqual([
      [newId, body, 1],
    ]);
  });

  test('the resend of a message that is not in a terminal state, does not exist or has no body is refused, and nothing changes', async () => {
    const { store, message } = await createStoreWithMessage();
    const resend = (id: string) =>
      store.resendMessage({ id, newId: createMessageIdAt(NOW) }, NOW, { name: 'page', at: NOW });
    expect(await resend(message.id)).toEqual({ kind: 'not-ended', state: 'queued' });
    expect(await resend(createMessageIdAt(NOW))).toEqual({ kind: 'missing' });
    await store.claim({ maxMessages: 9, maxBytes: 9e6 }, { owner: 'node', until: NOW + 9_000 }, NOW);
    expect(await resend(message.id)).toEqual({ kind: 'not-ended', state: 'sending' });
    const otherMessage = createMessage({ acceptedAt: NOW + 5, accountId: message.accountId });
    await store.accept([otherMessage]);
    await store.cancelMessage(otherMessage.id, NOW + 5);
    await store.purgeBodiesAndKeys(NOW + 6, 0, 10);
    expect(await resend(otherMessage.id)).toEqual({ kind: 'erased' });
    expect(await store.listAudit(null, 9)).toEqual([]);
    expect((await store.listMessages({ accountId: null, state: null, to: null, since: null, limit: 9 })).length).toBe(
      2,
    );
  });

  test('the lock and the volume of the account apply to a resend, which counts like any other message', async () => {
    const { store, message } = await createStoreWithMessage({ ...NO_LIMITS, volume: 2 });
    await store.cancelMessage(message.id, NOW);
    const resend = (id: string) => store.resendMessage({ id, newId: createMessageIdAt(NOW) }, NOW);
    await store.lockAccount('acme', 'unpaid', NOW);
    expect(await resend(message.id)).toEqual({ kind: 'locked' });
    await store.unlockAccount('acme', NOW);
    expect(await resend(message.id)).toMatchObject({ kind: 'done' });
    expect(await resend(message.id)).toEqual({ kind: 'refused', reason: 'volume-exhausted' });
    expect(await store.listAccounts()).toMatchObject([{ volumeUsed: 2 }]);
    expect((await store.findMessage(message.id))?.events.filter(({ verb }) => verb === 'resent').length).toBe(1);
  });

  test('a resend to a suppressed recipient ends as suppressed, and so does the resend of a message that the simulator suppressed', async () => {
    const { store, message } = await createStoreWithMessage();
    await store.cancelMessage(message.id, NOW);
    await store.addSuppressions('acme', [{ address: 'rita@example.com', reason: 'manual', source: null, at: NOW }]);
    const newId = createMessageIdAt(NOW);
    expect(await store.resendMessage({ id: message.id, newId }, NOW)).toMatchObject({
      message: { state: 'suppressed' },
    });
    expect((await store.findMessage(newId))?.events.map(({ verb }) => verb)).toEqual([
      'accepted',
      'resend-of',
      'suppressed',
    ]);
    const simulatorMessage = createMessage({
      accountId: message.accountId,
      acceptedAt: NOW,
      to: 'b@example.com',
      suppressedBy: 'simulator',
    });
    await store.accept([simulatorMessage]);
    const secondResend = await store.resendMessage({ id: simulatorMessage.id, newId: createMessageIdAt(NOW) }, NOW);
    expect(secondResend).toMatchObject({ message: { state: 'suppressed' } });
    const id = secondResend.kind === 'done' ? secondResend.message.id : '';
    expect((await store.findMessage(id))?.events.at(-1)).toMatchObject({ verb: 'suppressed', by: 'simulator' });
  });

  test('two resends of one message at the same time create two messages, even if the ids of the new messages differ only in their last digits', async () => {
    const { store, message } = await createStoreWithMessage();
    await store.cancelMessage(message.id, NOW);
    const firstId = createMessageIdAt(NOW + 50);
    const secondId = `${firstId.slice(0, -4)}${firstId.endsWith('0000') ? '1111' : '0000'}`;
    const results = await Promise.all(
      [firstId, secondId].map((newId) => store.resendMessage({ id: message.id, newId }, NOW + 50)),
    );
    const ids = results.map((result) => (result.kind === 'done' ? result.message.id : ''));
    expect(new Set(ids).size).toBe(2);
    const resentEvents = (await store.findMessage(message.id))?.events.filter(({ verb }) => verb === 'resent') ?? [];
    expect(new Set(resentEvents.map(({ detail }) => detail))).toEqual(new Set(ids));
    for (const id of ids) expect(await store.findMessage(id)).toMatchObject({ id, state: 'queued' });
    for (const id of ids) expect(toSeq(id)).toBeLessThanOrEqual(toSeq(firstId));
  });
});
