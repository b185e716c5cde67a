import fc from 'fast-check';
import { expect, test } from 'vitest';
import { computeThresholdUsages, DEFAULT_THRESHOLDS, determineReputationStatus } from '../../../src/model/account.ts';

const getStatusKind = (emails: number, bounces: number, complaints: number, thresholds = DEFAULT_THRESHOLDS) =>
  determineReputationStatus(
    { emails, bounces, complaints, provenBounces: bounces, provenComplaints: complaints },
    thresholds,
    'lock',
  ).kind;

test.each([
  ['with at least 100 messages, 10 % hard bounces', 100, 4, 0, 'good'],
  ['with at least 100 messages, 10 % hard bounces', 100, 5, 0, 'warning'],
  ['with at least 100 messages, 10 % hard bounces', 100, 9, 0, 'warning'],
  ['with at least 100 messages, 10 % hard bounces', 100, 10, 0, 'lock'],
  ['with at least 100 messages, 10 % hard bounces', 1_000, 99, 0, 'warning'],
  ['with at least 100 messages, 10 % hard bounces', 1_000, 100, 0, 'lock'],
  ['with at least 100 messages, 0.15 % complaints', 10_000, 0, 7, 'good'],
  ['with at least 100 messages, 0.15 % complaints', 10_000, 0, 8, 'warning'],
  ['with at least 100 messages, 0.15 % complaints', 10_000, 0, 14, 'warning'],
  ['with at least 100 messages, 0.15 % complaints', 10_000, 0, 15, 'lock'],
  ['below 100 messages, ten bounces', 20, 4, 0, 'good'],
  ['below 100 messages, ten bounces', 20, 5, 0, 'warning'],
  ['below 100 messages, ten bounces', 20, 10, 0, 'lock'],
] as const)(
  '%s lock an account, and half of it warns: of %i messages, %i bounces and %i complaints are %s',
  (_, emails, bounces, complaints, kind) => {
    expect(getStatusKind(emails, bounces, complaints)).toBe(kind);
  },
);

test('a lock requires five complaints at any rate, and three cause a warning', () => {
  for (const emails of [1, 99, 100, 101, 500, 666]) {
    expect(getStatusKind(emails, 0, 2)).toBe('good');
    expect(getStatusKind(emails, 0, 3)).toBe('warning');
    expect(getStatusKind(emails, 0, 4)).toBe('warning');
    expect(getStatusKind(emails, 0, 5)).toBe('lock');
  }
  expect(getStatusKind(500, 0, 4, { bounceRate: 1, complaintRate: 0 })).toBe('warning');
  expect(getStatusKind(500, 0, 5, { bounceRate: 1, complaintRate: 0 })).toBe('lock');
});

test.each([
  ['without proven counts', { provenBounces: 0, provenComplaints: 0 }, 'lock', 'warning'],
  ['with proven counts', { provenBounces: 900, provenComplaints: 900 }, 'lock', 'lock'],
  ['with proven counts, set to warn', { provenBounces: 900, provenComplaints: 900 }, 'warn', 'warning'],
] as const)('many bounces and complaints %s: %o, on reputation %s: %s', (_, proven, onReputation, kind) => {
  for (const counts of [
    { emails: 20, bounces: 20, complaints: 20 },
    { emails: 1_000, bounces: 900, complaints: 900 },
  ])
    expect(determineReputationStatus({ ...counts, ...proven }, DEFAULT_THRESHOLDS, onReputation).kind).toBe(kind);
});

test('thresholds of an account replace the defaults, and an account with a threshold of 100 % is never locked', () => {
  expect(getStatusKind(1_000, 150, 0, { bounceRate: 0.2, complaintRate: 0.0015 })).toBe('warning');
  expect(getStatusKind(1_000, 1_000, 1_000, { bounceRate: 1, complaintRate: 1 })).toBe('good');
});

test('more bounces or complaints never improve the status, and a lock requires at least one bounce or complaint', () => {
  const severity = { good: 0, warning: 1, lock: 2 };
  fc.assert(
    fc.property(fc.nat(5_000), fc.nat(500), fc.nat(50), (emails, bounces, complaints) => {
      const currentSeverity = severity[getStatusKind(emails, bounces, complaints)];
      expect(severity[getStatusKind(emails, bounces + 1, complaints)]).toBeGreaterThanOrEqual(currentSeverity);
      expect(severity[getStatusKind(emails, bounces, complaints + 1)]).toBeGreaterThanOrEqual(currentSeverity);
      expect(getStatusKind(emails, 0, 0)).toBe('good');
    }),
  );
});

test('the usage of a threshold is computed from the rate, or below 100 messages from the count, and is 0 without a limit', () => {
  const [bounces, complaints] = computeThresholdUsages({ emails: 200, bounces: 5, complaints: 0 }, DEFAULT_THRESHOLDS);
  expect(bounces).toEqual({ metric: 'bounces', count: 5, limitType: 'rate', limit: 0.1, usage: 0.25 });
  expect(complaints).toEqual({ metric: 'complaints', count: 0, limitType: 'rate', limit: 0.0015, usage: 0 });
  const [usageBelowMinimum] = computeThresholdUsages({ emails: 20, bounces: 5, complaints: 0 }, DEFAULT_THRESHOLDS);
  expect(usageBelowMinimum).toEqual({ metric: 'bounces', count: 5, limitType: 'count', limit: 10, usage: 0.5 });
  const [usageOfFullThreshold] = computeThresholdUsages(
    { emails: 200, bounces: 200, complaints: 0 },
    { bounceRate: 1, complaintRate: 1 },
  );
  expect(usageOfFullThreshold).toEqual({ metric: 'bounces', count: 200, limitType: 'rate', limit: null, usage: 0 });
  const [usageOfZeroThreshold] = computeThresholdUsages(
    { emails: 200, bounces: 1, complaints: 0 },
    { bounceRate: 0, complaintRate: 1 },
  );
  expect(usageOfZeroThreshold.usage).toBe(1);
});
