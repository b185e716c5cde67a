import { describe, expect, test } from 'vitest';
import {
  createKeyCounts,
  formatKeyCounts,
  type MutableKeyCounts,
  REMAINDER_KEY,
  type Series,
} from '../../../src/model/deliverability.ts';
import { getLatencyBucket, HOUR_MS } from '../../../src/model/traffic.ts';
import { showDeliverability } from '../../../src/operations/deliverability.ts';
import { listChanges } from '../../../src/statistics/figures.ts';
import { createOperationRig, type OperationRig } from './operation-rig.ts';

type CountsByKey = Readonly<Record<string, Partial<MutableKeyCounts>>>;

const createCounts = (accepted: number, bounced = 0, complained = 0): Partial<MutableKeyCounts> => ({
  ...{ accepted, ended: accepted, delivered: accepted - bounced, bounced, hard: bounced, complained },
  latencies: new Map([[getLatencyBucket(200), accepted - bounced]]),
});

async function writeSeries({ store }: OperationRig, at: number, series: Series, counts: CountsByKey): Promise<void> {
  const entries = Object.entries(counts).map(([key, changes]) => [key, { ...createKeyCounts(), ...changes }] as const);
  await store.writeDeliverability(`node-${series}`, [
    { spanMs: HOUR_MS, at, series, counts: formatKeyCounts(entries) },
  ]);
}

async function createRigWithFigures() {
  const rig = await createOperationRig();
  const hour = rig.now - (rig.now % HOUR_MS);
  const [{ id } = { id: 0 }] = await rig.store.listAccounts();
  await writeSeries(rig, hour, 'provider', {
    google: createCounts(1_000, 100, 4),
    yahoo: createCounts(200),
    [REMAINDER_KEY]: createCounts(7),
  });
  await writeSeries(rig, hour - 24 * HOUR_MS, 'provider', {
    google: createCounts(1_000, 10),
    yahoo: createCounts(210),
  });
  await writeSeries(rig, hour - 48 * HOUR_MS, 'provider', { google: createCounts(5_000) });
  await writeSeries(rig, hour, 'account', { [id]: createCounts(300), 9999: createCounts(800) });
  await writeSeries(rig, hour, 'account/provider', {
    [`${id}/google`]: createCounts(250),
    '9999/google': createCounts(700),
  });
  await writeSeries(rig, hour, 'sending-domain', {
    [`${id}/shop.example`]: createCounts(20),
    '9999/shop.example': createCounts(5),
  });
  await writeSeries(rig, hour, 'sending-domain/provider', {
    [`${id}/shop.example/yahoo`]: createCounts(20),
    '9999/shop.example/yahoo': createCounts(5),
    '9999/other.example/yahoo': createCounts(50),
  });
  return rig;
}

test('the rows and `other` add up to the total, and are compared with the previous period', async () => {
  const rig = await createRigWithFigures();
  const result = await rig.performSuccessfully(showDeliverability, { by: 'provider', limit: '1' });
  expect(result.rows).toMatchObject([
    {
      ...{ key: 'google', name: 'Google', accepted: 1_000, bounceRate: 0.1, complaintRate: 4 / 900 },
      ...{ bounces: { hard: 100, soft: 0, block: 0 }, lockThresholds: null },
      previous: { accepted: 1_000, bounceRate: 0.01 },
    },
  ]);
  expect(result.other).toMatchObject({ accepted: 207, previous: { accepted: 210 } });
  expect(result.total).toMatchObject({ accepted: 1_207, previous: { accepted: 1_210 } });
  expect(result.points).toHaveLength(24);
  expect(result.points.at(-1)).toMatchObject({ accepted: 1_207 });
  const google = await rig.performSuccessfully(showDeliverability, { by: 'provider', key: 'google' });
  expect(google.points.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(1_000);
});

test('with a filter by account or sending domain, rows contain only the counts of that account or domain, and `other` contains the remaining counts of the account', async () => {
  const rig = await createRigWithFigures();
  const accountResult = await rig.performSuccessfully(showDeliverability, { by: 'provider', account: 'acme' });
  expect(accountResult.rows).toMatchObject([{ key: 'google', accepted: 250 }]);
  expect([accountResult.other.accepted, accountResult.total.accepted, accountResult.points.at(-1)?.accepted]).toEqual([
    50, 300, 300,
  ]);
  const domainResult = await rig.performSuccessfully(showDeliverability, {
    by: 'provider',
    sendingDomain: 'SHOP.example',
  });
  expect(domainResult.rows).toMatchObject([{ key: 'yahoo', accepted: 25 }]);
  const byDomain = await rig.performSuccessfully(showDeliverability, { by: 'sending-domain' });
  expect(byDomain.rows).toMatchObject([{ key: 'shop.example', accepted: 25 }]);
  const byAccount = await rig.performSuccessfully(showDeliverability, { by: 'account' });
  expect(byAccount.rows).toMatchObject([
    { key: 'account 9999', accepted: 800, lockThresholds: null },
    { key: 'acme', accepted: 300, lockThresholds: { bounceRate: 0.1, complaintRate: 0.0015 } },
  ]);
});

describe('changes', () => {
  const PERIOD_LENGTHS = { currentMs: 24 * HOUR_MS, previousMs: 24 * HOUR_MS };
  const find = (before: Partial<MutableKeyCounts>, after: Partial<MutableKeyCounts>) => {
    const counts = { previous: { ...createKeyCounts(), ...before }, current: { ...createKeyCounts(), ...after } };
    return listChanges([{ key: 'google', name: 'Google', counts }], PERIOD_LENGTHS);
  };
  const createLatencies = (ms: number, count: number) => ({ latencies: new Map([[getLatencyBucket(ms), count]]) });

  test.each([
    ['a higher bounce rate', createCounts(1_000, 10), createCounts(1_000, 60), ['bounce-rate-rose', 'worse']],
    ['a lower bounce rate', createCounts(1_000, 60), createCounts(1_000, 10), ['bounce-rate-fell', 'better']],
    ['a higher complaint rate', createCounts(10_000), createCounts(10_000, 0, 30), ['complaint-rate-rose', 'worse']],
    ['slower deliveries', createLatencies(500, 100), createLatencies(5_000, 100), ['delivery-slower', 'worse']],
    ['faster deliveries', createLatencies(5_000, 100), createLatencies(500, 100), ['delivery-faster', 'better']],
    ['more traffic', createCounts(1_000), createCounts(2_000), ['traffic-rose', 'neutral']],
    ['new traffic', {}, createCounts(2_000), ['traffic-began', 'neutral']],
    ['ended traffic', createCounts(1_000), {}, ['traffic-ended', 'neutral']],
  ])('%s is a change', (_, before, after, [code, judgement]) => {
    expect(find(before, after)).toMatchObject([{ key: 'google', code, judgement }]);
  });

  test.each([
    ['few messages', createCounts(40), createCounts(40, 20)],
    ['a difference within the sampling error', createCounts(100, 4), createCounts(100, 7)],
    ['a small difference of a large sample', createCounts(1_000_000, 10_000), createCounts(1_000_000, 11_000)],
    ['a time that changed by less than half', createLatencies(1_000, 100), createLatencies(1_900, 100)],
    ['equal figures', createCounts(1_000, 10, 1), createCounts(1_000, 10, 1)],
  ])('%s is not a change', (_, before, after) => {
    expect(find(before, after)).toEqual([]);
  });
});
