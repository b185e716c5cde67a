import { expect, onTestFinished, test } from 'vitest';
import { getCheckIntervalMs, watchDomains } from '../../../src/domains/watcher.ts';
import type { CheckEvaluation, DomainUpdate, RecordCheck, SendingDomain } from '../../../src/model/domain.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createDkimKey, createSendingDomain } from './sending-domain.ts';

const NOW = Date.UTC(2026, 0, 5);
const HOUR_MS = 3_600_000;

const createDomain = (name: string, changes: Partial<SendingDomain> = {}): SendingDomain =>
  createSendingDomain({ name, createdAt: NOW, keys: [], ...changes });

const createMxCheck = (name: string): RecordCheck => ({
  ...{ purpose: 'return-path', type: 'MX', name, value: '10 mx.example', found: 'found', seen: [], detail: '' },
});

function startWatcher(domains: SendingDomain[], event: CheckEvaluation['event'] = null) {
  const clock = createVirtualClock(NOW);
  const checkedDomains: string[] = [];
  const events: string[] = [];
  const failures: string[] = [];
  let fault: Error | null = null;
  let isStale = false;
  let isVerified = false;
  const unansweredNames = new Set<string>();
  const stop = watchDomains({
    clock,
    listDomains: async () => domains,
    findDomain: async (name) => domains.find((candidate) => candidate.name === name) ?? null,
    checkRecords: async (candidate) => {
      checkedDomains.push(candidate.name);
      if (fault !== null) throw fault;
      if (unansweredNames.has(candidate.name)) return null;
      const { id, revision, status, authenticatedAt, failingSince, keys, returnPath } = candidate;
      const checks = returnPath === null ? [] : [createMxCheck(returnPath.name)];
      return {
        update: { id, revision, status, checkedAt: clock.now(), authenticatedAt, failingSince, checks, keys },
        event,
      };
    },
    updateDomain: async ({ id, checkedAt }: DomainUpdate) => {
      const index = domains.findIndex((candidate) => candidate.id === id);
      const previousDomain = domains[index];
      if (isStale || previousDomain === undefined) return { kind: 'stale' };
      const { returnPath } = previousDomain;
      const value = { ...previousDomain, checkedAt, returnPath: returnPath && { ...returnPath, isVerified } };
      domains[index] = value;
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
    checkedDomains,
    events,
    failures,
    unansweredNames,
    failWith: (error: Error | null) => (fault = error),
    makeStale: () => (isStale = true),
    setVerified: (value: boolean) => (isVerified = value),
  };
}

test('a pending domain is checked every few minutes, an authenticated domain every few hours', async () => {
  const pendingWatcher = startWatcher([createDomain('new.example')]);
  await pendingWatcher.clock.advance(HOUR_MS);
  expect(pendingWatcher.checkedDomains.length).toBeGreaterThanOrEqual(10);
  const authenticatedWatcher = startWatcher([createDomain('old.example', { status: 'authenticated', checkedAt: NOW })]);
  await authenticatedWatcher.clock.advance(13 * HOUR_MS);
  expect(authenticatedWatcher.checkedDomains).toHaveLength(2);
});

test('a domain that is failing or has staged keys is checked more often than an authenticated domain without staged keys', () => {
  const authenticatedDomain = createDomain('a.example', { status: 'authenticated' });
  const stagedKey = createDkimKey({ state: 'staged' });
  expect(getCheckIntervalMs({ ...authenticatedDomain, status: 'failing' }, NOW)).toBeLessThan(
    getCheckIntervalMs(authenticatedDomain, NOW),
  );
  expect(getCheckIntervalMs({ ...authenticatedDomain, keys: [stagedKey] }, NOW)).toBeLessThan(
    getCheckIntervalMs(authenticatedDomain, NOW),
  );
});

test('a domain with a return path is checked every hour, and more often until the records of the return path are found', () => {
  const computeInterval = (isVerified: boolean, changes: Partial<SendingDomain> = {}) =>
    getCheckIntervalMs(createDomain('a.example', { returnPath: { name: 'b.a.example', isVerified }, ...changes }), NOW);
  expect(computeInterval(true, { status: 'authenticated' })).toBe(HOUR_MS);
  expect(computeInterval(false, { status: 'authenticated' })).toBe(HOUR_MS / 4);
  expect(computeInterval(true, { createdAt: NOW - 48 * HOUR_MS })).toBe(HOUR_MS);
});

test('a check that changes the verification status of the return path publishes one event', async () => {
  const domains = [createDomain('a.example', { returnPath: { name: 'b.a.example', isVerified: false } })];
  const watcher = startWatcher(domains);
  await watcher.clock.advance(1);
  expect(watcher.events).toEqual([]);
  watcher.setVerified(true);
  await watcher.clock.advance(HOUR_MS);
  expect(watcher.events).toEqual(['a.example domain.return_path_verified']);
  watcher.setVerified(false);
  await watcher.clock.advance(3 * HOUR_MS);
  expect(watcher.events).toEqual(['a.example domain.return_path_verified', 'a.example domain.return_path_failing']);
});

test('the event of a check is published, and a failed check is reported and does not prevent later checks', async () => {
  const watcher = startWatcher([createDomain('new.example')], 'authenticated');
  await watcher.clock.advance(1);
  expect(watcher.events).toEqual(['new.example domain.authenticated']);
  watcher.failWith(new Error('DNS is unavailable'));
  await watcher.clock.advance(10 * 60_000);
  expect(watcher.failures[0]).toContain('DNS is unavailable');
  watcher.failWith(null);
  const checksBefore = watcher.checkedDomains.length;
  await watcher.clock.advance(10 * 60_000);
  expect(watcher.checkedDomains.length).toBeGreaterThan(checksBefore);
});

test('domains whose DNS never answers are checked at increasing intervals, and do not delay other domains', async () => {
  const brokenDomains = Array.from({ length: 60 }, (_, i) => createDomain(`broken${i}.example`, { id: i + 1 }));
  const watcher = startWatcher([...brokenDomains, createDomain('well.example', { id: 100 })]);
  for (const { name } of brokenDomains) watcher.unansweredNames.add(name);
  await watcher.clock.advance(5 * 60_000);
  expect(watcher.checkedDomains).toContain('well.example');
  await watcher.clock.advance(24 * HOUR_MS);
  const checkCount = watcher.checkedDomains.filter((name) => name === 'broken0.example').length;
  expect(checkCount).toBeGreaterThan(10);
  expect(checkCount).toBeLessThan(40);
});
