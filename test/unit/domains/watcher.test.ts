import { expect, onTestFinished, test } from 'vitest';
import { getCheckIntervalMs, watchDomains } from '../../../src/domains/watcher.ts';
import type { CheckEvaluation, DomainUpdate, SendingDomain } from '../../../src/model/domain.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const NOW = Date.UTC(2026, 0, 5);
const HOUR_MS = 3_600_000;

const domain = (name: string, changes: Partial<SendingDomain> = {}): SendingDomain => ({
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
  ...changes,
});

function startWatcher(domains: SendingDomain[], event: CheckEvaluation['event'] = null) {
  const clock = createVirtualClock(NOW);
  const checked: string[] = [];
  const events: string[] = [];
  const failures: string[] = [];
  let fault: Error | null = null;
  let stale = false;
  const unanswered = new Set<string>();
  const stop = watchDomains({
    clock,
    list: async () => domains,
    find: async (name) => domains.find((candidate) => candidate.name === name) ?? null,
    check: async (candidate) => {
      checked.push(candidate.name);
      if (fault !== null) throw fault;
      if (unanswered.has(candidate.name)) return null;
      const { id, revision, status, authenticatedAt, failingSince, keys } = candidate;
      return {
        update: { id, revision, status, checkedAt: clock.now(), authenticatedAt, failingSince, checks: [], keys },
        event,
      };
    },
    update: async ({ id, checkedAt }: DomainUpdate) => {
      const at = domains.findIndex((candidate) => candidate.id === id);
      const before = domains[at];
      if (stale || before === undefined) return { kind: 'stale' };
      const value = { ...before, checkedAt };
      domains[at] = value;
      return { kind: 'done', value };
    },
    publish: (event) =>
      event.type === 'node.operation_failed'
        ? failures.push(`${event.operation}: ${String(event.error)}`)
        : events.push(`${event.domain} ${event.type}`),
  });
  onTestFinished(stop);
  return {
    clock,
    checked,
    events,
    failures,
    unanswered,
    failWith: (error: Error | null) => (fault = error),
    makeStale: () => (stale = true),
  };
}

test('a pending domain is checked every few minutes, an authenticated domain every few hours', async () => {
  const pending = startWatcher([domain('new.example')]);
  await pending.clock.advance(HOUR_MS);
  expect(pending.checked.length).toBeGreaterThanOrEqual(10);
  const authenticated = startWatcher([domain('old.example', { status: 'authenticated', checkedAt: NOW })]);
  await authenticated.clock.advance(13 * HOUR_MS);
  expect(authenticated.checked).toHaveLength(2);
});

test('a domain that is failing or has staged keys is checked more often', () => {
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
  expect(getCheckIntervalMs({ ...authenticated, status: 'failing' }, NOW)).toBeLessThan(
    getCheckIntervalMs(authenticated, NOW),
  );
  expect(getCheckIntervalMs({ ...authenticated, keys: [staged] }, NOW)).toBeLessThan(
    getCheckIntervalMs(authenticated, NOW),
  );
});

test('events are published, and an error is reported and does not stop the checks', async () => {
  const watcher = startWatcher([domain('new.example')], 'authenticated');
  await watcher.clock.advance(1);
  expect(watcher.events).toEqual(['new.example domain.authenticated']);
  watcher.failWith(new Error('DNS is unavailable'));
  await watcher.clock.advance(10 * 60_000);
  expect(watcher.failures[0]).toContain('DNS is unavailable');
  watcher.failWith(null);
  const before = watcher.checked.length;
  await watcher.clock.advance(10 * 60_000);
  expect(watcher.checked.length).toBeGreaterThan(before);
});

test('domains whose DNS never answers are checked with increasing intervals, and do not delay other domains', async () => {
  const brokenDomains = Array.from({ length: 60 }, (_, i) => domain(`broken${i}.example`, { id: i + 1 }));
  const watcher = startWatcher([...brokenDomains, domain('well.example', { id: 100 })]);
  for (const { name } of brokenDomains) watcher.unanswered.add(name);
  await watcher.clock.advance(5 * 60_000);
  expect(watcher.checked).toContain('well.example');
  await watcher.clock.advance(24 * HOUR_MS);
  const checkCount = watcher.checked.filter((name) => name === 'broken0.example').length;
  expect(checkCount).toBeGreaterThan(10);
  expect(checkCount).toBeLessThan(40);
});

test('an error for one domain does not prevent the check of another in the same round', async () => {
  const watcher = startWatcher([domain('a.example', { id: 1 }), domain('b.example', { id: 2 })]);
  watcher.failWith(new Error('DNS is unavailable'));
  await watcher.clock.advance(1);
  expect(watcher.checked).toEqual(['a.example', 'b.example']);
  expect(watcher.failures).toHaveLength(2);
});

test('a stale result publishes no event', async () => {
  const watcher = startWatcher([domain('new.example')], 'lost');
  watcher.makeStale();
  await watcher.clock.advance(1);
  expect(watcher.checked).toEqual(['new.example']);
  expect(watcher.events).toEqual([]);
});
