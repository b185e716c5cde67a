import { describe, expect, test } from 'vitest';
import { findPolicy, type Routing } from '../../src/model/route.ts';
import type { Store } from '../../src/store/contract.ts';
import { STORES } from '../rig/stores.ts';

const NOW = Date.UTC(2030, 0, 1);
const ACTOR = { name: 'cli:tester', at: NOW };
const DAY = 21_915;
const INSTALLATION = { account: null, domain: null };
const ACCOUNT = { account: 'default', domain: null };
const DOMAIN = { account: null, domain: 'example.org' };

async function watchRouting(store: Store): Promise<readonly Routing[]> {
  const changes: Routing[] = [];
  await store.watchDirectory(({ routing }) => void (routing !== null && changes.push(routing)));
  return changes;
}

describe.each(STORES)('the $name store', ({ openWithAccounts }) => {
  test('the policy of a domain precedes that of an account and of the installation; each change is audited', async () => {
    const store = await openWithAccounts();
    const changes = await watchRouting(store);
    const findList = async (accountId: number, domain: string) =>
      findPolicy(await store.readRouting(), { accountId, domain })?.list ?? null;
    for (const [scope, list] of [
      [INSTALLATION, 'default,backup'],
      [ACCOUNT, 'backup'],
      [DOMAIN, 'default:90,backup:10'],
    ] as const)
      expect(await store.setRoutingPolicy(scope, list, ACTOR)).toEqual({ kind: 'done', value: null });
    expect(await findList(1, 'example.org')).toBe('default:90,backup:10');
    expect(await findList(1, 'example.com')).toBe('backup');
    expect(await findList(2, 'example.com')).toBe('default,backup');
    await expect.poll(() => changes.at(-1)?.policies).toHaveLength(3);

    expect(await store.setRoutingPolicy(ACCOUNT, 'default', ACTOR)).toEqual({ kind: 'done', value: 'backup' });
    expect(await store.setRoutingPolicy(DOMAIN, null, ACTOR)).toEqual({ kind: 'done', value: 'default:90,backup:10' });
    expect(await store.setRoutingPolicy(DOMAIN, null, ACTOR)).toEqual({ kind: 'done', value: null });
    expect(await store.setRoutingPolicy({ account: 'unknown', domain: null }, 'default', ACTOR)).toEqual({
      kind: 'missing',
    });
    expect(await findList(1, 'example.org')).toBe('default');
    await expect.poll(() => changes.at(-1)?.policies).toHaveLength(2);
    expect(
      (await store.listAudit(null, 4)).map(({ action, target, before, after }) => [action, target, before, after]),
    ).toEqual([
      ['routing.clear', 'example.org', '{"list":"default:90,backup:10"}', null],
      ['routing.set', 'default', '{"list":"backup"}', '{"list":"default"}'],
      ['routing.set', 'example.org', null, '{"list":"default:90,backup:10"}'],
      ['routing.set', 'default', null, '{"list":"backup"}'],
    ]);
  });

  test('two operators change a policy at once: the last one wins, and each entry has what it replaced', async () => {
    const store = await openWithAccounts();
    const lists = ['default', 'backup', 'default,backup', 'backup,default'];
    const results = await Promise.all(lists.map((list) => store.setRoutingPolicy(INSTALLATION, list, ACTOR)));
    const entries = (await store.listAudit(null, 10)).toReversed();
    const after = entries.map((entry) => entry.after);
    expect(after.toSorted()).toEqual(lists.map((list) => JSON.stringify({ list })).toSorted());
    expect(entries.map(({ before }) => before)).toEqual([null, ...after.slice(0, -1)]);
    expect((await store.readRouting()).policies.map(({ list }) => JSON.stringify({ list }))).toEqual(after.slice(-1));
    expect(results.filter((result) => result.kind === 'done' && result.value === null)).toHaveLength(1);
  });

  test('a pause lasts until its end or until the route is resumed, and every node learns of it', async () => {
    const store = await openWithAccounts();
    const changes = await watchRouting(store);
    const pause = { at: NOW, until: NOW + 5, reason: 'maintenance' };
    expect(await store.pauseRoute('backup', pause, ACTOR)).toBeNull();
    await expect.poll(() => changes.at(-1)?.pauses).toEqual([{ route: 'backup', ...pause }]);
    const longer = { at: NOW, until: null, reason: null };
    expect(await store.pauseRoute('backup', longer, ACTOR)).toEqual({ route: 'backup', ...pause });
    expect(await store.pauseRoute('backup', null, ACTOR)).toEqual({ route: 'backup', ...longer });
    expect(await store.pauseRoute('backup', null, ACTOR)).toBeNull();
    await expect.poll(() => changes.at(-1)?.pauses).toEqual([]);
    expect((await store.listAudit(null, 5)).map(({ action, target }) => `${action} ${target}`)).toEqual([
      ...['route.resume backup', 'route.pause backup', 'route.pause backup'],
    ]);
  });

  test('the messages of all nodes add up by day, and the first one of all begins the ramp', async () => {
    const store = await openWithAccounts();
    const use = (route: string, day: number, count: number) => ({ route, day, count });
    expect(await store.recordRouteUse([use('default', DAY, 3), use('backup', DAY, 1)], NOW)).toEqual([
      use('backup', DAY, 1),
      use('default', DAY, 3),
    ]);
    expect(await store.recordRouteUse([use('default', DAY, 4)], NOW + 1)).toEqual([use('default', DAY, 7)]);
    expect((await store.readRouting()).firstUses).toEqual([
      { route: 'backup', at: NOW },
      { route: 'default', at: NOW },
    ]);
    await store.recordRouteUse([use('default', DAY + 8, 2)], NOW + 2);
    expect(await store.listRouteUses()).toEqual([use('backup', DAY, 1), use('default', DAY + 8, 2)]);
    expect((await store.readRouting()).firstUses[1]).toEqual({ route: 'default', at: NOW });
  });

  test('counts that several nodes record at once all add up', async () => {
    const store = await openWithAccounts();
    const routes = ['a', 'b', 'c', 'd'];
    const record = (names: readonly string[]) =>
      store.recordRouteUse(
        names.map((route) => ({ route, day: DAY, count: 1 })),
        NOW,
      );
    await Promise.all([record(routes), ...routes.map((route) => record([route])), record(routes.toReversed())]);
    expect(await store.listRouteUses()).toEqual(routes.map((route) => ({ route, day: DAY, count: 3 })));
    expect((await store.readRouting()).firstUses).toHaveLength(routes.length);
  });

  test('a route knows which senders it accepted, also after a refusal', async () => {
    const store = await openWithAccounts();
    const accepted = { route: 'backup', domain: 'example.org', acceptedAt: NOW, refusedAt: null, refusal: null };
    const refused = { ...accepted, acceptedAt: null, refusedAt: NOW + 1, refusal: '550 not verified' };
    await store.recordRouteSenders([{ ...refused, domain: 'example.net' }, accepted]);
    await store.recordRouteSenders([refused]);
    expect(await store.listRouteSenders()).toEqual([
      { ...refused, domain: 'example.net' },
      { ...refused, acceptedAt: NOW },
    ]);
    await store.recordRouteSenders([{ ...accepted, acceptedAt: NOW + 2 }]);
    expect((await store.listRouteSenders())[1]).toEqual({ ...accepted, acceptedAt: NOW + 2 });
  });
});
