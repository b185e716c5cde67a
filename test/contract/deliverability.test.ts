import { describe, expect, test } from 'vitest';
import {
  createKeyCounts,
  type DeliverabilityRow,
  formatKeyCounts,
  parseKeyCounts,
} from '../../src/model/deliverability.ts';
import { HOUR_MS } from '../../src/model/traffic.ts';
import { STORES } from '../rig/stores.ts';

const FIRST_HOUR = Date.UTC(2030, 0, 1, 10);

function createRow(at: number, accepted: number, changes: Partial<DeliverabilityRow> = {}): DeliverabilityRow {
  const counts = { ...createKeyCounts(), accepted, latencies: new Map([[4, 2]]) };
  return { spanMs: HOUR_MS, at, series: 'provider', counts: formatKeyCounts([['google', counts]]), ...changes };
}

describe.each(STORES)('the $name store', ({ open }) => {
  test('a series is read with the rows of all nodes, and a row that its node writes again is replaced', async () => {
    const store = await open();
    await store.writeDeliverability('one', [createRow(FIRST_HOUR, 1), createRow(FIRST_HOUR + HOUR_MS, 2)]);
    await store.writeDeliverability('one', [
      createRow(FIRST_HOUR, 3),
      createRow(FIRST_HOUR, 9, { series: 'account' }),
      createRow(FIRST_HOUR, 9, { spanMs: 300_000 }),
    ]);
    await store.writeDeliverability('two', [createRow(FIRST_HOUR, 5)]);
    await store.writeDeliverability('two', []);
    const read = async (since: number, until: number) =>
      (await store.readDeliverability('provider', HOUR_MS, since, until)).flatMap(({ at, counts }) =>
        parseKeyCounts(counts).map(([key, { accepted, latencies }]) => [at, key, accepted, latencies.get(4)]),
      );
    expect((await read(FIRST_HOUR, FIRST_HOUR + 2 * HOUR_MS)).sort()).toEqual([
      [FIRST_HOUR, 'google', 3, 2],
      [FIRST_HOUR, 'google', 5, 2],
      [FIRST_HOUR + HOUR_MS, 'google', 2, 2],
    ]);
    expect(await read(FIRST_HOUR + 1, FIRST_HOUR + HOUR_MS)).toEqual([]);
  });

  test('rows whose period began before the given time are purged in batches, and rows whose period has another length are kept', async () => {
    const store = await open();
    const hourlyRows = [0, 1, 2, 3].map((index) => createRow(FIRST_HOUR + index * HOUR_MS, 1));
    await store.writeDeliverability('one', [...hourlyRows, createRow(FIRST_HOUR, 1, { spanMs: 86_400_000 })]);
    expect(await store.purgeDeliverability(HOUR_MS, FIRST_HOUR + 3 * HOUR_MS, 2)).toBe(2);
    expect(await store.purgeDeliverability(HOUR_MS, FIRST_HOUR + 3 * HOUR_MS, 2)).toBe(1);
    expect(await store.purgeDeliverability(HOUR_MS, FIRST_HOUR + 3 * HOUR_MS, 2)).toBe(0);
    expect(await store.readDeliverability('provider', HOUR_MS, 0, FIRST_HOUR + 9 * HOUR_MS)).toMatchObject([
      { at: FIRST_HOUR + 3 * HOUR_MS },
    ]);
    expect(await store.readDeliverability('provider', 86_400_000, 0, FIRST_HOUR + 1)).toHaveLength(1);
  });

  test('the newer lookup result of a domain is kept, and the domains of a provider are listed with the latest lookup first', async () => {
    const store = await open();
    await store.writeMailboxProviders([]);
    await store.writeMailboxProviders([
      { domain: 'a.example', provider: 'google', lookedUpAt: 2 },
      { domain: 'b.example', provider: 'google', lookedUpAt: 3 },
      { domain: 'c.example', provider: 'yahoo', lookedUpAt: 4 },
    ]);
    await store.writeMailboxProviders([
      { domain: 'a.example', provider: 'apple', lookedUpAt: 1 },
      { domain: 'c.example', provider: 'google', lookedUpAt: 5 },
    ]);
    expect(
      [...(await store.findMailboxProviders(['c.example', 'a.example', 'absent.example', "'"]))].sort((a, b) =>
        a.domain < b.domain ? -1 : 1,
      ),
    ).toEqual([
      { domain: 'a.example', provider: 'google', lookedUpAt: 2 },
      { domain: 'c.example', provider: 'google', lookedUpAt: 5 },
    ]);
    expect(await store.listMailboxProviderDomains('google', 2)).toEqual(['c.example', 'b.example']);
    expect(await store.listMailboxProviderDomains('yahoo', 2)).toEqual([]);
  });

  test('old lookup results, and the oldest results above the maximum number, are purged in batches', async () => {
    const store = await open();
    await store.writeMailboxProviders(
      [1, 2, 3, 4, 5, 6].map((lookedUpAt) => ({ domain: `d${lookedUpAt}.example`, provider: 'google', lookedUpAt })),
    );
    expect(await store.purgeMailboxProviders(2, 100, 10)).toBe(1);
    expect(await store.purgeMailboxProviders(0, 2, 2)).toBe(2);
    expect(await store.purgeMailboxProviders(0, 2, 2)).toBe(1);
    expect(await store.purgeMailboxProviders(0, 2, 2)).toBe(0);
    expect(await store.listMailboxProviderDomains('google', 9)).toEqual(['d6.example', 'd5.example']);
  });
});
