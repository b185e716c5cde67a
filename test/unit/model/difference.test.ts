import { expect, test } from 'vitest';
import { listDifferences as listMemberDifferences } from '../../../src/model/audit.ts';

const listDifferences = (before: unknown, after: unknown) =>
  listMemberDifferences(before, after, {
    formatTime: (ms) => new Date(ms).toISOString(),
    formatDuration: (ms) => `${ms} ms`,
  });

const limits = { volume: null, volumeExpiresAt: null, rate: { limit: 1000, periodMs: 3_600_000 }, throttle: null };

test('for a changed object, only the members that differ are listed, with limits in readable form', () => {
  const accountBefore = { limits, locked: null, thresholds: { bounceRate: 0.1, complaintRate: 0.0015 } };
  const accountAfter = {
    limits: { ...limits, rate: null, throttle: { perSecond: 50, burst: 200 }, volumeExpiresAt: Date.UTC(2030, 0, 1) },
    locked: 'unpaid',
    thresholds: { bounceRate: 0.08, complaintRate: 0.0015 },
  };
  expect(listDifferences(accountBefore, accountAfter)).toEqual([
    { member: 'limits: rate', before: '1000 in 3600000 ms', after: null },
    { member: 'thresholds: bounce rate', before: '10 %', after: '8 %' },
    { member: 'limits: volume expires', before: null, after: '2030-01-01T00:00:00.000Z' },
    { member: 'limits: throttle', before: null, after: '50 per second, burst 200' },
    { member: 'locked', before: null, after: 'unpaid' },
  ]);
});

test('for a created or deleted object, all members are listed, and for an unchanged object none', () => {
  expect(listDifferences(null, { name: 'web', keys: ['a active', 'b staged'] })).toEqual([
    { member: 'name', before: null, after: 'web' },
    { member: 'keys', before: null, after: 'a active, b staged' },
  ]);
  expect(listDifferences({ address: 'ada@example.com' }, null)).toEqual([
    { member: 'address', before: 'ada@example.com', after: null },
  ]);
  expect(listDifferences({ a: 1 }, { a: 1 })).toEqual([]);
  expect(listDifferences(null, null)).toEqual([]);
});
