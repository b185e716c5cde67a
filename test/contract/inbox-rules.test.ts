import { describe, expect, test } from 'vitest';
import {
  type InboxRuleAnswer,
  type InboxRuleRequest,
  MAX_ACTIVE_INBOX_RULES,
  MAX_ENDED_INBOX_RULES,
} from '../../src/model/inbox.ts';
import type { Store } from '../../src/store/contract.ts';
import { createMessageIdAt } from '../rig/messages.ts';
import { STORES } from '../rig/stores.ts';

const NOW = Date.UTC(2030, 0, 1);
const HOUR_MS = 3_600_000;
const ADA_ADDRESS = 'ada@example.com';
const ACTOR = { name: 'cli:tester', at: NOW };
const REPLY: InboxRuleAnswer = { kind: 'reply', code: 451, enhanced: '4.3.0', text: 'Später \u{1f4a5}' };

const createRequest = (recipient = ADA_ADDRESS): InboxRuleRequest => ({
  messageId: createMessageIdAt(NOW),
  recipient,
  domain: recipient.slice(recipient.lastIndexOf('@') + 1),
});

describe.each(STORES)('the $name store', ({ open }) => {
  async function addRule(
    store: Store,
    match: string,
    members: { times?: number; answer?: InboxRuleAnswer; expiresAt?: number } = {},
  ) {
    const rule = { match, answer: REPLY, times: 1, expiresAt: NOW + HOUR_MS, ...members };
    const result = await store.addInboxRule(rule, NOW, ACTOR);
    if (result.kind === 'full') throw new Error('too many rules are active');
    return result.rule.id;
  }

  const applyRules = async (store: Store, requests: readonly InboxRuleRequest[], now = NOW) =>
    (await store.consumeInboxRules(requests, now)).map((rule) => rule?.id ?? null);

  test('a rule for the address precedes a rule for the domain, and an older rule precedes a newer one', async () => {
    const store = await open();
    const domainRule = await addRule(store, 'example.com');
    const [firstRule, secondRule] = [
      await addRule(store, ADA_ADDRESS, { times: 2 }),
      await addRule(store, ADA_ADDRESS),
    ];
    const requests = Array.from({ length: 5 }, () => createRequest());
    expect(await applyRules(store, requests)).toEqual([firstRule, firstRule, secondRule, domainRule, null]);
    await addRule(store, 'example.com');
    const otherRequests = ['ada@sub.example.com', 'ada@example.org', 'bob@example.com'].map(createRequest);
    expect(await applyRules(store, otherRequests)).toEqual([null, null, expect.any(Number)]);
  });

  test('a rule answers no attempt after its expiry', async () => {
    const store = await open();
    const id = await addRule(store, ADA_ADDRESS);
    expect(await applyRules(store, [createRequest()], NOW + HOUR_MS)).toEqual([null]);
    expect(await applyRules(store, [createRequest()], NOW + HOUR_MS - 1)).toEqual([id]);
  });

  test('concurrent attempts use a rule exactly as often as it allows', async () => {
    const store = await open();
    const ids = [await addRule(store, ADA_ADDRESS, { times: 25 }), await addRule(store, 'example.com', { times: 15 })];
    const batches = Array.from({ length: 20 }, (_, index) =>
      applyRules(store, [
        createRequest(),
        createRequest(index % 2 === 0 ? ADA_ADDRESS : 'bob@example.com'),
        createRequest(),
      ]),
    );
    const appliedRules = (await Promise.all(batches)).flat();
    expect(ids.map((id) => appliedRules.filter((appliedId) => appliedId === id).length)).toEqual([25, 15]);
    expect(await store.listInboxRules()).toMatchObject([{ used: 15 }, { used: 25 }]);
  });

  test('the list contains each rule with its uses, newest first, and the audit log contains each change of a rule', async () => {
    const store = await open();
    await addRule(store, ADA_ADDRESS);
    const secondRule = await addRule(store, 'example.com', { answer: { kind: 'delay', delayMs: 5 }, times: 3 });
    const request = createRequest('bob@example.com');
    await applyRules(store, [request], NOW + 7);
    expect(await store.listInboxRules()).toMatchObject([
      {
        ...{ id: secondRule, match: 'example.com', answer: { kind: 'delay', delayMs: 5 }, times: 3, used: 1 },
        lastUse: { messageId: request.messageId, recipient: 'bob@example.com', at: NOW + 7 },
      },
      { match: ADA_ADDRESS, answer: REPLY, times: 1, used: 0, createdAt: NOW, expiresAt: NOW + HOUR_MS, lastUse: null },
    ]);
    expect(await store.removeInboxRule(secondRule, ACTOR)).toMatchObject({
      kind: 'done',
      value: { match: 'example.com' },
    });
    expect(await store.removeInboxRule(secondRule, ACTOR)).toEqual({ kind: 'missing' });
    expect((await store.listAudit(null, 10)).map(({ action, target }) => [action, target])).toEqual([
      ['inbox.remove-rule', 'example.com'],
      ['inbox.add-rule', 'example.com'],
      ['inbox.add-rule', ADA_ADDRESS],
    ]);
    expect(await applyRules(store, [createRequest('bob@example.com')])).toEqual([null]);
  });

  test('at most a fixed number of active rules and of ended rules is stored', async () => {
    const store = await open();
    for (let n = 0; n < MAX_ENDED_INBOX_RULES + 5; n += 1) await addRule(store, ADA_ADDRESS, { expiresAt: NOW - 1 });
    for (let n = 0; n < MAX_ACTIVE_INBOX_RULES; n += 1) await addRule(store, ADA_ADDRESS);
    const rule = { match: ADA_ADDRESS, answer: REPLY, times: 1, expiresAt: NOW + HOUR_MS };
    expect(await store.addInboxRule(rule, NOW, ACTOR)).toEqual({ kind: 'full' });
    expect(await store.listInboxRules()).toHaveLength(MAX_ACTIVE_INBOX_RULES + MAX_ENDED_INBOX_RULES);
    expect(await applyRules(store, [createRequest()])).toEqual([expect.any(Number)]);
    expect((await store.addInboxRule(rule, NOW, ACTOR)).kind).toBe('added');
  });
});
