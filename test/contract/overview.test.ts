import { describe, expect, test } from 'vitest';
import type { AccountLimits } from '../../src/model/account.ts';
import { HOUR_MS, listFailureCounts, MINUTE_MS, TRAFFIC_COUNTS, type TrafficRow } from '../../src/model/traffic.ts';
import { WEBHOOK_EVENT_TYPES } from '../../src/model/webhook.ts';
import type { Store } from '../../src/store/contract.ts';
import { createMessage, createMessageIdAt, NO_LIMITS } from '../rig/messages.ts';
import { expectDone, STORES } from '../rig/stores.ts';

const HOUR = Date.UTC(2030, 0, 1, 10);
const NOW = HOUR + 30 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

function createRow(spanMs: TrafficRow['spanMs'], at: number, counts: Partial<TrafficRow> = {}): TrafficRow {
  const zeroCounts = Object.fromEntries(TRAFFIC_COUNTS.map((name) => [name, 0])) as Record<
    (typeof TRAFFIC_COUNTS)[number],
    number
  >;
  return { spanMs, at, ...zeroCounts, latencies: new Map(), confirmations: new Map(), bounces: new Map(), ...counts };
}

describe.each(STORES)('the $name store', ({ open }) => {
  const addExpiringKey = async (store: Store, account: string, name: string, expiresAt: number | null) =>
    expectDone(
      await store.createKey(account, { name, prefix: `pr_${name}`, hash: `${account} ${name}`, expiresAt }, NOW),
    );

  test('a step of the time series is the sum of the rows of all nodes, and a row that a node writes again replaces its earlier row', async () => {
    const store = await open();
    await store.writeTraffic('one', [
      createRow(MINUTE_MS, HOUR, { accepted: 2, delivered: 1, latencies: new Map([[4, 1]]) }),
    ]);
    await store.writeTraffic('one', [
      createRow(MINUTE_MS, HOUR, {
        accepted: 5,
        delivered: 3,
        latencies: new Map([
          [4, 1],
          [9, 2],
        ]),
        confirmed: 1,
        confirmations: new Map([[9, 1]]),
        bounces: new Map([
          ['soft/mailbox-full', 1],
          ['hard/domain', 1],
        ]),
      }),
      createRow(MINUTE_MS, HOUR + MINUTE_MS, { bounced: 1, ended: 1 }),
      createRow(HOUR_MS, HOUR, { accepted: 5, delivered: 3, bounced: 1, ended: 4 }),
    ]);
    const histograms = { confirmations: new Map([[9, 3]]), bounces: new Map([['hard/domain', 2]]) };
    await store.writeTraffic('two', [
      createRow(MINUTE_MS, HOUR, { accepted: 10, confirmed: 3, latencies: new Map([[9, 10]]), ...histograms }),
      createRow(HOUR_MS, HOUR, { accepted: 10, alarmed: 3 }),
      createRow(HOUR_MS, HOUR + HOUR_MS, { expired: 9 }),
    ]);
    const minutes = await store.readTraffic(HOUR, HOUR + 5 * MINUTE_MS, MINUTE_MS);
    expect(minutes).toMatchObject([
      { at: HOUR, accepted: 15, delivered: 3, bounced: 0 },
      { at: HOUR + MINUTE_MS, accepted: 0, bounced: 1, ended: 1 },
    ]);
    expect([...(minutes[0]?.latencies ?? [])].sort(([a], [b]) => a - b)).toEqual([
      [4, 1],
      [9, 12],
    ]);
    expect(minutes[0]).toMatchObject({ confirmed: 4, confirmations: new Map([[9, 4]]) });
    expect(listFailureCounts(minutes[0]?.bounces ?? new Map())).toEqual([
      { class: 'hard', category: 'domain', count: 3 },
      { class: 'soft', category: 'mailbox-full', count: 1 },
    ]);
    expect(await store.readTraffic(HOUR, HOUR + 10 * MINUTE_MS, 10 * MINUTE_MS)).toMatchObject([
      { at: HOUR, accepted: 15, bounced: 1 },
    ]);
    expect(await store.readTraffic(HOUR, HOUR + HOUR_MS, HOUR_MS)).toMatchObject([
      { at: HOUR, accepted: 15, alarmed: 3, ended: 4 },
    ]);
    expect(await store.readTraffic(HOUR + 2 * MINUTE_MS, HOUR + 5 * MINUTE_MS, MINUTE_MS)).toEqual([]);
  });

  test('expired minute rows and hour rows are purged in batches, and no other row is purged', async () => {
    const store = await open();
    const minutes = [0, 1, 2, 3].map((index) => createRow(MINUTE_MS, HOUR + index * MINUTE_MS, { accepted: 1 }));
    await store.writeTraffic('one', [...minutes, createRow(HOUR_MS, HOUR, { accepted: 4 })]);
    expect(await store.purgeTraffic(HOUR + 3 * MINUTE_MS, HOUR, 2)).toBe(2);
    expect(await store.purgeTraffic(HOUR + 3 * MINUTE_MS, HOUR, 2)).toBe(1);
    expect(await store.readTraffic(HOUR, NOW, MINUTE_MS)).toMatchObject([{ at: HOUR + 3 * MINUTE_MS }]);
    expect(await store.readTraffic(HOUR, NOW, HOUR_MS)).toHaveLength(1);
    expect(await store.purgeTraffic(0, HOUR + 1, 2)).toBe(1);
    expect(await store.readTraffic(HOUR, NOW, HOUR_MS)).toEqual([]);
  });

  test('a store whose messages are all purged has accepted messages', async () => {
    const store = await open();
    await store.writeTraffic('one', [createRow(HOUR_MS, HOUR, { accepted: 1 })]);
    expect((await store.readOverviewData(NOW)).everAccepted).toBe(true);
  });

  test('in an empty store nothing needs attention', async () => {
    const store = await open();
    expect(await store.readOverviewData(NOW)).toEqual({
      everAccepted: false,
      nextDueAt: null,
      accounts: [],
      keys: [],
      domains: { all: 0, authenticated: 0, problems: [] },
      oldestEndAgeMs: null,
      notUnderstoodCount: 0,
      disabledWebhooks: [],
    });
    expect(await store.readChangeFeedPosition(NOW)).toEqual({
      newestId: null,
      newestAuditId: 0,
      recentCounts: 0,
      suppressingCounts: 0,
    });
    expect(await store.readQueueStatistics()).toEqual({ queued: 0, sending: 0, uncertain: 0, held: 0, oldest: null });
  });

  test('an account needs attention if it is locked, or if its volume is nearly used up or expires soon', async () => {
    const store = await open();
    const addAccount = (name: string, limits: Partial<AccountLimits> = {}) =>
      store.createAccount(name, { ...NO_LIMITS, ...limits }, NOW);
    await addAccount('good', { volume: 10 });
    await addAccount('used', { volume: 0 });
    await addAccount('lapsing', { volumeExpiresAt: NOW + DAY_MS });
    await addAccount('lapsed', { volumeExpiresAt: NOW - DAY_MS });
    await addAccount('later', { volumeExpiresAt: NOW + 30 * DAY_MS });
    await addAccount('long gone', { volumeExpiresAt: NOW - 30 * DAY_MS });
    await addAccount('locked');
    await store.lockAccount('locked', 'unpaid', NOW);
    const { accounts } = await store.readOverviewData(NOW);
    expect(accounts.map(({ name }) => name)).toEqual(['lapsed', 'lapsing', 'locked', 'used']);
  });

  test('a key needs attention if it expires soon and is either in use or the only valid key of its account', async () => {
    const store = await open();
    await store.createAccount('two', NO_LIMITS, NOW);
    await store.createAccount('one', NO_LIMITS, NOW);
    await addExpiringKey(store, 'two', 'good', null);
    const usedKey = await addExpiringKey(store, 'two', 'used', NOW + DAY_MS);
    await addExpiringKey(store, 'two', 'unused', NOW + DAY_MS);
    await addExpiringKey(store, 'two', 'gone', NOW - 1);
    await addExpiringKey(store, 'one', 'last', NOW + 2 * DAY_MS);
    await store.updateKeysLastUsed([{ id: usedKey.id, at: NOW - 1_000 }]);
    const { keys } = await store.readOverviewData(NOW);
    expect(keys.map(({ name, account }) => [account, name])).toEqual([
      ['two', 'used'],
      ['one', 'last'],
    ]);
  });

  test('a rotated key needs attention only if it was used after the new key was created', async () => {
    const store = await open();
    await store.createAccount('shop', NO_LIMITS, NOW);
    const addKey = async (name: string, at: number) =>
      expectDone(
        await store.createKey('shop', { name, prefix: `pr_${at}`, hash: `${name} ${at}`, expiresAt: null }, at),
      );
    const rotatedKey = await addKey('web', NOW - DAY_MS);
    const rotatedKeyInUse = await addKey('cron', NOW - DAY_MS);
    const updateLastUsed = (at: number) =>
      store.updateKeysLastUsed([rotatedKey, rotatedKeyInUse].map(({ id }) => ({ id, at })));
    await updateLastUsed(NOW - 120_000);
    const successors: number[] = [];
    for (const { id, name } of [rotatedKey, rotatedKeyInUse]) {
      const key = { prefix: 'pr_new', hash: `${name} new` };
      successors.push(expectDone(await store.rotateKey(id, key, NOW + DAY_MS, NOW - 60_000)).id);
    }
    expect((await store.readOverviewData(NOW)).keys).toEqual([]);
    await store.updateKeysLastUsed([{ id: rotatedKeyInUse.id, at: NOW - 1_000 }]);
    const { keys } = await store.readOverviewData(NOW);
    expect(keys.map(({ id, successor }) => [id, successor])).toEqual([[rotatedKeyInUse.id, successors[1]]]);
  });

  test('a domain needs attention if it is not authenticated or a record is missing', async () => {
    const store = await open();
    await store.createAccount('acme', NO_LIMITS, NOW);
    const names = ['new.example', 'good.example', 'bare.example'];
    const [, good, bare] = await Promise.all(
      names.map(async (name) => expectDone(await store.addDomain('acme', { name, subdomains: false, keys: [] }, NOW))),
    );
    const createCheck = (name: string, found: 'found' | 'missing' | 'unknown') =>
      ({ purpose: 'spf', type: 'TXT', name, value: 'v=spf1 -all', found, seen: [], detail: '' }) as const;
    for (const [domain, found] of [
      [good, 'unknown'],
      [bare, 'missing'],
    ] as const) {
      if (domain === undefined) throw new Error('the domain was not created');
      const { id, revision, name } = domain;
      const at = { checkedAt: NOW, authenticatedAt: NOW, failingSince: null };
      await store.updateDomain({
        id,
        revision,
        status: 'authenticated',
        ...at,
        checks: [createCheck(name, found)],
        keys: [],
      });
    }
    const { domains } = await store.readOverviewData(NOW);
    expect(domains).toMatchObject({
      all: 3,
      authenticated: 2,
      problems: [
        { name: 'bare.example', status: 'authenticated', failedRecords: [{ purpose: 'spf', name: 'bare.example' }] },
        { name: 'new.example', status: 'pending', failedRecords: [] },
      ],
    });
  });

  test('an endpoint that the service disabled needs attention until it is enabled, disabled by an operator or deleted', async () => {
    const store = await open();
    await store.createAccount('acme', NO_LIMITS, NOW);
    const createWebhook = async (path: string) => {
      const url = `https://hooks.example.com/${path}`;
      const endpoint = {
        url,
        sealedUrl: url,
        account: 'acme',
        name: null,
        events: WEBHOOK_EVENT_TYPES,
        sealed: 'sealed',
      };
      return expectDone(await store.createWebhook(endpoint, NOW));
    };
    const [gone, removed, stopped, healthy] = [
      await createWebhook('gone'),
      await createWebhook('removed'),
      await createWebhook('stopped'),
      await createWebhook('healthy'),
    ];
    for (const [index, { id }] of [gone, removed, stopped].entries())
      await store.addTestDelivery(id, createMessageIdAt(NOW + index), NOW);
    const limits = { maxDeliveries: 10, freeSlots: [], defaultFreeSlots: 10, after: 0 };
    const { deliveries } = await store.claimDeliveries(limits, 'node', NOW + 60_000, NOW);
    const attempt = { at: NOW, durationMs: 1, status: 410, error: 'status 410', body: '' };
    const outcome = { attempt, result: { kind: 'failed' }, isGone: true, isInstallationFault: false } as const;
    const settlements = deliveries.map(({ id, webhookId, owner, lease }) => ({
      id,
      webhookId,
      owner,
      lease,
      ...outcome,
    }));
    await store.settleDeliveries(settlements, NOW + 1);
    await store.disableWebhook(healthy.id, NOW + 2);
    const listDisabledWebhooks = async () => (await store.readOverviewData(NOW)).disabledWebhooks;
    expect(await listDisabledWebhooks()).toMatchObject([
      { id: gone.id, url: gone.url, account: 'acme', disabled: { reason: 'gone', at: NOW + 1 } },
      { id: removed.id },
      { id: stopped.id },
    ]);
    await store.deleteWebhook(removed.id);
    expect(await store.disableWebhook(stopped.id, NOW + 3)).toMatchObject({
      value: { disabled: { reason: 'operator', at: NOW + 3 } },
    });
    expect((await listDisabledWebhooks()).map(({ id }) => id)).toEqual([gone.id]);
    await store.enableWebhook(gone.id);
    expect(await listDisabledWebhooks()).toEqual([]);
  });

  test('the next due time excludes the messages of locked accounts, and every change advances the change feed', async () => {
    const store = await open();
    const positions = [await store.readChangeFeedPosition(NOW)];
    const acceptMessage = async (name: string, at: number, count: number) => {
      const account = expectDone(await store.createAccount(name, NO_LIMITS, at));
      const id = `019${count}a3b4-c5d6-7000-8000-000000000000`;
      const message = createMessage({ id, accountId: account.id, acceptedAt: at });
      expect(await store.accept([message])).toMatchObject([{ kind: 'accepted' }]);
    };
    await acceptMessage('first', NOW - 5_000, 1);
    await acceptMessage('second', NOW + 5_000, 2);
    expect(await store.readOverviewData(NOW)).toMatchObject({ everAccepted: true, nextDueAt: NOW - 5_000 });
    expect(await store.readQueueStatistics()).toMatchObject({ queued: 2, oldest: { acceptedAt: NOW - 5_000 } });
    await store.lockAccount('first', 'unpaid', NOW);
    expect(await store.readOverviewData(NOW)).toMatchObject({ nextDueAt: NOW + 5_000 });
    positions.push(await store.readChangeFeedPosition(NOW));
    const token = { name: 'ci', prefix: 'po_a', hash: 'a'.repeat(64), expiresAt: null };
    await store.createToken(token, NOW, { name: 'cli:root', at: NOW });
    await store.writeTraffic('one', [createRow(HOUR_MS, HOUR, { accepted: 2, bounced: 1 })]);
    positions.push(await store.readChangeFeedPosition(NOW));
    expect(positions[1]).toMatchObject({
      newestId: '0192a3b4-c5d6-7000-8000-000000000000',
      newestAuditId: 0,
      recentCounts: 0,
    });
    expect(positions[2]).toMatchObject({ newestAuditId: 1, recentCounts: 3, suppressingCounts: 1 });
    expect(positions[2]?.newestId).toBe(positions[1]?.newestId);
  });
});
