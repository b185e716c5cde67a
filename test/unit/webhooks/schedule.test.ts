import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  computeRetryDelayMs,
  MAX_RETRY_AFTER_MS,
  MAX_SCHEDULED_ATTEMPTS,
  parseRetryAfter,
} from '../../../src/webhooks/schedule.ts';
import { selectCaseCount } from '../../rig/sample.ts';

const NOW = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

describe('the schedule', () => {
  it('retries after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, and then ends', () => {
    const delays = Array.from({ length: 11 }, (_, index) => computeRetryDelayMs(index + 1, null, 0.5));
    const hours = [2, 5, 10, 14, 20, 24].map((count) => count * HOUR_MS);
    expect(delays).toEqual([5_000, 300_000, 1_800_000, ...hours, null, null]);
    expect(MAX_SCHEDULED_ATTEMPTS).toBe(10);
  });

  it('has a jitter of one tenth', () => {
    expect(computeRetryDelayMs(2, null, 0)).toBe(270_000);
    expect(computeRetryDelayMs(2, null, 0.999999)).toBeGreaterThan(329_000);
  });

  it('waits at least as long as Retry-After requires, up to 24 hours, and never less than without Retry-After', () => {
    const attempts = fc.integer({ min: 1, max: MAX_SCHEDULED_ATTEMPTS - 1 });
    const random = fc.double({ min: 0, max: 0.999999, noNaN: true });
    fc.assert(
      fc.property(attempts, fc.integer({ min: 0, max: 10 * MAX_RETRY_AFTER_MS }), random, (attempt, wait, value) => {
        const delay = computeRetryDelayMs(attempt, wait, value) ?? 0;
        expect(delay).toBeGreaterThanOrEqual(Math.min(wait, MAX_RETRY_AFTER_MS));
        expect(delay).toBeGreaterThanOrEqual(computeRetryDelayMs(attempt, null, value) ?? 0);
        expect(delay).toBeLessThanOrEqual(1.1 * MAX_RETRY_AFTER_MS + 1);
      }),
      { seed: 17, numRuns: selectCaseCount(100, 200) },
    );
  });
});

describe('Retry-After', () => {
  it('is a number of seconds or an HTTP date', () => {
    expect(parseRetryAfter('120', NOW)).toBe(120_000);
    expect(parseRetryAfter(' 0 ', NOW)).toBe(0);
    expect(parseRetryAfter(new Date(NOW + 90_000).toUTCString(), NOW)).toBe(90_000);
    expect(parseRetryAfter(new Date(NOW - 90_000).toUTCString(), NOW)).toBe(0);
  });

  it('is ignored if it is neither a number of seconds nor an HTTP date', () => {
    const values = [undefined, '', '-1', '1.5', '1e3', 'soon', '2026-01-01', 'Thu', `${'9'.repeat(65)}`, 'x GMT'];
    for (const value of values) expect(parseRetryAfter(value, NOW)).toBeNull();
  });

  it('of any number of digits is bounded', () => {
    expect(computeRetryDelayMs(1, parseRetryAfter('9'.repeat(60), NOW), 0)).toBe(MAX_RETRY_AFTER_MS);
  });
});
