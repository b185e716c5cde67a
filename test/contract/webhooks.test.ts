import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { NewMessage } from '../../src/model/message.ts';
import {
  LAST_SUCCESS_STEP_MS,
  type LeasedDelivery,
  MAX_FAILING_MS,
  type NewWebhook,
  type RecordedMessageEvent,
  WEBHOOK_EVENT_TYPES,
  type Webhook,
  type WebhookEventType,
} from '../../src/model/webhook.ts';
import type { DeliveryClaimLimits, Store } from '../../src/store/contract.ts';
import { createAttempt, createMessage, createMessageIdAt, createSettlement } from '../rig/messages.ts';
import { COMPLAINT, createReport, HARD_BOUNCE } from '../rig/reports.ts';
import { STORES } from '../rig/stores.ts';

const LEASE = { owner: 'node-a', until: Date.now() + 600_000 };
const LEASE_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
const CLAIM_LIMITS = { maxDeliveries: 1_000, freeSlots: [], defaultFreeSlots: 1_000, after: 0 };
const EVENT_VERBS: readonly string[] = WEBHOOK_EVENT_TYPES.filter((type) => type.startsWith('message.')).map((type) =>
  type.slice('message.'.length),
);

const createSeed = () => randomBytes(8).toString('hex');
const createEndpoint = (members: Partial<NewWebhook> = {}): NewWebhook => ({
  ...{
    url: 'https://hooks.example.com/',
    sealedUrl: 'sealed-url',
    account: null,
    name: null,
    events: WEBHOOK_EVENT_TYPES,
    sealed: 'sealed-1',
  },
  ...members,
});

describe.each(STORES)('the $name store', ({ openWithAccounts }) => {
  async function createWebhook(store: Store, members: Partial<NewWebhook> = {}): Promise<Webhook> {
    const result = await store.createWebhook(createEndpoint(members), Date.now());
    if (result.kind !== 'done') throw new Error(`the endpoint was not created: ${result.kind}`);
    return result.value;
  }

  async function fanOut(
    store: Store,
    now = Date.now(),
    keptSince = 0,
  ): Promise<{ events: number; deliveries: number }> {
    const totalCounts = { events: 0, deliveries: 0 };
    for (;;) {
      const { events, deliveries, hasMore } = await store.fanOutEvents(now, createSeed(), 100, keptSince);
      totalCounts.events += events;
      totalCounts.deliveries += deliveries;
      if (!hasMore) return totalCounts;
    }
  }

  const claimDeliveries = async (
    store: Store,
    now = Date.now(),
    owner = 'node-a',
  ): Promise<readonly LeasedDelivery[]> =>
    (await store.claimDeliveries(CLAIM_LIMITS, owner, now + LEASE_MS, now)).deliveries;

  async function claimAllDeliveries(store: Store, now = Date.now()): Promise<readonly LeasedDelivery[]> {
    await fanOut(store, now);
    return claimDeliveries(store, now);
  }

  const settleDelivery = (
    store: Store,
    { id, webhookId, owner, lease }: LeasedDelivery,
    result: Parameters<Store['settleDeliveries']>[0][number]['result'],
    at = Date.now(),
    {
      isGone = false,
      isInstallationFault = false,
    }: { readonly isGone?: boolean; readonly isInstallationFault?: boolean } = {},
  ) => {
    const isDelivered = result.kind === 'delivered';
    const attempt = {
      at,
      durationMs: 5,
      status: isDelivered ? 200 : 500,
      error: isDelivered ? null : 'status 500',
      body: '',
    };
    return store.settleDeliveries([{ id, webhookId, owner, lease, attempt, result, isGone, isInstallationFault }], at);
  };

  const listTypes = (deliveries: readonly LeasedDelivery[]) => deliveries.map(({ event }) => event.type);

  const settleDeliveredMessage = (store: Store, message: NewMessage) => store.settle([createSettlement(message)]);

  async function createMessagesInAllStates(store: Store): Promise<readonly NewMessage[]> {
    const now = Date.now();
    await store.addSuppressions('default', [{ address: 'gone@example.com', reason: 'manual', source: null, at: now }]);
    const createLeasedMessage = (to: string): NewMessage => createMessage({ to, lease: LEASE });
    const [delivered, bounced, deferred, complained, confirmed, uncertain, reported] = [
      ...['delivered', 'bounced', 'deferred', 'complained', 'confirmed', 'uncertain', 'reported'],
    ].map((name) => createLeasedMessage(`${name}@example.com`)) as [NewMessage, ...NewMessage[]] & NewMessage[];
    const [suppressed, claimed, cancelled] = [
      createMessage({ to: 'gone@example.com' }),
      createMessage({ to: 'later@example.com' }),
      createMessage({ to: 'cancelled@example.com' }),
    ];
    const oldMessage = createMessage({ acceptedAt: now - 3_600_000 });
    const createdMessages = [delivered, bounced, deferred, complained, confirmed, uncertain, reported].filter(
      (m) => m !== undefined,
    );
    await store.accept([oldMessage, ...createdMessages, suppressed, claimed, cancelled]);
    if (bounced === undefined || deferred === undefined || complained === undefined) throw new Error('not created');
    if (confirmed === undefined || uncertain === undefined || reported === undefined) throw new Error('not created');
    await settleDeliveredMessage(store, delivered);
    const reply = { stage: 'rcpt', code: 550, enhanced: '5.1.1', text: 'no such user' } as const;
    const attempt = createAttempt({ kind: 'bounced', reply, reason: 'recipient-unknown', suppress: true });
    const createEntry = (verb: string) => ({ at: now, verb, by: 'node-a', detail: 'a reply', failure: null, attempt });
    await store.settle([
      createSettlement(bounced, { to: 'bounced', event: createEntry('bounced'), suppress: 'bounce' }),
      createSettlement(deferred, { to: 'queued', dueAt: now + 1, event: createEntry('deferred') }),
      createSettlement(uncertain, { to: 'uncertain', event: createEntry('uncertain') }),
    ]);
    for (const message of [complained, confirmed, reported]) await settleDeliveredMessage(store, message);
    await store.recordFeedback([
      createReport({ id: complained.id }, COMPLAINT),
      createReport({ id: reported.id }, HARD_BOUNCE),
      createReport({ id: confirmed.id }, { ...HARD_BOUNCE, kind: 'confirmed' }, { isProviderEvent: true }),
    ]);
    await store.recordFeedback([
      createReport(
        { id: delivered.id },
        { ...HARD_BOUNCE, kind: 'delayed', failure: { class: 'soft', category: 'greylisted' } },
      ),
    ]);
    await store.cancelMessage(cancelled.id, now);
    await store.retryMessage(uncertain.id, now);
    await store.expire(now - 3_000_000, now, 10, 'node-a');
    await store.addSuppressions('*', [{ address: 'later@example.com', reason: 'manual', source: null, at: now }]);
    const { messages } = await store.claim(
      { maxMessages: 10, maxBytes: 1e6 },
      { owner: 'node-b', until: now },
      now + 10,
    );
    expect(messages.map(({ id }) => id).toSorted()).toEqual([deferred.id, uncertain.id].toSorted());
    await store.recover({
      ...{ now: now + 20, includeAllLeases: true, includeDeadNodes: true, onUncertain: 'resend', node: 'node-a' },
    });
    return [oldMessage, ...createdMessages, suppressed, claimed, cancelled];
  }

  test('each history entry whose verb is an event type is recorded as exactly one event, with the sequence number of the entry', async () => {
    const store = await openWithAccounts();
    await createWebhook(store);
    const messages = await createMessagesInAllStates(store);
    const deliveries = await claimAllDeliveries(store);
    const events = deliveries.map(({ event }) => event).filter((event) => event.kind === 'message');
    for (const { id } of messages) {
      const history = (await store.findMessage(id))?.events ?? [];
      const expected = history.flatMap(({ attempt, ...entry }, sequence) => {
        const { lineOffsetsMs: _, ...reducedAttempt } = attempt ?? {};
        const reducedEntry = { ...entry, attempt: attempt === null ? null : { ...reducedAttempt, transcript: [] } };
        return EVENT_VERBS.includes(entry.verb)
          ? [{ type: `message.${entry.verb}`, sequence, entry: reducedEntry }]
          : [];
      });
      const messageEvents = events.filter((event) => event.id === id).toSorted((a, b) => a.sequence - b.sequence);
      expect(messageEvents.map(({ type, sequence, entry }) => ({ type, sequence, entry }))).toEqual(expected);
    }
    expect(new Set(events.map(({ type }) => type)).size).toBe(EVENT_VERBS.length);
    expect(new Set(deliveries.map(({ id }) => id)).size).toBe(deliveries.length);
    // No event remains.
    expect(await fanOut(store)).toEqual({ events: 0, deliveries: 0 });
  });

  test('an event contains the fields of the message, the state of the message after the change, and whether the recipient was suppressed', async () => {
    const store = await openWithAccounts();
    await createWebhook(store);
    await createMessagesInAllStates(store);
    const events = (await claimAllDeliveries(store))
      .map(({ event }) => event)
      .filter((event) => event.kind === 'message');
    const findEvent = (type: WebhookEventType, to: string) =>
      events.find((event) => event.type === type && event.to === to) as RecordedMessageEvent;
    expect(findEvent('message.bounced', 'bounced@example.com')).toMatchObject({
      ...{ account: 'default', from: 'shop@example.org', subject: 'Your receipt', sequence: 1 },
      ...{ state: 'bounced', suppressed: true },
    });
    expect(findEvent('message.bounced', 'reported@example.com')).toMatchObject({ state: 'bounced', suppressed: true });
    expect(findEvent('message.accepted', 'bounced@example.com')).toMatchObject({ state: 'sending', sequence: 0 });
    expect(findEvent('message.accepted', 'gone@example.com')).toMatchObject({ state: 'suppressed', sequence: 0 });
    expect(findEvent('message.accepted', 'cancelled@example.com')).toMatchObject({ state: 'queued', sequence: 0 });
    expect(findEvent('message.confirmed', 'confirmed@example.com')).toMatchObject({ state: 'delivered', sequence: 2 });
    expect(findEvent('message.deferred', 'deferred@example.com')).toMatchObject({ state: 'queued', suppressed: false });
    expect(findEvent('message.complained', 'complained@example.com')).toMatchObject({
      state: 'complained',
      sequence: 2,
    });
  });

  test('changes of domains, accounts and suppression lists are recorded once each with their data', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    await createWebhook(store);
    await store.addSuppressions('default', [{ address: 'a@example.com', reason: 'manual', source: null, at: now }]);
    await store.addSuppressions('default', [{ address: 'a@example.com', reason: 'manual', source: null, at: now }]);
    await store.removeSuppression('default', 'a@example.com', undefined, { name: 'cli:test', at: now });
    await store.removeSuppression('default', 'a@example.com');
    const step = { entry: null, fileBytes: 1, rowCount: 1, skippedCount: 0, end: 'complete' } as const;
    await store.importSuppressions(
      '*',
      [{ address: 'b@example.com', reason: 'complaint', source: null, at: now }],
      step,
    );
    const addResult = await store.addDomain('default', { name: 'example.com', subdomains: false, keys: [] }, now);
    const domain = addResult.kind === 'done' ? addResult.value : null;
    const update = { id: domain?.id ?? 0, keys: [], failingSince: null };
    const check = {
      purpose: 'dkim',
      type: 'TXT',
      name: 'a._domainkey.example.com',
      value: 'v',
      found: 'found',
    } as const;
    const checks = [{ ...check, seen: ['v'], detail: 'found' }];
    const firstUpdate = await store.updateDomain({
      ...{ ...update, checks, status: 'authenticated', checkedAt: now, authenticatedAt: now },
      revision: domain?.revision ?? 0,
    });
    const revision = 'value' in firstUpdate ? firstUpdate.value.revision : 0;
    await store.updateDomain({
      ...{ ...update, checks, status: 'failing', checkedAt: now + 1, authenticatedAt: now, failingSince: now + 1 },
      revision,
    });
    await store.lockAccount('default', 'abuse', now);
    await store.unlockAccount('default', now + 5);
    const events = (await claimAllDeliveries(store)).map(({ event }) => event);
    const suppression = { address: 'a@example.com', reason: 'manual', source: null };
    const figures = { messages: 0, bounces: 0, complaints: 0 };
    const limit = { bounceRate: 0.1, complaintRate: 0.0015 };
    const { value: _, seen: __, ...record } = { ...check, seen: [], detail: 'found' };
    expect(events).toEqual([
      { kind: 'resource', type: 'suppression.added', at: now, data: { account: 'default', ...suppression } },
      { kind: 'resource', type: 'suppression.removed', at: now, data: { account: 'default', ...suppression } },
      {
        ...{ kind: 'resource', type: 'suppression.added', at: now },
        data: { account: '*', address: 'b@example.com', reason: 'complaint', source: null },
      },
      {
        ...{ kind: 'resource', type: 'domain.authenticated', at: now },
        data: { domain: 'example.com', account: 'default', status: 'authenticated', records: [record] },
      },
      {
        ...{ kind: 'resource', type: 'domain.failing', at: now + 1 },
        data: { domain: 'example.com', account: 'default', status: 'failing', records: [record] },
      },
      {
        kind: 'resource',
        type: 'account.locked',
        at: now,
        data: { account: 'default', reason: 'abuse', figures, limit },
      },
      {
        kind: 'resource',
        type: 'account.unlocked',
        at: now + 5,
        data: { account: 'default', reason: null, figures, limit },
      },
    ]);
  });

  test('if bounces first cause a warning and then a lock of the account, both changes and each suppressed recipient are recorded as events', async () => {
    const store = await openWithAccounts();
    await createWebhook(store, { events: ['account.warned', 'account.locked', 'suppression.added'] });
    const messages = Array.from({ length: 12 }, (_, index) =>
      createMessage({ to: `r${index}@example${index}.com`, lease: LEASE }),
    );
    await store.accept(messages);
    for (const message of messages) {
      await store.settle([createSettlement(message, { to: 'bounced', suppress: 'bounce' })]);
    }
    const events = (await claimAllDeliveries(store)).map(({ event }) => event);
    const types = events.map(({ type }) => type);
    expect(types.filter((type) => type === 'suppression.added')).toHaveLength(12);
    expect(types.filter((type) => type === 'account.warned')).toHaveLength(1);
    expect(types.filter((type) => type === 'account.locked')).toHaveLength(1);
    expect(events.find(({ type }) => type === 'suppression.added')).toMatchObject({
      data: { account: 'default', address: 'r0@example0.com', reason: 'bounce', source: messages[0]?.id },
    });
    expect(events.find(({ type }) => type === 'account.locked')).toMatchObject({
      data: { account: 'default', figures: { bounces: 10 } },
    });
  });

  test('without an endpoint that subscribes to a type, no event of the type is recorded', async () => {
    const store = await openWithAccounts();
    await createMessagesInAllStates(store);
    expect(await fanOut(store)).toEqual({ events: 0, deliveries: 0 });
    const webhook = await createWebhook(store, { events: ['message.bounced'] });
    await store.accept([createMessage({ lease: LEASE })]);
    expect(await fanOut(store)).toEqual({ events: 0, deliveries: 0 });
    await store.updateWebhook(webhook.id, { events: ['message.accepted'] });
    await store.accept([createMessage()]);
    expect(listTypes(await claimAllDeliveries(store))).toEqual(['message.accepted']);
    await store.deleteWebhook(webhook.id);
    await store.accept([createMessage()]);
    expect(await fanOut(store)).toEqual({ events: 0, deliveries: 0 });
    expect(await claimDeliveries(store, Date.now() + 10 * LEASE_MS)).toEqual([]);
    expect(await store.findWebhook(webhook.id)).toBeNull();
    expect(await store.purgeDeliveries(0, 0, 10)).toBe(1);
  });

  test('an endpoint receives the events of its types and of its account, and none from before its creation', async () => {
    const store = await openWithAccounts({}, 'other');
    const unrestrictedWebhook = await createWebhook(store, { events: ['message.accepted'] });
    await store.accept([createMessage()]);
    const accountWebhook = await createWebhook(store, {
      events: ['message.accepted', 'suppression.added'],
      account: 'other',
    });
    expect(accountWebhook).toMatchObject({
      account: 'other',
      accountId: 2,
      disabled: null,
      events: ['message.accepted', 'suppression.added'],
    });
    await store.accept([createMessage(), createMessage({ accountId: 2 })]);
    const entry = { address: 'a@example.com', reason: 'manual', source: null, at: 1 } as const;
    await store.addSuppressions('*', [entry]);
    await store.addSuppressions('other', [entry]);
    const deliveries = await claimAllDeliveries(store);
    const listReceivedTypes = ({ id }: Webhook) =>
      listTypes(deliveries.filter(({ webhookId }) => webhookId === id)).toSorted();
    expect(listReceivedTypes(unrestrictedWebhook)).toEqual([
      'message.accepted',
      'message.accepted',
      'message.accepted',
    ]);
    expect(listReceivedTypes(accountWebhook)).toEqual(['message.accepted', 'suppression.added']);
  });

  test('an endpoint is refused if its account is unknown', async () => {
    const store = await openWithAccounts();
    expect(await store.createWebhook(createEndpoint({ account: 'nobody' }), Date.now())).toEqual({ kind: 'missing' });
  });

  test('a delivery is leased by one node, is due again after the lease has expired, and can be settled only with the current lease', async () => {
    const store = await openWithAccounts();
    await createWebhook(store, { events: ['message.accepted'] });
    await store.accept([createMessage()]);
    const now = Date.now();
    const [firstLease] = await claimAllDeliveries(store, now);
    expect(firstLease).toMatchObject({
      sealedUrl: 'sealed-url',
      sealed: ['sealed-1'],
      attempt: 1,
      owner: 'node-a',
    });
    expect(await claimDeliveries(store, now + LEASE_MS - 1, 'node-b')).toEqual([]);
    const [secondLease] = await claimDeliveries(store, now + LEASE_MS, 'node-b');
    if (firstLease === undefined || secondLease === undefined) throw new Error('not leased');
    expect(secondLease.id).toBe(firstLease.id);
    expect(await settleDelivery(store, firstLease, { kind: 'delivered' }, now)).toEqual([{ kind: 'lost' }]);
    await store.releaseDeliveryLeases([secondLease], now);
    const [thirdLease] = await claimDeliveries(store, now, 'node-b');
    if (thirdLease === undefined) throw new Error('not leased');
    expect(thirdLease.attempt).toBe(1);
    expect(await settleDelivery(store, thirdLease, { kind: 'retry', dueAt: now + 5_000 }, now)).toEqual([
      { kind: 'settled', disabled: null },
    ]);
    expect(await claimDeliveries(store, now + 4_999)).toEqual([]);
    const [fourthLease] = await claimDeliveries(store, now + 5_000);
    if (fourthLease === undefined) throw new Error('not leased');
    expect(fourthLease).toMatchObject({ attempt: 2, event: firstLease.event });
    await settleDelivery(store, fourthLease, { kind: 'delivered' }, now + 6_000);
    const deliveryPage = await store.listDeliveries(firstLease.webhookId, null, null, 10);
    expect(deliveryPage).toMatchObject({
      value: [
        { id: firstLease.id, status: 'delivered', nextAttemptAt: null, attempts: [{ status: 500 }, { status: 200 }] },
      ],
    });
    expect((await store.findWebhook(firstLease.webhookId))?.failingSince).toBeNull();
  });

  test('deliveries that a dead node leased are due at once, and deliveries that live nodes leased or that wait for a later attempt stay unchanged', async () => {
    const store = await openWithAccounts();
    await createWebhook(store, { events: ['message.accepted'] });
    await store.accept([createMessage(), createMessage(), createMessage(), createMessage()]);
    const now = Date.now();
    const identity = { roles: ['deliver'], version: '1.2.3' };
    await store.recordHeartbeat({ name: 'live', ...identity }, LEASE_MS, now);
    await store.recordHeartbeat({ name: 'dead', ...identity }, -1, now);
    await fanOut(store, now);
    const claimDelivery = async (owner: string) => {
      const limits = { ...CLAIM_LIMITS, maxDeliveries: 1 };
      const [delivery] = (await store.claimDeliveries(limits, owner, now + LEASE_MS, now)).deliveries;
      if (delivery === undefined) throw new Error('not leased');
      return delivery;
    };
    const deadNodeDelivery = await claimDelivery('dead');
    const [liveNodeDelivery, callerDelivery, failed] = [
      await claimDelivery('live'),
      await claimDelivery('node-a'),
      await claimDelivery('node-a'),
    ];
    await settleDelivery(store, failed, { kind: 'retry', dueAt: now + 5_000 }, now);
    const recovery = { now, until: now + LEASE_MS, node: 'node-a', includeAllLeases: false };
    expect(await store.recoverDeliveries(recovery)).toBe(1);
    expect(await store.recoverDeliveries(recovery)).toBe(0);
    const [repeatedDelivery, ...others] = await claimDeliveries(store, now, 'node-b');
    expect([repeatedDelivery?.id, others]).toEqual([deadNodeDelivery.id, []]);
    expect(await settleDelivery(store, deadNodeDelivery, { kind: 'delivered' }, now)).toEqual([{ kind: 'lost' }]);
    expect(await store.recoverDeliveries({ ...recovery, includeAllLeases: true })).toBe(2);
    const recoveredDeliveries = await claimDeliveries(store, now, 'node-a');
    expect(recoveredDeliveries.map(({ id }) => id).toSorted()).toEqual(
      [deadNodeDelivery.id, liveNodeDelivery.id].toSorted(),
    );
    expect(await settleDelivery(store, callerDelivery, { kind: 'delivered' }, now)).toEqual([
      { kind: 'settled', disabled: null },
    ]);
  });

  test('a node ends its leases from claims whose result it did not receive, but neither the leases that it knows nor those of other nodes', async () => {
    const store = await openWithAccounts();
    const { id } = await createWebhook(store, { events: ['message.accepted'] });
    await store.accept([createMessage(), createMessage(), createMessage()]);
    const now = Date.now();
    await fanOut(store, now);
    const claimOne = async (owner: string) => {
      const limits = { ...CLAIM_LIMITS, maxDeliveries: 1 };
      return (await store.claimDeliveries(limits, owner, now + LEASE_MS, now)).deliveries[0]?.id ?? '';
    };
    const [lost, known] = [await claimOne('node-a'), await claimOne('node-a')];
    await claimOne('node-b');
    const recovery = { now, until: now + LEASE_MS, node: 'node-a', includeAllLeases: false, ownLeasesExcept: [known] };
    expect(await store.recoverDeliveries(recovery)).toBe(1);
    expect(await store.recoverDeliveries(recovery)).toBe(0);
    expect(await store.listDeliveryLeases(id, now, now + LEASE_MS)).toHaveLength(2);
    expect((await claimDeliveries(store, now)).map((delivery) => delivery.id)).toEqual([lost]);
    expect(await store.recoverDeliveries({ ...recovery, ownLeasesExcept: [] })).toBe(2);
  });

  test('events that are older than the retention period are removed in bounded steps, and no delivery is created for them', async () => {
    const store = await openWithAccounts();
    const { id } = await createWebhook(store);
    const now = Date.now();
    const acceptedAt = now - 31 * DAY_MS;
    const oldMessages = Array.from({ length: 3 }, () =>
      createMessage({ acceptedAt, id: createMessageIdAt(acceptedAt) }),
    );
    const [firstMessage] = oldMessages;
    if (firstMessage === undefined) throw new Error('not created');
    await store.accept(oldMessages);
    await store.addSuppressions('default', [
      { address: 'a@example.com', reason: 'manual', source: null, at: acceptedAt },
    ]);
    // A recent event of an old message is kept.
    await store.cancelMessage(firstMessage.id, now);
    await store.accept([createMessage()]);
    const keptSince = now - 30 * DAY_MS;
    expect(await store.fanOutEvents(now, createSeed(), 2, keptSince)).toEqual({
      ...{ events: 2, deliveries: 0, hasMore: true },
    });
    await fanOut(store, now, keptSince);
    const claimedDeliveries = await claimDeliveries(store);
    expect(listTypes(claimedDeliveries).toSorted()).toEqual(['message.accepted', 'message.cancelled']);
    expect(await store.readWebhookStatistics()).toMatchObject([{ webhookId: id, pendingCount: 2 }]);
    expect(await fanOut(store, now, keptSince)).toEqual({ events: 0, deliveries: 0 });
  });

  test('a claim leases for each endpoint at most as many deliveries as the endpoint has free slots, so that the backlog of one endpoint does not delay the deliveries of another endpoint', async () => {
    const store = await openWithAccounts();
    const slowWebhook = await createWebhook(store, { events: ['message.accepted'] });
    await store.accept(Array.from({ length: 30 }, () => createMessage()));
    const now = Date.now();
    await fanOut(store, now);
    const otherWebhook = await createWebhook(store, { events: ['message.accepted'] });
    await store.accept([createMessage(), createMessage(), createMessage()]);
    await fanOut(store, now);
    const freeSlots = [slowWebhook, otherWebhook].map(({ id }) => ({ webhookId: id, count: 2 }));
    const claimWithLimits = (limits: Partial<DeliveryClaimLimits>) =>
      store.claimDeliveries({ ...CLAIM_LIMITS, ...limits }, 'node-a', now + LEASE_MS, now);
    const claimResult = await claimWithLimits({ maxDeliveries: 10, freeSlots });
    const countDeliveries = ({ id }: Webhook) =>
      claimResult.deliveries.filter(({ webhookId }) => webhookId === id).length;
    expect([countDeliveries(slowWebhook), countDeliveries(otherWebhook), claimResult.next]).toEqual([2, 2, null]);
    // If the deliveries of one endpoint use the whole limit of a claim, the next claim begins with the next endpoint.
    const firstClaim = await claimWithLimits({ maxDeliveries: 1 });
    expect(firstClaim.deliveries.map(({ webhookId }) => webhookId)).toEqual([slowWebhook.id]);
    const secondClaim = await claimWithLimits({ maxDeliveries: 1, after: firstClaim.next ?? 0 });
    expect(secondClaim.deliveries.map(({ webhookId }) => webhookId)).toEqual([otherWebhook.id]);
    expect(await store.readWebhookStatistics()).toEqual([
      { webhookId: slowWebhook.id, pendingCount: 33, oldestPendingAt: now, failedCount: 0 },
      { webhookId: otherWebhook.id, pendingCount: 3, oldestPendingAt: now, failedCount: 0 },
    ]);
  });

  test('the events of a disabled endpoint are stored and not sent, and all of them are due after it is enabled', async () => {
    const store = await openWithAccounts();
    const webhook = await createWebhook(store, { events: ['message.accepted'] });
    await store.accept([createMessage()]);
    const now = Date.now();
    const [failed] = await claimAllDeliveries(store, now);
    if (failed === undefined) throw new Error('not leased');
    await settleDelivery(store, failed, { kind: 'retry', dueAt: now + 3_600_000 }, now);
    expect(await store.disableWebhook(webhook.id, now)).toMatchObject({
      value: { disabled: { reason: 'operator', at: now } },
    });
    await store.accept([createMessage()]);
    expect(await claimAllDeliveries(store, now)).toEqual([]);
    expect(await store.addTestDelivery(webhook.id, createMessageIdAt(now), now)).toEqual({ kind: 'exists' });
    expect(await store.enableWebhook(webhook.id)).toMatchObject({ value: { disabled: null, failingSince: null } });
    expect(await store.releaseDeliveries(webhook.id, now, 10)).toBe(1);
    expect(await claimDeliveries(store, now)).toHaveLength(2);
  });

  test('the response 410 disables the endpoint at once, and other endpoints receive an event about it', async () => {
    const store = await openWithAccounts();
    const webhook = await createWebhook(store, { events: ['message.accepted', 'webhook.disabled'] });
    await store.accept([createMessage()]);
    const now = Date.now();
    const [delivery] = await claimAllDeliveries(store, now);
    const otherWebhook = await createWebhook(store, { events: ['webhook.disabled'] });
    if (delivery === undefined) throw new Error('not leased');
    expect(await settleDelivery(store, delivery, { kind: 'retry', dueAt: now }, now, { isGone: true })).toEqual([
      { kind: 'settled', disabled: 'gone' },
    ]);
    expect((await store.findWebhook(webhook.id))?.disabled).toEqual({ reason: 'gone', at: now });
    const deliveries = await claimAllDeliveries(store, now);
    expect(deliveries.map(({ webhookId, event }) => [webhookId, event.type])).toEqual([
      [otherWebhook.id, 'webhook.disabled'],
    ]);
    expect(deliveries[0]?.event).toMatchObject({ data: { id: `wh_${webhook.id}`, reason: 'gone', account: null } });
  });

  test('an endpoint is disabled if a certain period has passed since a failed attempt without a success, and a success ends the period', async () => {
    const store = await openWithAccounts();
    const webhook = await createWebhook(store, { events: ['message.accepted'] });
    const observer = await createWebhook(store, { events: ['webhook.disabled'] });
    await store.accept(Array.from({ length: 4 }, () => createMessage()));
    const now = Date.now();
    const [one, two, three, four] = await claimAllDeliveries(store, now);
    if (!one || !two || !three || !four) throw new Error('not leased');
    await settleDelivery(store, one, { kind: 'failed' }, now);
    expect((await store.findWebhook(webhook.id))?.failingSince).toBe(now);
    await settleDelivery(store, two, { kind: 'delivered' }, now + 1);
    expect((await store.findWebhook(webhook.id))?.failingSince).toBeNull();
    expect(await store.disableFailingWebhooks(now + 10, now + 10, 10)).toEqual([]);
    await settleDelivery(store, three, { kind: 'failed' }, now + 10);
    expect(await settleDelivery(store, four, { kind: 'failed' }, now + MAX_FAILING_MS)).toEqual([
      { kind: 'settled', disabled: null },
    ]);
    expect(await store.disableFailingWebhooks(now + 9, now + 20, 10)).toEqual([]);
    expect(await store.disableFailingWebhooks(now + 10, now + 20, 10)).toEqual([webhook.id]);
    expect(await store.disableFailingWebhooks(now + 10, now + 30, 10)).toEqual([]);
    expect((await store.findWebhook(webhook.id))?.disabled).toEqual({ reason: 'failing', at: now + 20 });
    const deliveries = await claimAllDeliveries(store, now);
    expect(deliveries.map(({ webhookId, event }) => [webhookId, event.type])).toEqual([
      [observer.id, 'webhook.disabled'],
    ]);
    expect(deliveries[0]?.event).toMatchObject({ data: { id: `wh_${webhook.id}`, reason: 'failing' } });
    // Enabling the endpoint ends the period without a success.
    await store.enableWebhook(webhook.id);
    expect(await store.disableFailingWebhooks(now + 1e9, now + 1e9, 10)).toEqual([]);
  });

  test('a failed attempt that a fault of the installation caused does not count as a failure of the endpoint', async () => {
    const store = await openWithAccounts();
    const { id } = await createWebhook(store, { events: ['message.accepted'] });
    await store.accept(Array.from({ length: 4 }, () => createMessage()));
    const now = Date.now();
    const [endedDelivery, retriedDelivery, failedDelivery, lastDelivery] = await claimAllDeliveries(store, now);
    if (!endedDelivery || !retriedDelivery || !failedDelivery || !lastDelivery) throw new Error('not leased');
    const installationFault = { isInstallationFault: true };
    await settleDelivery(store, endedDelivery, { kind: 'failed' }, now, installationFault);
    await settleDelivery(store, retriedDelivery, { kind: 'retry', dueAt: now + 3_600_000 }, now + 1, installationFault);
    expect((await store.findWebhook(id))?.failingSince).toBeNull();
    expect(await store.disableFailingWebhooks(now + MAX_FAILING_MS, now + MAX_FAILING_MS, 10)).toEqual([]);
    // A fault of the installation does not change the time since which the endpoint has failed.
    await settleDelivery(store, failedDelivery, { kind: 'failed' }, now + 2);
    await settleDelivery(store, lastDelivery, { kind: 'failed' }, now + 3, installationFault);
    expect((await store.findWebhook(id))?.failingSince).toBe(now + 2);
  });

  test('endpoints without a success are disabled in bounded steps, and failed test deliveries do not count as failed attempts', async () => {
    const store = await openWithAccounts();
    const now = Date.now();
    const webhooks = [];
    for (let count = 0; count < 3; count += 1)
      webhooks.push(await createWebhook(store, { events: ['message.accepted'] }));
    const testedWebhook = await createWebhook(store, { events: [] });
    await store.addTestDelivery(testedWebhook.id, createMessageIdAt(now), now);
    await store.accept([createMessage()]);
    for (const delivery of await claimAllDeliveries(store, now))
      await settleDelivery(store, delivery, { kind: 'failed' }, now);
    const [firstId, secondId, thirdId] = webhooks.map(({ id }) => id);
    expect(await store.disableFailingWebhooks(now, now, 2)).toEqual([firstId, secondId]);
    expect(await store.disableFailingWebhooks(now, now, 2)).toEqual([thirdId]);
    expect((await store.findWebhook(testedWebhook.id))?.disabled).toBeNull();
  });

  test('the time of the last success of an endpoint is stored at most every ten seconds, and a failure does not change it', async () => {
    const store = await openWithAccounts();
    const { id } = await createWebhook(store, { events: ['message.accepted'] });
    await store.accept(Array.from({ length: 4 }, () => createMessage()));
    const now = Date.now();
    const [one, two, three, four] = await claimAllDeliveries(store, now);
    if (!one || !two || !three || !four) throw new Error('not leased');
    const findLastSuccess = async () => (await store.findWebhook(id))?.lastSuccessAt;
    await settleDelivery(store, one, { kind: 'failed' }, now);
    expect(await findLastSuccess()).toBe(null);
    await settleDelivery(store, two, { kind: 'delivered' }, now + 1);
    await settleDelivery(store, three, { kind: 'delivered' }, now + LAST_SUCCESS_STEP_MS);
    expect(await findLastSuccess()).toBe(now + 1);
    await settleDelivery(store, four, { kind: 'delivered' }, now + 1 + LAST_SUCCESS_STEP_MS);
    expect(await findLastSuccess()).toBe(now + 1 + LAST_SUCCESS_STEP_MS);
  });

  test('during a rotation a delivery is leased with both secrets, and after the rotation with the new secret only', async () => {
    const store = await openWithAccounts();
    const webhook = await createWebhook(store, { events: ['message.accepted'] });
    const now = Date.now();
    await store.rotateWebhookSecret(webhook.id, 'sealed-2', now + 1_000);
    await store.accept([createMessage(), createMessage()]);
    await fanOut(store, now);
    const limits = { ...CLAIM_LIMITS, maxDeliveries: 1 };
    const firstClaim = await store.claimDeliveries(limits, 'node-a', now + LEASE_MS, now);
    expect(firstClaim.deliveries.map(({ sealed }) => sealed)).toEqual([['sealed-2', 'sealed-1']]);
    const secondClaim = await store.claimDeliveries(limits, 'node-a', now + LEASE_MS, now + 1_000);
    expect(secondClaim.deliveries.map(({ sealed }) => sealed)).toEqual([['sealed-2']]);
  });

  test('a replay makes one delivery or all selected deliveries due again with the same ids, and restarts their retry schedules', async () => {
    const store = await openWithAccounts();
    const { id } = await createWebhook(store, { events: ['message.accepted'] });
    await store.accept(Array.from({ length: 4 }, () => createMessage()));
    const now = Date.now();
    const [one, two, three, four] = await claimAllDeliveries(store, now);
    if (!one || !two || !three || !four) throw new Error('not leased');
    await settleDelivery(store, one, { kind: 'failed' }, now);
    await settleDelivery(store, two, { kind: 'delivered' }, now);
    await settleDelivery(store, three, { kind: 'retry', dueAt: now + 3_600_000 }, now);
    expect(await store.replayDelivery(id, one.id, now)).toMatchObject({ value: { id: one.id, status: 'pending' } });
    expect(await store.replayDelivery(id, 'none', now)).toEqual({ kind: 'missing' });
    expect(await store.replayDelivery(id + 1, one.id, now)).toEqual({ kind: 'missing' });
    const [replayedDelivery] = await claimDeliveries(store, now);
    expect(replayedDelivery).toMatchObject({ id: one.id, attempt: 1, event: one.event });
    if (replayedDelivery === undefined) throw new Error('not leased');
    await settleDelivery(store, replayedDelivery, { kind: 'failed' }, now);
    expect(await store.listDeliveries(id, 'failed', null, 10)).toMatchObject({ value: [{ id: one.id }] });
    const replayMatchingDeliveries = async (since: number, includesDelivered: boolean) => {
      let replayedCount = 0;
      for (let cursor: string | null = null; ; ) {
        const step = await store.replayDeliveries(id, { since, includesDelivered }, cursor, now, 2);
        if (step.kind !== 'done') throw new Error('no endpoint');
        replayedCount += step.value.replayed;
        cursor = step.value.next;
        if (cursor === null) return replayedCount;
      }
    };
    const countReplayable = (since: number, includesDelivered: boolean) =>
      store.countReplayable(id, { since, includesDelivered }, now);
    expect(await store.countReplayable(id + 1, { since: 0, includesDelivered: true }, now)).toEqual({
      kind: 'missing',
    });
    expect([
      await countReplayable(now + 1, true),
      await countReplayable(now, false),
      await countReplayable(now, true),
    ]).toEqual([
      { kind: 'done', value: 0 },
      { kind: 'done', value: 2 },
      { kind: 'done', value: 3 },
    ]);
    expect(await replayMatchingDeliveries(now + 1, true)).toBe(0);
    // The delivery in progress (`four`) stays unchanged.
    expect(await replayMatchingDeliveries(now, false)).toBe(2);
    expect((await claimDeliveries(store, now)).map((delivery) => delivery.id).toSorted()).toEqual(
      [one.id, three.id].toSorted(),
    );
    expect(await replayMatchingDeliveries(now, true)).toBe(1);
    expect((await claimDeliveries(store, now)).map((delivery) => delivery.id)).toEqual([two.id]);
  });

  test('deliveries are listed newest first in pages', async () => {
    const store = await openWithAccounts();
    const { id } = await createWebhook(store, { events: ['message.accepted'] });
    await store.accept(Array.from({ length: 3 }, () => createMessage()));
    await fanOut(store);
    const testDeliveryId = createMessageIdAt(Date.now() + 10);
    expect(await store.addTestDelivery(id, testDeliveryId, Date.now())).toMatchObject({
      value: { id: testDeliveryId, type: 'webhook.test', messageId: null, status: 'pending' },
    });
    const firstPage = await store.listDeliveries(id, null, null, 2);
    if (firstPage.kind !== 'done') throw new Error('no endpoint');
    const secondPage = await store.listDeliveries(id, 'pending', firstPage.value.at(-1)?.id ?? null, 10);
    if (secondPage.kind !== 'done') throw new Error('no endpoint');
    const ids = [...firstPage.value, ...secondPage.value].map((delivery) => delivery.id);
    expect(ids).toEqual(ids.toSorted().reverse());
    expect(new Set(ids).size).toBe(4);
    expect(ids[0]).toBe(testDeliveryId);
    expect(await store.findDelivery(id, testDeliveryId)).toMatchObject({ id: testDeliveryId });
    expect(await store.listDeliveries(id + 1, null, null, 2)).toEqual({ kind: 'missing' });
    expect(listTypes(await claimDeliveries(store))).toContain('webhook.test');
  });

  test('a delivery is purged 7 days after its success, and any delivery 30 days after its creation, in bounded steps', async () => {
    const store = await openWithAccounts();
    const { id } = await createWebhook(store, { events: ['message.accepted'] });
    await store.accept(Array.from({ length: 4 }, () => createMessage()));
    const now = Date.now();
    const [one, two] = await claimAllDeliveries(store, now);
    if (!one || !two) throw new Error('not leased');
    await settleDelivery(store, one, { kind: 'delivered' }, now + 5);
    await settleDelivery(store, two, { kind: 'failed' }, now + 5);
    expect(await store.purgeDeliveries(now + 4, now - 1, 10)).toBe(0);
    expect(await store.purgeDeliveries(now + 5, now - 1, 10)).toBe(1);
    expect(await store.findDelivery(id, one.id)).toBeNull();
    expect(await store.purgeDeliveries(now + 5, now, 2)).toBe(2);
    expect(await store.purgeDeliveries(now + 5, now, 2)).toBe(1);
    expect(await store.listDeliveries(id, null, null, 10)).toEqual({ kind: 'done', value: [] });
  });
});
