/** Tests the traffic time series and the overview on every store. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { AccountLimits } from '../../src/model/account.ts';
import { HOUR_MS, MINUTE_MS, TRAFFIC_COUNTS, type TrafficRow } from '../../src/model/traffic.ts';
import type { Store } from '../../src/store/contract.ts';
import { STORES } from '../rig/stores.ts';

const HOUR = Date.UTC(2030, 0, 1, 10);
const NOW = HOUR + 30 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const LIMITS = { volume: null, volumeExpiresAt: null, rate: null, throttle: null };

function row(spanMs: TrafficRow['spanMs'], at: number, counts: Partial<TrafficRow> = {}): TrafficRow {
  const none = Object.fromEntries(TRAFFIC_COUNTS.map((name) => [name, 0])) as Record<
    (typeof TRAFFIC_COUNTS)[number],
    number
  >;
  return { spanMs, at, ...none, latencies: new Map(), ...counts };
}

describe.each(STORES)('the $name store', ({ open }) => {
  const opened = async () => {
    const store = await open();
    onTestFinished(() => store.close());
    return store;
  };
  const done = <T>(changed: { kind: 'done'; value: T } | { kind: string }): T => {
    if (!('value' in changed)) throw new Error(changed.kind);
    return changed.value;
  };
  const key = async (store: Store, account: string, name: string, expiresAt: number | null) =>
    done(await store.createKey(account, { name, prefix: `pr_${name}`, hash: `${account} ${name}`, expiresAt }, NOW));

  test('a step of the time series is the sum of all nodes, and a row that is written twice counts once', async () => {
    const store = await opened();
    await store.writeTraffic('one', [
      row(MINUTE_MS, HOUR, { accepted: 2, delivered: 1, latencies: new Map([[4, 1]]) }),
    ]);
    await store.writeTraffic('one', [
      row(MINUTE_MS, HOUR, {
        accepted: 5,
        delivered: 3,
        latencies: new Map([
          [4, 1],
          [9, 2],
        ]),
      }),
      row(MINUTE_MS, HOUR + MINUTE_MS, { bounced: 1, ended: 1 }),
      row(HOUR_MS, HOUR, { accepted: 5, delivered: 3, bounced: 1, ended: 4 }),
    ]);
    await store.writeTraffic('two', [
      row(MINUTE_MS, HOUR, { accepted: 10, latencies: new Map([[9, 10]]) }),
      row(HOUR_MS, HOUR, { accepted: 10, alarmed: 3 }),
      row(HOUR_MS, HOUR + HOUR_MS, { expired: 9 }),
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
    expect(await store.readTraffic(HOUR, HOUR + 10 * MINUTE_MS, 10 * MINUTE_MS)).toMatchObject([
      { at: HOUR, accepted: 15, bounced: 1 },
    ]);
    expect(await store.readTraffic(HOUR, HOUR + HOUR_MS, HOUR_MS)).toMatchObject([
      { at: HOUR, accepted: 15, alarmed: 3, ended: 4 },
    ]);
    expect(await store.readTraffic(HOUR + 2 * MINUTE_MS, HOUR + 5 * MINUTE_MS, MINUTE_MS)).toEqual([]);
  });

  test('expired minute rows and hour rows are purged in batches, and no other row is purged', async () => {
    const store = await opened();
    const minutes = [0, 1, 2, 3].map((n) => row(MINUTE_MS, HOUR + n * MINUTE_MS, { accepted: 1 }));
    await store.writeTraffic('one', [...minutes, row(HOUR_MS, HOUR, { accepted: 4 })]);
    expect(await store.purgeTraffic(HOUR + 3 * MINUTE_MS, HOUR, 2)).toBe(2);
    expect(await store.purgeTraffic(HOUR + 3 * MINUTE_MS, HOUR, 2)).toBe(1);
    expect(await store.readTraffic(HOUR, NOW, MINUTE_MS)).toMatchObject([{ at: HOUR + 3 * MINUTE_MS }]);
    expect(await store.readTraffic(HOUR, NOW, HOUR_MS)).toHaveLength(1);
    expect(await store.purgeTraffic(0, HOUR + 1, 2)).toBe(1);
    expect(await store.readTraffic(HOUR, NOW, HOUR_MS)).toEqual([]);
  });

  test('an empty store needs no attention', async () => {
    const store = await opened();
    expect(await store.readOverviewData(NOW)).toEqual({
      everAccepted: false,
      nextDueAt: null,
      accounts: [],
      keys: [],
      domains: { all: 0, authenticated: 0, problems: [] },
      notUnderstood: 0,
    });
    expect(await store.changeFeedPosition(NOW)).toEqual({
      newestId: null,
      newestAuditId: 0,
      recentCounts: 0,
      suppressingCounts: 0,
    });
    expect(await store.readQueueStatistics()).toEqual({ queued: 0, sending: 0, uncertain: 0, oldest: null });
  });

  test('an account needs attention if it is locked, or if its volume is nearly used or expires soon', async () => {
    const store = await opened();
    const made = (name: string, limits: Partial<AccountLimits> = {}) =>
      store.createAccount(name, { ...LIMITS, ...limits }, NOW);
    await made('good', { volume: 10 });
    await made('used', { volume: 0 });
    await made('lapsing', { volumeExpiresAt: NOW + DAY_MS });
    await made('lapsed', { volumeExpiresAt: NOW - DAY_MS });
    await made('later', { volumeExpiresAt: NOW + 30 * DAY_MS });
    await made('long gone', { volumeExpiresAt: NOW - 30 * DAY_MS });
    await made('locked');
    await store.lockAccount('locked', 'unpaid', NOW);
    const { accounts } = await store.readOverviewData(NOW);
    expect(accounts.map(({ name }) => name)).toEqual(['lapsed', 'lapsing', 'locked', 'used']);
  });

  test('a key needs attention if it expires soon, and if it is in use or is the only key of its account', async () => {
    const store = await opened();
    await store.createAccount('two', LIMITS, NOW);
    await store.createAccount('one', LIMITS, NOW);
    await key(store, 'two', 'good', null);
    const used = await key(store, 'two', 'used', NOW + DAY_MS);
    await key(store, 'two', 'unused', NOW + DAY_MS);
    await key(store, 'two', 'gone', NOW - 1);
    await key(store, 'one', 'last', NOW + 2 * DAY_MS);
    await store.updateKeysLastUsed([{ id: used.id, at: NOW - 1_000 }]);
    const { keys } = await store.readOverviewData(NOW);
    expect(keys.map(({ name, account }) => [account, name])).toEqual([
      ['two', 'used'],
      ['one', 'last'],
    ]);
  });

  test('a rotated key needs attention only if it was used after the new key was created', async () => {
    const store = await opened();
    await store.createAccount('shop', LIMITS, NOW);
    const made = async (name: string, at: number) =>
      done(await store.createKey('shop', { name, prefix: `pr_${at}`, hash: `${name} ${at}`, expiresAt: null }, at));
    const rotatedKey = await made('web', NOW - DAY_MS);
    const rotatedKeyInUse = await made('cron', NOW - DAY_MS);
    const updateLastUsed = (at: number) =>
      store.updateKeysLastUsed([rotatedKey, rotatedKeyInUse].map(({ id }) => ({ id, at })));
    await updateLastUsed(NOW - 120_000);
    const successors: number[] = [];
    for (const { id, name } of [rotatedKey, rotatedKeyInUse]) {
      const key = { prefix: 'pr_new', hash: `${name} new` };
      successors.push(done(await store.rotateKey(id, key, NOW + DAY_MS, NOW - 60_000)).id);
    }
    expect((await store.readOverviewData(NOW)).keys).toEqual([]);
    await store.updateKeysLastUsed([{ id: rotatedKeyInUse.id, at: NOW - 1_000 }]);
    const { keys } = await store.readOverviewData(NOW);
    expect(keys.map(({ id, successor }) => [id, successor])).toEqual([[rotatedKeyInUse.id, successors[1]]]);
  });

  test('a domain needs attention if it is not authenticated or a record is missing', async () => {
    const store = await opened();
    await store.createAccount('acme', LIMITS, NOW);
    const names = ['new.example', 'good.example', 'bare.example'];
    const [, good, bare] = await Promise.all(
      names.map(async (name) => done(await store.addDomain('acme', { name, subdomains: false, keys: [] }, NOW))),
    );
    const check = (name: string, found: 'found' | 'missing' | 'unknown') =>
      ({ purpose: 'spf', type: 'TXT', name, value: 'v=spf1 -all', found, seen: [], detail: '' }) as const;
    for (const [domain, found] of [
      [good, 'unknown'],
      [bare, 'missing'],
    ] as const) {
      if (domain === undefined) throw new Error('not made');
      const { id, revision, name } = domain;
      const at = { checkedAt: NOW, authenticatedAt: NOW, failingSince: null };
      await store.updateDomain({
        id,
        revision,
        status: 'authenticated',
        ...at,
        checks: [check(name, found)],
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

  test('the next due time excludes locked accounts, and every change advances the change feed', async () => {
    const store = await opened();
    const marks = [await store.changeFeedPosition(NOW)];
    const accept = async (name: string, at: number, n: number) => {
      const account = done(await store.createAccount(name, LIMITS, at));
      const message = {
        id: `019${n}a3b4-c5d6-7000-8000-000000000000`,
        accountId: account.id,
        keyId: 1,
        acceptedAt: at,
        to: 'rita@example.com',
        recipient: 'rita@example.com',
        from: 'shop@example.org',
        subject: 'Hello',
        message: 'Hello',
        idempotency: null,
        lease: null,
        suppressedBy: null,
      };
      expect(await store.accept([message])).toMatchObject([{ kind: 'accepted' }]);
    };
    await accept('first', NOW - 5_000, 1);
    await accept('second', NOW + 5_000, 2);
    expect(await store.readOverviewData(NOW)).toMatchObject({ everAccepted: true, nextDueAt: NOW - 5_000 });
    expect(await store.readQueueStatistics()).toMatchObject({ queued: 2, oldest: { acceptedAt: NOW - 5_000 } });
    await store.lockAccount('first', 'unpaid', NOW);
    expect(await store.readOverviewData(NOW)).toMatchObject({ nextDueAt: NOW + 5_000 });
    marks.push(await store.changeFeedPosition(NOW));
    const token = { name: 'ci', prefix: 'po_a', hash: 'a'.repeat(64), expiresAt: null };
    await store.createToken(token, NOW, { name: 'cli:root', at: NOW });
    await store.writeTraffic('one', [row(HOUR_MS, HOUR, { accepted: 2, bounced: 1 })]);
    marks.push(await store.changeFeedPosition(NOW));
    expect(marks[1]).toMatchObject({
      newestId: '0192a3b4-c5d6-7000-8000-000000000000',
      newestAuditId: 0,
      recentCounts: 0,
    });
    expect(marks[2]).toMatchObject({ newestAuditId: 1, recentCounts: 3, suppressingCounts: 1 });
    expect(marks[2]?.newestId).toBe(marks[1]?.newestId);
  });
});
