import { expect, onTestFinished, test } from 'vitest';
import type { AfterCheck, SendingDomain } from '../../../src/domains/domain.ts';
import { checkAfterMs, watchDomains } from '../../../src/domains/watcher.ts';
import type { DomainUpdate } from '../../../src/store/trust.ts';
import { virtualClock } from '../../rig/clock.ts';

const NOW = Date.UTC(2026, 0, 5);
const HOUR = 3_600_000;

const domain = (name: string, given: Partial<SendingDomain> = {}): SendingDomain => ({
  id: 1,
  accountId: 1,
  name,
  subdomains: false,
  status: 'pending',
  createdAt: NOW,
  checkedAt: null,
  authenticatedAt: null,
  failingSince: null,
  keys: [],
  ...given,
});

function watched(domains: SendingDomain[], event: AfterCheck['event'] = null) {
  const clock = virtualClock(NOW);
  const checked: string[] = [];
  const news: string[] = [];
  const failures: string[] = [];
  let fault: Error | null = null;
  const stop = watchDomains({
    clock,
    list: async () => domains,
    check: async (one) => {
      checked.push(one.name);
      if (fault !== null) throw fault;
      const { id, status, authenticatedAt, failingSince, keys } = one;
      return {
        update: { id, basedOn: [], status, checkedAt: clock.now(), authenticatedAt, failingSince, checks: [], keys },
        event,
      };
    },
    update: async ({ checkedAt }: DomainUpdate) => {
      domains.splice(0, domains.length, ...domains.map((one) => ({ ...one, checkedAt })));
    },
    changed: ({ name }, what) => news.push(`${name} ${what}`),
    failed: (what, error) => failures.push(`${what}: ${String(error)}`),
  });
  onTestFinished(stop);
  return { clock, checked, news, failures, breakWith: (error: Error | null) => (fault = error) };
}

test('a pending domain is checked every few minutes, an authenticated one every few hours', async () => {
  const pending = watched([domain('new.example')]);
  await pending.clock.advance(HOUR);
  expect(pending.checked.length).toBeGreaterThanOrEqual(10);
  const settled = watched([domain('old.example', { status: 'authenticated', checkedAt: NOW })]);
  await settled.clock.advance(13 * HOUR);
  expect(settled.checked).toHaveLength(2);
});

test('a domain that is failing or has keys staged is looked at more often', () => {
  const authenticated = domain('a.example', { status: 'authenticated' });
  const staged = {
    selector: 's',
    algorithm: 'rsa',
    publicKey: '',
    sealed: '',
    state: 'staged',
    createdAt: 1,
    activatedAt: null,
    retireAt: null,
  } as const;
  expect(checkAfterMs({ ...authenticated, status: 'failing' }, NOW)).toBeLessThan(checkAfterMs(authenticated, NOW));
  expect(checkAfterMs({ ...authenticated, keys: [staged] }, NOW)).toBeLessThan(checkAfterMs(authenticated, NOW));
});

test('news is told, and a fault is reported and does not end the watch', async () => {
  const watch = watched([domain('new.example')], 'authenticated');
  await watch.clock.advance(1);
  expect(watch.news).toEqual(['new.example authenticated']);
  watch.breakWith(new Error('dns is on fire'));
  await watch.clock.advance(10 * 60_000);
  expect(watch.failures[0]).toContain('dns is on fire');
  watch.breakWith(null);
  const before = watch.checked.length;
  await watch.clock.advance(10 * 60_000);
  expect(watch.checked.length).toBeGreaterThan(before);
});
