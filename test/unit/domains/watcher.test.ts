import { expect, onTestFinished, test } from 'vitest';
import { checkIntervalMs, watchDomains } from '../../../src/domains/watcher.ts';
import type { CheckEvaluation, DomainUpdate, SendingDomain } from '../../../src/model/domain.ts';
import { virtualClock } from '../../rig/clock.ts';

const NOW = Date.UTC(2026, 0, 5);
const HOUR = 3_600_000;

const domain = (name: string, given: Partial<SendingDomain> = {}): SendingDomain => ({
  id: 1,
  revision: 1,
  accountId: 1,
  name,
  subdomains: false,
  status: 'pending',
  createdAt: NOW,
  checkedAt: null,
  authenticatedAt: null,
  failingSince: null,
  published: [],
  keys: [],
  ...given,
});

function watched(domains: SendingDomain[], event: CheckEvaluation['event'] = null) {
  const clock = virtualClock(NOW);
  const checked: string[] = [];
  const news: string[] = [];
  const failures: string[] = [];
  let fault: Error | null = null;
  let stale = false;
  const silent = new Set<string>();
  const stop = watchDomains({
    clock,
    list: async () => domains,
    find: async (name) => domains.find((one) => one.name === name) ?? null,
    check: async (one) => {
      checked.push(one.name);
      if (fault !== null) throw fault;
      if (silent.has(one.name)) return null;
      const { id, revision, status, authenticatedAt, failingSince, keys } = one;
      return {
        update: { id, revision, status, checkedAt: clock.now(), authenticatedAt, failingSince, checks: [], keys },
        event,
      };
    },
    update: async ({ id, checkedAt }: DomainUpdate) => {
      const at = domains.findIndex((one) => one.id === id);
      const before = domains[at];
      if (stale || before === undefined) return { kind: 'stale' };
      const value = { ...before, checkedAt };
      domains[at] = value;
      return { kind: 'done', value };
    },
    publish: (event) =>
      event.type === 'node.operation_failed'
        ? failures.push(`${event.operation}: ${String(event.error)}`)
        : news.push(`${event.domain} ${event.type}`),
  });
  onTestFinished(stop);
  return {
    clock,
    checked,
    news,
    failures,
    silent,
    breakWith: (error: Error | null) => (fault = error),
    beStale: () => (stale = true),
  };
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
  expect(checkIntervalMs({ ...authenticated, status: 'failing' }, NOW)).toBeLessThan(
    checkIntervalMs(authenticated, NOW),
  );
  expect(checkIntervalMs({ ...authenticated, keys: [staged] }, NOW)).toBeLessThan(checkIntervalMs(authenticated, NOW));
});

test('news is told, and a fault is reported and does not end the watch', async () => {
  const watch = watched([domain('new.example')], 'authenticated');
  await watch.clock.advance(1);
  expect(watch.news).toEqual(['new.example domain.authenticated']);
  watch.breakWith(new Error('dns is on fire'));
  await watch.clock.advance(10 * 60_000);
  expect(watch.failures[0]).toContain('dns is on fire');
  watch.breakWith(null);
  const before = watch.checked.length;
  await watch.clock.advance(10 * 60_000);
  expect(watch.checked.length).toBeGreaterThan(before);
});

test('domains whose DNS never answers are tried less and less, and keep no other from its turn', async () => {
  const broken = Array.from({ length: 60 }, (_, i) => domain(`broken${i}.example`, { id: i + 1 }));
  const watch = watched([...broken, domain('well.example', { id: 100 })]);
  for (const { name } of broken) watch.silent.add(name);
  await watch.clock.advance(5 * 60_000);
  expect(watch.checked).toContain('well.example');
  await watch.clock.advance(24 * HOUR);
  const tries = watch.checked.filter((name) => name === 'broken0.example').length;
  expect(tries).toBeGreaterThan(10);
  expect(tries).toBeLessThan(40);
});

test('the fault of one domain keeps no other from its turn in the same round', async () => {
  const watch = watched([domain('a.example', { id: 1 }), domain('b.example', { id: 2 })]);
  watch.breakWith(new Error('dns is on fire'));
  await watch.clock.advance(1);
  expect(watch.checked).toEqual(['a.example', 'b.example']);
  expect(watch.failures).toHaveLength(2);
});

test('a result that came too late is no news', async () => {
  const watch = watched([domain('new.example')], 'lost');
  watch.beStale();
  await watch.clock.advance(1);
  expect(watch.checked).toEqual(['new.example']);
  expect(watch.news).toEqual([]);
});
