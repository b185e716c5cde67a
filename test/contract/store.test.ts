import { describe, expect, test } from 'vitest';
import type { DirectoryChanges } from '../../src/model/account.ts';
import type { AcceptResult, Lease, NewMessage } from '../../src/model/message.ts';
import type { Store } from '../../src/store/contract.ts';
import { createEntry, createMessage, createSettlement, NO_LIMITS } from '../rig/messages.ts';
import { selectCaseCount } from '../rig/sample.ts';
import { expectDone, STORES } from '../rig/stores.ts';

const createClaimLimits = (maxMessages: number) => ({ maxMessages, maxBytes: 1_000_000 });

const LEASE: Lease = { owner: 'node-a', until: Date.now() + 600_000 };

describe.each(STORES)('the $name store', ({ name, open, openWithAccounts }) => {
  const listKinds = (results: readonly AcceptResult[]) =>
    results.map((answer) => (answer.kind === 'refused' ? answer.reason : answer.kind));

  test('an accepted message can be read with its unchanged recipient, sender, subject and text', async () => {
    const store = await openWithAccounts();
    const message = createMessage({ subject: 'Grüße', message: 'line\r\n\u{1F600}', to: 'Rita@Example.com' });
    expect(await store.accept([message])).toEqual([{ kind: 'accepted', state: 'queued', limits: { rate: null } }]);
    const foundMessage = await store.findMessage(message.id);
    expect(foundMessage).toMatchObject({
      id: message.id,
      state: 'queued',
      to: message.to,
      from: message.from,
      subject: message.subject,
      message: message.message,
    });
    expect(foundMessage?.events.map(({ verb }) => verb)).toEqual(['accepted']);
    expect(await store.findMessage(createMessage().id)).toBeNull();
  });

  test('one call reads the histories of several messages, which equal the histories that are read individually, without the message texts', async () => {
    const store = await openWithAccounts();
    const messages = [createMessage(), createMessage({ to: 'max@example.com' })];
    await store.accept(messages);
    const ids = messages.map(({ id }) => id).reverse();
    const foundMessages = await Promise.all(ids.map((id) => store.findMessage(id)));
    const expectedHistories = foundMessages.map((message) => {
      const { message: _, ...history } = message ?? { message: null };
      return history;
    });
    expect(await store.readMessageHistories([...ids, createMessage().id, 'no id'])).toEqual(expectedHistories);
  });

  test('of a long history, the oldest and the newest entries are read, with the number of the entries between', async () => {
    const store = await openWithAccounts();
    const message = createMessage({ to: 'rita@example.com' });
    await store.accept([message]);
    const start = Date.now();
    for (let n = 1; n <= 149; n += 1) await store.retryMessage(message.id, start + n);
    const read = await store.findMessage(message.id);
    const times = read?.events.slice(1).map(({ at }) => at - start);
    expect(times).toEqual([
      ...Array.from({ length: 49 }, (_, n) => 1 + n),
      ...Array.from({ length: 50 }, (_, n) => 100 + n),
    ]);
    expect(read?.omittedEvents).toBe(50);
  });

  test('the volume count is exact within a batch and over concurrent batches', async () => {
    const store = await openWithAccounts({ volume: 25 });
    const batches = await Promise.all(
      Array.from({ length: 10 }, () => store.accept(Array.from({ length: 5 }, () => createMessage()))),
    );
    const resultKinds = listKinds(batches.flat());
    expect(resultKinds.filter((kind) => kind === 'accepted')).toHaveLength(25);
    expect(resultKinds.filter((kind) => kind === 'volume-exhausted')).toHaveLength(25);
    expect((await store.listAccounts())[0]?.volumeUsed).toBe(25);
  });

  test('after the volume has expired, a message is refused with a separate reason, and the count of a new volume starts at zero', async () => {
    const now = Date.now();
    const store = await openWithAccounts({ volume: 1, volumeExpiresAt: now + 1_000 });
    expect(listKinds(await store.accept([createMessage({ acceptedAt: now + 1_000 })]))).toEqual(['volume-expired']);
    expect(
      listKinds(await store.accept([createMessage({ acceptedAt: now }), createMessage({ acceptedAt: now })])),
    ).toEqual(['accepted', 'volume-exhausted']);
    await store.setAccount('default', { volume: 1, volumeExpiresAt: null }, now);
    expect(listKinds(await store.accept([createMessage({ acceptedAt: now })]))).toEqual(['accepted']);
  });

  test('a rate limit accepts exactly its number of messages in each period and reports the remaining number', async () => {
    const store = await openWithAccounts({ rate: { limit: 2, periodMs: 1_000 } });
    const now = Date.now();
    const results = await store.accept([
      createMessage({ acceptedAt: now }),
      createMessage({ acceptedAt: now + 300 }),
      createMessage({ acceptedAt: now + 999 }),
    ]);
    expect(listKinds(results)).toEqual(['accepted', 'accepted', 'rate-limit-exceeded']);
    expect(
      results.map((answer) =>
        'limits' in answer ? [answer.limits.rate?.remaining, answer.limits.rate?.resetMs] : null,
      ),
    ).toEqual([
      [1, 1_000],
      [0, 700],
      [0, 1],
    ]);
    expect(listKinds(await store.accept([createMessage({ acceptedAt: now + 1_000 })]))).toEqual(['accepted']);
  });

  test('the messages of a locked account are refused, and its queued messages are leased only after the unlock', async () => {
    const store = await openWithAccounts();
    await store.accept([createMessage()]);
    await store.lockAccount('default', 'abuse', Date.now());
    expect(listKinds(await store.accept([createMessage()]))).toEqual(['locked']);
    expect((await store.claim(createClaimLimits(5), LEASE, Date.now())).messages).toEqual([]);
    await store.unlockAccount('default', Date.now());
    expect(listKinds(await store.accept([createMessage()]))).toEqual(['accepted']);
    expect((await store.claim(createClaimLimits(5), LEASE, Date.now())).messages).toHaveLength(2);
  });

  test('a repeated idempotency key returns the id of the first message and uses no volume, and the key with a different payload is a conflict', async () => {
    const store = await openWithAccounts({ volume: 2 });
    const idempotency = { key: 'order-1', fingerprint: 'aa' };
    const firstMessage = createMessage({ idempotency });
    const results = await store.accept([
      firstMessage,
      createMessage({ idempotency }),
      createMessage({ idempotency: { key: 'order-1', fingerprint: 'bb' } }),
    ]);
    expect(results.slice(1)).toEqual([{ kind: 'replayed', id: firstMessage.id }, { kind: 'idempotency-conflict' }]);
    expect((await store.listAccounts())[0]?.volumeUsed).toBe(1);
    expect(listKinds(await store.accept([createMessage()]))).toEqual(['accepted']);
    expect(await store.accept([createMessage({ idempotency })])).toEqual([{ kind: 'replayed', id: firstMessage.id }]);
  });

  test('an idempotency key expires after 24 hours and belongs to one account', async () => {
    const store = await openWithAccounts({}, 'other');
    const now = Date.now();
    const idempotency = { key: 'k', fingerprint: 'aa' };
    const laterMessage = createMessage({ idempotency, acceptedAt: now + 24 * 3_600_000 });
    const answers = await store.accept([
      createMessage({ idempotency, acceptedAt: now }),
      createMessage({ idempotency, acceptedAt: now, accountId: 2 }),
      laterMessage,
    ]);
    expect(listKinds(answers)).toEqual(['accepted', 'accepted', 'accepted']);
  });

  test('a step of the clock does not expire an idempotency key', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    const idempotency = { key: 'k', fingerprint: 'aa' };
    const firstMessage = createMessage({ idempotency, acceptedAt: now });
    const messageAfterClockStep = createMessage({
      idempotency: { ...idempotency, expiredBefore: now - 1 },
      acceptedAt: now + 48 * 3_600_000,
    });
    const expiredMessage = createMessage({
      idempotency: { ...idempotency, expiredBefore: now },
      acceptedAt: now + 48 * 3_600_000,
    });
    await store.accept([firstMessage]);
    expect(await store.accept([messageAfterClockStep])).toEqual([{ kind: 'replayed', id: firstMessage.id }]);
    expect(listKinds(await store.accept([expiredMessage]))).toEqual(['accepted']);
  });

  test('a hard bounce suppresses the recipient, in any letter case, only for the account of the message', async () => {
    const store = await openWithAccounts({}, 'other');
    const message = createMessage({ to: 'Gone@example.com', recipient: 'gone@example.com', lease: LEASE });
    await store.accept([message]);
    await store.settle([createSettlement(message, { to: 'bounced', suppress: 'bounce' })]);
    const answers = await store.accept([
      createMessage({ to: 'GONE@example.com', recipient: 'gone@example.com' }),
      createMessage({ to: 'there@example.com' }),
      createMessage({ to: 'gone@example.com', accountId: 2 }),
    ]);
    expect(answers.map((answer) => (answer.kind === 'accepted' ? answer.state : answer.kind))).toEqual([
      'suppressed',
      'queued',
      'queued',
    ]);
  });

  test('a message that was queued before its recipient was suppressed ends as suppressed instead of being leased', async () => {
    const store = await openWithAccounts();
    const [waitingMessage, bouncingMessage] = [createMessage(), createMessage({ lease: LEASE })];
    await store.accept([waitingMessage, bouncingMessage]);
    await store.settle([createSettlement(bouncingMessage, { to: 'bounced', suppress: 'bounce' })]);
    expect((await store.claim(createClaimLimits(10), LEASE, Date.now())).messages).toEqual([]);
    expect((await store.findMessage(waitingMessage.id))?.state).toBe('suppressed');
  });

  test('only one of two concurrent claims leases a message, with a counted attempt and with all data that the transmission requires', async () => {
    const store = await openWithAccounts();
    const message = createMessage();
    await store.accept([message]);
    const [firstClaim, secondClaim] = await Promise.all([
      store.claim(createClaimLimits(5), LEASE, Date.now()),
      store.claim(createClaimLimits(5), { ...LEASE, owner: 'node-b' }, Date.now()),
    ]);
    expect([...firstClaim.messages, ...secondClaim.messages]).toHaveLength(1);
    expect(firstClaim.messages[0] ?? secondClaim.messages[0]).toMatchObject({
      id: message.id,
      accountId: 1,
      to: message.to,
      from: message.from,
      subject: message.subject,
      message: message.message,
      attempts: 1,
    });
  });

  test('no message is leased before it is due', async () => {
    const store = await openWithAccounts();
    const message = createMessage({ lease: LEASE });
    await store.accept([message]);
    const dueAt = Date.now() + 60_000;
    await store.settle([createSettlement(message, { to: 'queued', dueAt })]);
    expect((await store.claim(createClaimLimits(5), LEASE, dueAt - 1)).messages).toEqual([]);
    expect((await store.claim(createClaimLimits(5), LEASE, dueAt)).messages.map(({ attempts }) => attempts)).toEqual([
      2,
    ]);
  });

  test('accounts are served round-robin, so that the backlog of one account delays no message of another account by more than one claim', async () => {
    const store = await openWithAccounts({}, 'other');
    await store.accept(Array.from({ length: 1_100 }, () => createMessage()));
    expect((await store.claim(createClaimLimits(512), LEASE, Date.now())).messages).toHaveLength(512);
    await store.accept([createMessage({ accountId: 2 }), createMessage({ accountId: 2 })]);
    const { messages: claimedMessages } = await store.claim(createClaimLimits(512), LEASE, Date.now());
    expect(claimedMessages).toHaveLength(512);
    expect(claimedMessages.filter(({ accountId }) => accountId === 2)).toHaveLength(2);
  });

  test('if many accounts have a backlog, a claim serves at least 64 of them, with at most 8 messages each', async () => {
    const store = await openWithAccounts();
    await createAccounts(store, 200);
    await store.accept(Array.from({ length: 2_400 }, (_, index) => createMessage({ accountId: (index % 200) + 2 })));
    const servedAccounts = new Set<number>();
    // All 512 messages of a claim are claimed for a first attempt, because there are no retries.
    for (let round = 0; round < 4; round += 1) {
      const { messages: claimedMessages } = await store.claim(createClaimLimits(512), LEASE, Date.now());
      expect(claimedMessages).toHaveLength(512);
      const countByAccount = new Map<number, number>();
      for (const { accountId } of claimedMessages)
        countByAccount.set(accountId, (countByAccount.get(accountId) ?? 0) + 1);
      expect(Math.max(...countByAccount.values())).toBeLessThanOrEqual(8);
      expect(countByAccount.size).toBeGreaterThanOrEqual(64);
      for (const account of countByAccount.keys()) servedAccounts.add(account);
    }
    expect(servedAccounts.size).toBe(200);
  });

  async function claimAll(store: Store, maxMessages: number, maxBytes = 1_000_000): Promise<string[][]> {
    const claims: string[][] = [];
    for (let isIncomplete = true; isIncomplete && claims.length < 1_000; ) {
      const claimResult = await store.claim({ maxMessages, maxBytes }, LEASE, Date.now());
      claims.push(claimResult.messages.map(({ id }) => id));
      isIncomplete = claimResult.hasMore;
    }
    return claims;
  }

  /** Creates accounts with at most 100 concurrent calls, because a call waits at most 10 s for a connection. */
  async function createAccounts(store: Store, count: number): Promise<void> {
    for (let startIndex = 0; startIndex < count; startIndex += 100)
      await Promise.all(
        Array.from({ length: Math.min(100, count - startIndex) }, (_, index) =>
          store.createAccount(`a${startIndex + index}`, NO_LIMITS, Date.now()),
        ),
      );
  }

  test('if many accounts have one message each, a claim leases as many messages as its limit allows, and `hasMore` is true until no message is due', async () => {
    const store = await openWithAccounts();
    const accountCount = selectCaseCount(200, 3_000);
    const maxMessages = Math.floor(accountCount / 6);
    await createAccounts(store, accountCount);
    await store.accept(Array.from({ length: accountCount }, (_, index) => createMessage({ accountId: index + 2 })));
    const claims = await claimAll(store, maxMessages);
    expect(new Set(claims.flat()).size).toBe(accountCount);
    expect(claims.slice(0, 6).map((ids) => ids.length)).toEqual(Array.from({ length: 6 }, () => maxMessages));
  });

  test('a due message of one account is found among many accounts whose messages are due later', async () => {
    const store = await openWithAccounts();
    const accountCount = selectCaseCount(name === 'sqlite' ? 2_200 : 200, 4_500);
    await createAccounts(store, accountCount);
    const messages = Array.from({ length: accountCount }, (_, index) =>
      createMessage({ accountId: index + 2, lease: LEASE }),
    );
    await store.accept(messages);
    const dueIndex = accountCount - 100;
    const getDueAt = (n: number) => (n === dueIndex ? 1 : Date.now() + 3_600_000);
    await store.settle(messages.map((message, n) => createSettlement(message, { to: 'queued', dueAt: getDueAt(n) })));
    expect((await claimAll(store, 512)).flat()).toEqual([messages[dueIndex]?.id]);
    const secondClaims = await claimAll(store, 512);
    expect([secondClaims.flat(), secondClaims.length < 10]).toEqual([[], true]);
  });

  test('a claim leases no more message text than its limit, and the other messages stay due', async () => {
    const store = await openWithAccounts({}, 'other');
    const message = 'ü'.repeat(50_000);
    await store.accept(
      Array.from({ length: 20 }, (_, index) => createMessage({ message, accountId: (index % 2) + 1 })),
    );
    const claimSizes = (await claimAll(store, 100, 350_000)).map((ids) => ids.length);
    expect(Math.max(...claimSizes)).toBe(3);
    expect(claimSizes.reduce((sum, size) => sum + size, 0)).toBe(20);
  });

  test('a message larger than the limit is leased alone, for a first attempt and for a retry, even if other messages are due', async () => {
    const store = await openWithAccounts({}, 'other');
    const largeMessage = createMessage({ message: 'x'.repeat(5_000), lease: LEASE });
    const newLargeMessage = createMessage({ message: 'x'.repeat(5_000), accountId: 2 });
    await store.accept([
      largeMessage,
      newLargeMessage,
      ...Array.from({ length: 30 }, () => createMessage({ message: 'x'.repeat(400) })),
    ]);
    const event = createEntry('deferred', { at: 1 });
    await store.settle([createSettlement(largeMessage, { to: 'queued', dueAt: Date.now(), event })]);
    const claims = await claimAll(store, 100, 1_000);
    expect(claims.find((ids) => ids.includes(largeMessage.id))).toEqual([largeMessage.id]);
    expect(claims.find((ids) => ids.includes(newLargeMessage.id))).toEqual([newLargeMessage.id]);
    expect(claims.findIndex((ids) => ids.includes(largeMessage.id))).toBeLessThan(4);
    expect(claims.flat()).toHaveLength(32);
  });

  test('a claim contains messages for retries and for first attempts, even if there is a backlog of retries', async () => {
    const store = await openWithAccounts();
    const retries = Array.from({ length: 100 }, () => createMessage({ lease: LEASE }));
    await store.accept(retries);
    const deferral = { to: 'queued', dueAt: 1 } as const;
    const event = createEntry('deferred', { at: 1 });
    await store.settle(retries.map((message) => createSettlement(message, { ...deferral, event })));
    await store.accept([createMessage(), createMessage()]);
    const { messages: claimedMessages } = await store.claim(createClaimLimits(10), LEASE, Date.now());
    expect(claimedMessages).toHaveLength(10);
    expect(claimedMessages.filter(({ attempts }) => attempts === 1)).toHaveLength(2);
  });

  test('a settlement with the wrong owner, with the wrong attempt number, or for a settled lease returns `lost` and changes nothing', async () => {
    const store = await openWithAccounts();
    const message = createMessage({ lease: LEASE });
    await store.accept([message]);
    const leasedMessage = { ...message, attempts: 1, lease: LEASE };
    expect(await store.settle([createSettlement({ ...leasedMessage, lease: { ...LEASE, owner: 'node-b' } })])).toEqual([
      'lost',
    ]);
    expect(await store.settle([createSettlement({ ...leasedMessage, attempts: 2 })])).toEqual(['lost']);
    const settlement = createSettlement(message);
    expect(await store.settle([settlement])).toEqual(['settled']);
    expect(await store.settle([createSettlement(leasedMessage, { to: 'bounced', suppress: 'bounce' })])).toEqual([
      'lost',
    ]);
    const foundMessage = await store.findMessage(message.id);
    expect([foundMessage?.state, foundMessage?.events.length]).toEqual(['delivered', 2]);
    expect(foundMessage?.events[1]).toEqual(settlement.changes[0]?.event);
  });

  test('a lease that is released without an attempt is not counted as an attempt', async () => {
    const store = await openWithAccounts();
    await store.accept([createMessage()]);
    const [message] = (await store.claim(createClaimLimits(1), LEASE, Date.now())).messages;
    if (message === undefined) throw new Error('nothing leased');
    await store.settle([{ ...createSettlement(message, { to: 'queued', dueAt: Date.now() }), refundAttempt: true }]);
    expect((await store.claim(createClaimLimits(1), LEASE, Date.now())).messages[0]?.attempts).toBe(1);
  });

  test('a message whose lease is released keeps its position in the queue and its attempt count, and gets no history entry', async () => {
    const store = await openWithAccounts();
    const at = Date.now();
    const [firstMessage, secondMessage] = [createMessage({ acceptedAt: at - 5 }), createMessage({ acceptedAt: at })];
    await store.accept([firstMessage, secondMessage]);
    const [leasedMessage] = (await store.claim(createClaimLimits(1), LEASE, at)).messages;
    if (leasedMessage === undefined) throw new Error('nothing leased');
    const leaseReference = { id: leasedMessage.id, owner: LEASE.owner, attempts: 1 };
    expect(await store.release([{ ...leaseReference, owner: 'node-b' }, leaseReference, leaseReference], at)).toEqual([
      'lost',
      'settled',
      'lost',
    ]);
    expect(await store.findMessage(firstMessage.id)).toMatchObject({ state: 'queued', attempts: 0, owner: null });
    expect((await store.findMessage(firstMessage.id))?.events).toHaveLength(1);
    expect((await store.claim(createClaimLimits(1), LEASE, at)).messages.map(({ id }) => id)).toEqual([
      firstMessage.id,
    ]);
  });

  const RECOVERY = { includeAllLeases: false, includeDeadNodes: false, onUncertain: 'resend', node: 'node-a' } as const;
  const readStates = (store: Store, messages: readonly NewMessage[]) =>
    Promise.all(messages.map(async ({ id }) => (await store.findMessage(id))?.state));

  test('a node does not recover its expired leases whose outcomes it has not stored yet, with either value of POSTRIDER_ON_UNCERTAIN', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    const lease = { owner: 'node-a', until: now - 1 };
    const [unmarkedMessage, markedMessage] = [createMessage({ lease }), createMessage({ lease })];
    await store.accept([unmarkedMessage, markedMessage]);
    await store.markTransmitting([{ id: markedMessage.id, owner: 'node-a', attempts: 1 }]);
    const excludedIds = [unmarkedMessage.id, markedMessage.id];
    for (const onUncertain of ['resend', 'hold'] as const)
      expect(await store.recover({ ...RECOVERY, now, onUncertain, excludedIds })).toBe(0);
    const settlements = [unmarkedMessage, markedMessage].map((message) => createSettlement(message));
    expect(await store.settle(settlements)).toEqual(['settled', 'settled']);
  });

  test('an expired lease is recovered, and a valid lease is not', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    const messages = [
      createMessage({ lease: { owner: 'dead', until: now - 1 } }),
      createMessage({ lease: { owner: 'alive', until: now + 60_000 } }),
    ];
    await store.accept(messages);
    expect(await store.recover({ ...RECOVERY, now })).toBe(1);
    expect(await readStates(store, messages)).toEqual(['queued', 'sending']);
    expect((await store.findMessage(messages[0]?.id ?? ''))?.events.at(-1)).toMatchObject({
      verb: 'recovered',
      by: 'node-a',
    });
  });

  test.each([
    ['hold', true, 'uncertain', 1],
    ['hold', false, 'queued', 0],
    ['resend', true, 'queued', 1],
    ['resend', false, 'queued', 1],
  ] as const)(
    'with POSTRIDER_ON_UNCERTAIN=%s, a recovered message whose lease is marked as transmitting (%s) is %s and has %d counted attempts',
    async (onUncertain, isMarked, state, attempts) => {
      const store = await openWithAccounts();
      const message = createMessage({ lease: { owner: 'dead', until: 1 } });
      await store.accept([message]);
      const references = [{ id: message.id, owner: 'dead', attempts: isMarked ? 1 : 9 }];
      expect(await store.markTransmitting(references)).toEqual([isMarked ? 'settled' : 'lost']);
      await store.recover({ ...RECOVERY, now: 2, onUncertain });
      expect(await store.findMessage(message.id)).toMatchObject({ state, attempts });
    },
  );

  test('the expiry of a message depends on the time of its acceptance, even if the next attempt is due hours later', async () => {
    const store = await openWithAccounts();
    const oldTime = Date.now() - 100_000;
    const [oldMessage, newerMessage] = [createMessage({ acceptedAt: oldTime, lease: LEASE }), createMessage()];
    await store.accept([oldMessage, newerMessage]);
    await store.settle([createSettlement(oldMessage, { to: 'queued', dueAt: Date.now() + 7_200_000 })]);
    expect(await store.expire(oldTime, Date.now(), 10, 'node-a')).toEqual([oldMessage.id]);
    expect(await readStates(store, [oldMessage, newerMessage])).toEqual(['expired', 'queued']);
  });

  test('the history contains the failure of each attempt, and an expired message has the last failure', async () => {
    const store = await openWithAccounts();
    const oldTime = Date.now() - 100_000;
    const messages = [1, 2].map(() => createMessage({ acceptedAt: oldTime, lease: LEASE }));
    const [swept, expiredByNode] = messages;
    await store.accept(messages);
    const failure = {
      class: 'soft',
      category: 'greylisted',
      status: '4.7.1',
      diagnostic: '451 4.7.1 later "x"',
    } as const;
    const deferredEvent = createEntry('deferred', { failure });
    const expiredEvent = createEntry('expired', { at: 2 });
    for (const message of messages) {
      const leaseReference = { ...message, attempts: 1, lease: LEASE };
      await store.settle([createSettlement(leaseReference, { to: 'queued', dueAt: 1, event: deferredEvent })]);
    }
    const { messages: claimed } = await store.claim({ maxMessages: 9, maxBytes: 9_000_000 }, LEASE, 2);
    const claimedByNode = claimed.find(({ id }) => id === expiredByNode?.id);
    const releasedMessage = claimed.find(({ id }) => id === swept?.id);
    if (claimedByNode === undefined || releasedMessage === undefined) throw new Error('the messages were not claimed');
    await store.settle([createSettlement(claimedByNode, { to: 'expired', event: expiredEvent })]);
    await store.release([{ id: releasedMessage.id, owner: LEASE.owner, attempts: releasedMessage.attempts }], 2);
    expect(await store.expire(oldTime, Date.now(), 10, 'node-a')).toEqual([releasedMessage.id]);
    for (const { id } of messages) {
      const failures = (await store.findMessage(id))?.events.map((entry) => [entry.verb, entry.failure]);
      expect(failures).toEqual([
        ['accepted', null],
        ['deferred', failure],
        ['expired', failure],
      ]);
    }
  });

  test('a body is purged only after its message has ended', async () => {
    const store = await openWithAccounts();
    const at = Date.now() - 10_000;
    const [endedMessage, waitingMessage] = [
      createMessage({ acceptedAt: at, lease: LEASE }),
      createMessage({ acceptedAt: at }),
    ];
    await store.accept([endedMessage, waitingMessage]);
    const event = createEntry('delivered', { at: at + 5_000 });
    await store.settle([createSettlement(endedMessage, { event })]);
    expect(await store.purgeBodiesAndKeys(at + 4_999, 0, 10)).toBe(0);
    expect(await store.purgeBodiesAndKeys(at + 5_000, 0, 10)).toBe(1);
    expect([
      (await store.findMessage(endedMessage.id))?.message,
      (await store.findMessage(waitingMessage.id))?.message,
    ]).toEqual([null, waitingMessage.message]);
  });

  test('the limit of a purge step applies to idempotency keys as well as to bodies', async () => {
    const store = await openWithAccounts();
    const at = Date.now() - 100_000;
    const createKeyedMessage = (n: number) =>
      createMessage({ acceptedAt: at, idempotency: { key: `k${n}`, fingerprint: 'aa' } });
    await store.accept(Array.from({ length: 25 }, (_, index) => createKeyedMessage(index)));
    expect([
      await store.purgeBodiesAndKeys(0, at, 10),
      await store.purgeBodiesAndKeys(0, at, 10),
      await store.purgeBodiesAndKeys(0, at, 10),
    ]).toEqual([10, 10, 5]);
    expect(listKinds(await store.accept([createKeyedMessage(0), createKeyedMessage(24)]))).toEqual([
      'accepted',
      'accepted',
    ]);
  });

  test('after a clock is set back the rate period restarts, so that no account waits longer than its period', async () => {
    const store = await openWithAccounts({ rate: { limit: 1, periodMs: 1_000 } });
    const at = Date.now();
    expect(listKinds(await store.accept([createMessage({ acceptedAt: at })]))).toEqual(['accepted']);
    const earlierTime = at - 3_600_000;
    expect(await store.accept([createMessage({ acceptedAt: earlierTime })])).toMatchObject([
      { kind: 'refused', limits: { rate: { remaining: 0, resetMs: 1_000 } } },
    ]);
    expect(listKinds(await store.accept([createMessage({ acceptedAt: earlierTime + 1_000 })]))).toEqual(['accepted']);
  });

  test('due times after the latest possible time, which were stored before the clock was set back, are reset, and other due times stay unchanged', async () => {
    const store = await openWithAccounts({}, 'other');
    const now = Date.now();
    const dueTimes = [now + 100, now + 90_000_000, now + 80_000_000, now + 99];
    const messages = dueTimes.map((_, index) => createMessage({ lease: LEASE, accountId: (index % 2) + 1 }));
    await store.accept(messages);
    const createEvent = (verb: string) => ({ at: 1, verb, by: 'node-a', detail: null, failure: null, attempt: null });
    await store.settle(
      messages.map((message, n) =>
        createSettlement(message, {
          to: 'queued',
          dueAt: dueTimes[n] ?? null,
          event: createEvent(n < 2 ? 'deferred' : 'x'),
        }),
      ),
    );
    expect([
      await store.resetExcessiveDueTimes(now + 100, now, 1),
      await store.resetExcessiveDueTimes(now + 100, now, 10),
    ]).toEqual([1, 1]);
    const foundMessages = await Promise.all(messages.map(({ id }) => store.findMessage(id)));
    expect(foundMessages.map((message) => message?.dueAt)).toEqual([now + 100, now, now, now + 99]);
  });

  test('an operator can cancel or retry a queued message, and for a message in another state the refusal contains the state', async () => {
    const store = await openWithAccounts();
    const [queuedMessage, sendingMessage] = [createMessage(), createMessage({ lease: LEASE })];
    await store.accept([queuedMessage, sendingMessage]);
    expect(await store.retryMessage(queuedMessage.id, Date.now())).toEqual({ kind: 'done' });
    expect(await store.cancelMessage(queuedMessage.id, Date.now())).toEqual({ kind: 'done' });
    expect(await store.cancelMessage(sendingMessage.id, Date.now())).toEqual({ kind: 'wrong-state', state: 'sending' });
    expect(await store.retryMessage(queuedMessage.id, Date.now())).toEqual({ kind: 'wrong-state', state: 'cancelled' });
    expect(await store.cancelMessage(createMessage().id, Date.now())).toEqual({ kind: 'missing' });
    expect((await store.claim(createClaimLimits(5), LEASE, Date.now())).messages).toEqual([]);
  });

  test('messages are listed newest first and can be filtered by account, state, recipient and time', async () => {
    const store = await openWithAccounts({}, 'other');
    const at = Date.now();
    const messages = [
      createMessage({ acceptedAt: at - 50 }),
      createMessage({ acceptedAt: at, to: 'Max@example.com', accountId: 2 }),
      createMessage({ acceptedAt: at + 50, lease: LEASE }),
    ];
    await store.accept(messages);
    const noFilter = { accountId: null, state: null, to: null, since: null, limit: 10 };
    const findIds = async (filter: object) =>
      (await store.listMessages({ ...noFilter, ...filter })).map(({ id }) =>
        messages.findIndex((message) => message.id === id),
      );
    expect(await findIds({})).toEqual([2, 1, 0]);
    expect(await findIds({ limit: 1 })).toEqual([2]);
    expect(await findIds({ accountId: 2 })).toEqual([1]);
    expect(await findIds({ state: 'sending' })).toEqual([2]);
    expect(await findIds({ to: 'max@EXAMPLE.com' })).toEqual([1]);
    expect(await findIds({ since: at })).toEqual([2, 1]);
  });

  test('the queue statistics contain the number of open messages in each state, and the oldest open message', async () => {
    const store = await openWithAccounts();
    const at = Date.now() - 5_000;
    const firstMessage = createMessage({ acceptedAt: at });
    await store.accept([firstMessage, createMessage(), createMessage({ lease: LEASE })]);
    expect(await store.readQueueStatistics()).toEqual({
      queued: 2,
      sending: 1,
      uncertain: 0,
      held: 0,
      oldest: { id: firstMessage.id, acceptedAt: at },
    });
  });

  test('account names and keys are unique, and keys are listed, rotated with a grace period, and revoked', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    expect(await store.createAccount('default', NO_LIMITS, now)).toEqual({ kind: 'exists' });
    expect(await store.createKey('unknown', { name: 'x', prefix: 'pr_x', hash: 'h0', expiresAt: null }, now)).toEqual({
      kind: 'missing',
    });
    const existingKey = { name: 'web', prefix: 'pr_abc', hash: 'h1', expiresAt: null };
    const createdKey = expectDone(await store.createKey('default', existingKey, now));
    expect(await store.createKey('default', existingKey, now)).toEqual({ kind: 'exists' });
    expect(await store.importKey('default', existingKey, now)).toEqual({ kind: 'exists' });
    const rotatedKey = expectDone(
      await store.rotateKey(createdKey.id, { prefix: 'pr_def', hash: 'h2' }, now + 1_000, now),
    );
    expect(rotatedKey).toMatchObject({ name: 'web', prefix: 'pr_def', hash: 'h2', expiresAt: null });
    await store.revokeKey(rotatedKey.id, now + 5);
    await store.updateKeysLastUsed([{ id: createdKey.id, at: now + 7 }]);
    const listedKeys = expectDone(await store.listKeys('default'));
    expect(listedKeys.map(({ expiresAt, revokedAt, lastUsedAt }) => [expiresAt, revokedAt, lastUsedAt])).toEqual([
      [now + 1_000, null, now + 7],
      [null, now + 5, null],
    ]);
    expect(await store.rotateKey(rotatedKey.id, { prefix: 'p', hash: 'h3' }, now, now + 6)).toEqual({
      kind: 'missing',
    });
  });

  const FIRST_KEY = { name: 'first', prefix: 'pr_abc', hash: 'h1' };

  test.each([FIRST_KEY, null])(
    'the first account is created with its key, if one is given (%j), and only in an empty store',
    async (key) => {
      const store = await open();
      const first = await store.createFirstAccount('default', key, 5);
      const expectedKey = key === null ? null : { ...key, accountId: first?.account.id };
      expect(first).toMatchObject({ account: { name: 'default' }, key: expectedKey });
      expect(await store.createFirstAccount('second', { ...FIRST_KEY, hash: 'h2' }, 6)).toBeNull();
      expect((await store.listAccounts()).map(({ name: accountName }) => accountName)).toEqual(['default']);
      expect(await store.listKeys('default')).toMatchObject({ kind: 'done', value: key === null ? [] : [key] });
    },
  );

  test('a watch of the directory first reports all entries, and then each change', async () => {
    const store = await openWithAccounts({ volume: 3 });
    const reportedChanges: DirectoryChanges[] = [];
    await store.watchDirectory((changes) => reportedChanges.push(changes));
    expect(reportedChanges[0]?.accounts.map(({ name, limits }) => [name, limits.volume])).toEqual([['default', 3]]);
    await store.lockAccount('default', 'test', Date.now());
    await expect.poll(() => reportedChanges.at(-1)?.accounts[0]?.locked?.reason).toBe('test');
    expect(reportedChanges.at(-1)?.revision).toBeGreaterThan(reportedChanges[0]?.revision ?? 0);
  });

  test('a lookup of keys by their digests returns each key with its account as soon as the key is created, and omits unknown digests', async () => {
    const store = await openWithAccounts();
    const hashes = Array.from({ length: 1_000 }, (_, index) => index.toString(16).padStart(64, '0'));
    expect(await store.findKeys(hashes)).toMatchObject({ accounts: [], keys: [] });
    expect(await store.findKeys([])).toMatchObject({ accounts: [], keys: [] });
    const now = Date.now();
    await store.createAccount('second', NO_LIMITS, now);
    const [firstHash, lastHash] = [hashes[0] ?? '', hashes[999] ?? ''];
    for (const [account, hash] of [
      ['default', firstHash],
      ['second', lastHash],
    ] as const) {
      const createdKey = expectDone(
        await store.createKey(account, { name: account, prefix: 'pr_', hash, expiresAt: null }, now),
      );
      const foundKeys = await store.findKeys([hash]);
      expect(foundKeys.keys).toEqual([createdKey]);
      expect(foundKeys.accounts.map(({ name }) => name)).toEqual([account]);
    }
    await store.lockAccount('second', 'abuse', now);
    const reportedChanges: DirectoryChanges[] = [];
    await store.watchDirectory((changes) => reportedChanges.push(changes));
    const foundKeys = await store.findKeys(hashes);
    expect(foundKeys.keys.map(({ hash }) => hash).sort()).toEqual([firstHash, lastHash]);
    expect(foundKeys.accounts.map(({ name, locked }) => [name, locked?.reason ?? null]).sort()).toEqual([
      ['default', null],
      ['second', 'abuse'],
    ]);
    expect(foundKeys.revision).toBe(reportedChanges[0]?.revision);
  });

  test('the greatest stored id is found, and an empty store has none', async () => {
    const store = await openWithAccounts();
    expect(await store.findNewestId()).toBeNull();
    const messages = [createMessage(), createMessage()];
    await store.accept(messages);
    expect(await store.findNewestId()).toBe(messages[1]?.id);
  });

  test('a settlement with a state transition that is not allowed is rejected and changes nothing', async () => {
    const store = await openWithAccounts();
    const [message, otherMessage] = [createMessage({ lease: LEASE }), createMessage({ lease: LEASE })];
    await store.accept([message, otherMessage]);
    const leasedMessage = { ...message, attempts: 1, lease: LEASE };
    await expect(store.settle([createSettlement(leasedMessage, { to: 'cancelled' })])).rejects.toThrow(
      'from sending to cancelled',
    );
    const [deliveredChange] = createSettlement(leasedMessage).changes;
    const [expiredChange] = createSettlement(leasedMessage, { to: 'expired' }).changes;
    if (deliveredChange === undefined || expiredChange === undefined) throw new Error('no change');
    const doubleSettlement = { ...createSettlement(leasedMessage), changes: [deliveredChange, expiredChange] };
    await expect(store.settle([doubleSettlement])).rejects.toThrow('from delivered to expired');
    expect((await store.findMessage(message.id))?.state).toBe('sending');
  });

  test('a closed store rejects calls immediately', async () => {
    const store = await open();
    await store.close();
    await expect(store.accept([createMessage()])).rejects.toThrow('the store is closed');
  });
});
