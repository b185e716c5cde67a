import { expect, test } from 'vitest';
import { divideDescriptors, MAX_CONNECTIONS, readDescriptorLimit } from '../../../src/wiring/node.ts';

test('each listener gets its maximum if the limit of open files is sufficient; otherwise, all listeners get the same fraction of their maximum', () => {
  expect(divideDescriptors(Number.POSITIVE_INFINITY, 20)).toEqual(MAX_CONNECTIONS);
  expect(divideDescriptors(20_000, 1_000)).toEqual(MAX_CONNECTIONS);
  for (const limit of [64, 256, 1_024, 4_096, 10_240]) {
    const shares = divideDescriptors(limit, 20);
    const total = shares.public + shares.operator + shares.events;
    expect(total, String(limit)).toBeLessThanOrEqual(limit / 2 + 24 + Math.max(0, limit / 2 - 148));
    expect(shares.public).toBeLessThan(MAX_CONNECTIONS.public);
    expect(shares.operator).toBeGreaterThanOrEqual(8);
  }
});

test('the limit of open files of this process is read', () => {
  expect(readDescriptorLimit()).toBeGreaterThan(64);
});
