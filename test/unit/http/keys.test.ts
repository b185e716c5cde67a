import { expect, test } from 'vitest';
import {
  ApiKeyCache,
  type ApiKeyCacheParts,
  BatchedLookups,
  MAX_DIGESTS_PER_QUERY,
  MAX_WAITING_LOOKUPS,
} from '../../../src/http/keys.ts';
import type { FoundKeys } from '../../../src/model/account.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createAccount, createApiKey } from './rig.ts';

const RAW_KEY = `pr_${'d'.repeat(43)}`;

function createKeyCache(publish: ApiKeyCacheParts['publish'] = () => undefined): ApiKeyCache {
  return new ApiKeyCache({ clock: { now: () => 0 }, publish });
}

test('a key is found only by its exact raw value', () => {
  const keyCache = createKeyCache();
  expect(keyCache.lookup(RAW_KEY, 0)).toEqual({ kind: 'missing', hash: createApiKey(RAW_KEY).hash });
  keyCache.apply({ revision: 1, accounts: [createAccount()], keys: [createApiKey(RAW_KEY)] });
  expect(keyCache.lookup(RAW_KEY, 0)).toMatchObject({ kind: 'valid', key: { id: 1 }, account: { id: 1 } });
  for (const otherValue of [
    ` ${RAW_KEY}`,
    `${RAW_KEY} `,
    RAW_KEY.toUpperCase(),
    createApiKey(RAW_KEY).hash,
    `Bearer ${RAW_KEY}`,
  ]) {
    expect(keyCache.lookup(otherValue, 0)).toEqual({ kind: 'missing', hash: createApiKey(otherValue).hash });
  }
  for (const invalidValue of [undefined, '', 'k'.repeat(513)])
    expect(keyCache.lookup(invalidValue, 0)).toEqual({ kind: 'invalid' });
});

test('a key is invalid from the millisecond of its revocation or expiry', () => {
  const keyCache = createKeyCache();
  keyCache.apply({ revision: 1, accounts: [createAccount()], keys: [createApiKey(RAW_KEY, { expiresAt: 1000 })] });
  expect([999, 1000].map((now) => keyCache.lookup(RAW_KEY, now).kind)).toEqual(['valid', 'invalid']);
  keyCache.apply({ revision: 2, accounts: [], keys: [createApiKey(RAW_KEY, { revokedAt: 500 })] });
  expect([499, 500].map((now) => keyCache.lookup(RAW_KEY, now).kind)).toEqual(['valid', 'invalid']);
});

test('a change of an account applies to its keys, and a key whose account is not cached is missing', () => {
  const keyCache = createKeyCache();
  keyCache.apply({ revision: 1, accounts: [], keys: [createApiKey(RAW_KEY)] });
  expect(keyCache.lookup(RAW_KEY, 0)).toEqual({ kind: 'missing', hash: createApiKey(RAW_KEY).hash });
  expect(keyCache.isValid(RAW_KEY, 0)).toBe(false);
  keyCache.apply({ revision: 2, accounts: [createAccount({ name: 'late' })], keys: [] });
  expect(keyCache.lookup(RAW_KEY, 0)).toMatchObject({ kind: 'valid', account: { name: 'late' } });
  keyCache.apply({ revision: 3, accounts: [createAccount({ locked: { reason: 'x', at: 1 } })], keys: [] });
  expect(keyCache.lookup(RAW_KEY, 0).kind).toBe('locked');
  keyCache.apply({ revision: 4, accounts: [], keys: [createApiKey(RAW_KEY, { revokedAt: 0 })] });
  expect(keyCache.lookup(RAW_KEY, 1).kind).toBe('invalid');
});

test('a key whose hash was replaced is no longer valid', () => {
  const keyCache = createKeyCache();
  keyCache.apply({ revision: 1, accounts: [createAccount()], keys: [createApiKey(RAW_KEY)] });
  keyCache.apply({ revision: 2, accounts: [], keys: [createApiKey('other')] });
  expect(keyCache.lookup(RAW_KEY, 0).kind).toBe('missing');
  expect(keyCache.lookup('other', 0).kind).toBe('valid');
});

test('a delayed result of the store does not overwrite newer data', () => {
  const keyCache = createKeyCache();
  const lockedAccount = createAccount({ locked: { reason: 'abuse', at: 1 } });
  keyCache.apply({ revision: 5, accounts: [lockedAccount], keys: [createApiKey(RAW_KEY, { revokedAt: 3 })] });
  keyCache.apply({ revision: 4, accounts: [createAccount()], keys: [createApiKey(RAW_KEY)] });
  expect(keyCache.lookup(RAW_KEY, 9).kind).toBe('invalid');
  expect(keyCache.isLocked(1)).toBe(true);
  // Data with the revision of the cached data is applied. Older data is applied if its keys are not cached.
  keyCache.apply({ revision: 5, accounts: [createAccount({ locked: { reason: 'again', at: 2 } })], keys: [] });
  keyCache.apply({ revision: 4, accounts: [], keys: [createApiKey('other', { id: 2 })] });
  expect(keyCache.lookup('other', 9).kind).toBe('locked');
  expect(keyCache.findAccount(1)?.locked?.reason).toBe('again');
});

test('each change is published once, and so are warnings and locks of a cached account', () => {
  const publishedLines: string[] = [];
  const keyCache = createKeyCache((event) =>
    publishedLines.push('reason' in event ? `${event.type} ${event.reason}` : event.type),
  );
  const lockedAccount = createAccount({ locked: { reason: 'abuse', at: 1 } });
  keyCache.apply({ revision: 1, accounts: [], keys: [] });
  expect(publishedLines).toEqual([]);
  // The lock of an account that is new in the cache was published earlier.
  keyCache.apply({ revision: 2, accounts: [lockedAccount, createAccount({ id: 2 })], keys: [] });
  expect(publishedLines.splice(0)).toEqual(['account.changed']);
  keyCache.apply({ revision: 3, accounts: [lockedAccount, createAccount({ id: 2, warning: 'bounces' })], keys: [] });
  expect(publishedLines.splice(0)).toEqual(['account.warned bounces', 'account.changed']);
  keyCache.apply({
    revision: 4,
    accounts: [createAccount({ id: 2, warning: 'bounces', locked: lockedAccount.locked })],
    keys: [],
  });
  expect(publishedLines.splice(0)).toEqual(['account.locked abuse', 'account.changed']);
});

test('the use of a valid key is reported at most once per minute', () => {
  const keyCache = createKeyCache();
  keyCache.apply({ revision: 1, accounts: [createAccount()], keys: [createApiKey(RAW_KEY)] });
  keyCache.lookup(RAW_KEY, 1000);
  keyCache.lookup(RAW_KEY, 2000);
  expect(keyCache.drainUsedKeys()).toEqual([{ id: 1, at: 1000 }]);
  keyCache.lookup(RAW_KEY, 60_999);
  expect(keyCache.drainUsedKeys()).toEqual([]);
  keyCache.apply({ revision: 2, accounts: [], keys: [createApiKey(RAW_KEY, { lastUsedAt: 1000 })] });
  keyCache.lookup(RAW_KEY, 61_000);
  expect(keyCache.drainUsedKeys()).toEqual([{ id: 1, at: 61_000 }]);
  keyCache.apply({ revision: 3, accounts: [createAccount({ locked: { reason: 'x', at: 1 } })], keys: [] });
  keyCache.lookup(RAW_KEY, 200_000);
  expect(keyCache.drainUsedKeys()).toEqual([]);
});

// Lookups of credentials that are not cached are combined into few queries. Each query takes lookups from all peers in
// turn.

const NO_KEYS: FoundKeys = { revision: 0, accounts: [], keys: [] };

function createLookups(find: (hashes: readonly string[]) => Promise<FoundKeys> = () => Promise.resolve(NO_KEYS)) {
  const clock = createVirtualClock(1_000);
  const queries: { readonly at: number; readonly hashes: readonly string[] }[] = [];
  const results: FoundKeys[] = [];
  const errors: unknown[] = [];
  const lookups = new BatchedLookups({
    find: (hashes) => {
      queries.push({ at: clock.now(), hashes });
      return find(hashes);
    },
    clock,
  });
  const startLookup = (hash: string, peer: string) => {
    const status = { outcome: 'waiting' };
    const lookupPromise = lookups.find(hash, peer);
    if (lookupPromise === null) status.outcome = 'full';
    lookupPromise?.then(
      (keys) => {
        results.push(keys);
        status.outcome = 'looked up';
      },
      (error: unknown) => {
        errors.push(error);
        status.outcome = 'failed';
      },
    );
    return status;
  };
  return { clock, queries, results, errors, startLookup };
}

test('a single lookup causes a query immediately and resolves to the result of the query', async () => {
  const foundKeys: FoundKeys = { ...NO_KEYS, revision: 7 };
  const { clock, queries, results, startLookup } = createLookups(() => Promise.resolve(foundKeys));
  const lookup = startLookup('a', 'p');
  expect(queries).toEqual([{ at: 1_000, hashes: ['a'] }]);
  await clock.advance(0);
  expect(lookup.outcome).toBe('looked up');
  expect(results).toEqual([foundKeys]);
});

test('many lookups cause one query per 10 ms with at most 1,000 digests, and each lookup resolves', async () => {
  const { clock, queries, startLookup } = createLookups();
  const lookups = Array.from({ length: 9_500 }, (_, index) => startLookup(`guess-${index}`, `peer-${index % 3}`));
  await clock.advance(200);
  expect(lookups.filter(({ outcome }) => outcome !== 'looked up')).toEqual([]);
  expect(queries).toHaveLength(11);
  expect(Math.max(...queries.map(({ hashes }) => hashes.length))).toBe(MAX_DIGESTS_PER_QUERY);
  for (const [n, { at }] of queries.entries()) expect(at).toBe(1_000 + 10 * n);
});

test('only one query runs at a time, even if the store is slow', async () => {
  let runningCount = 0;
  let maxRunningCount = 0;
  const { clock, queries, startLookup } = createLookups(async () => {
    runningCount += 1;
    maxRunningCount = Math.max(maxRunningCount, runningCount);
    await new Promise<void>((resolve) => clock.after(100, resolve));
    runningCount -= 1;
    return NO_KEYS;
  });
  const lookups = Array.from({ length: 2_500 }, (_, index) => startLookup(`guess-${index}`, 'peer'));
  await clock.advance(1_000);
  expect(lookups.every(({ outcome }) => outcome === 'looked up')).toBe(true);
  expect([maxRunningCount, queries.length]).toEqual([1, 4]);
});

test('a lookup gets the result of a query that started after the lookup', async () => {
  const replies: (() => void)[] = [];
  const { clock, queries, startLookup } = createLookups(
    () => new Promise((resolve) => replies.push(() => resolve(NO_KEYS))),
  );
  startLookup('same', 'p');
  const laterLookup = startLookup('same', 'q');
  replies[0]?.();
  await clock.advance(0);
  expect(laterLookup.outcome).toBe('waiting');
  await clock.advance(10);
  expect(queries).toHaveLength(2);
  replies[1]?.();
  await clock.advance(0);
  expect(laterLookup.outcome).toBe('looked up');
});

test('many lookups of one peer do not delay the lookup of another peer, which is in the next query', async () => {
  const { clock, queries, startLookup } = createLookups();
  const guessedLookups = Array.from({ length: 8_000 }, (_, index) => startLookup(`guess-${index}`, 'guesser'));
  const newKeyLookup = startLookup('new-key', 'client');
  await clock.advance(10);
  expect(queries[1]?.hashes).toContain('new-key');
  expect(newKeyLookup.outcome).toBe('looked up');
  expect(guessedLookups.filter(({ outcome }) => outcome === 'waiting').length).toBeGreaterThan(5_000);
});

test('with more peers than digests per query, each peer is served in turn', async () => {
  const { clock, queries, startLookup } = createLookups();
  startLookup('first', 'first');
  const peerCount = 2 * MAX_DIGESTS_PER_QUERY + 1;
  for (let n = 0; n < peerCount; n += 1) {
    startLookup(`${n}-a`, `peer-${n}`);
    startLookup(`${n}-b`, `peer-${n}`);
  }
  await clock.advance(30);
  const hashes = queries.slice(1).flatMap((query) => query.hashes);
  expect(hashes).toHaveLength(3 * MAX_DIGESTS_PER_QUERY);
  expect(hashes.slice(0, peerCount)).toEqual(Array.from({ length: peerCount }, (_, index) => `${index}-a`));
});

test('the number of waiting lookups is limited, and one peer cannot use the complete limit', async () => {
  const { clock, startLookup } = createLookups();
  const firstLookups = Array.from({ length: MAX_WAITING_LOOKUPS }, (_, index) =>
    startLookup(`guess-${index}`, 'guesser'),
  );
  const refusedCount = firstLookups.filter(({ outcome }) => outcome === 'full').length;
  // The first lookup is in the running query and does not wait.
  expect(MAX_WAITING_LOOKUPS - refusedCount).toBe(MAX_WAITING_LOOKUPS / 2 + 1);
  const newKeyLookup = startLookup('new-key', 'client');
  expect(newKeyLookup.outcome).toBe('waiting');
  await clock.advance(10);
  expect(newKeyLookup.outcome).toBe('looked up');
  // After some lookups have resolved, new lookups are accepted.
  expect(startLookup('guess', 'guesser').outcome).toBe('waiting');
  await clock.advance(1_000);
  expect(firstLookups.filter(({ outcome }) => outcome === 'waiting')).toEqual([]);
});

test('if a query fails, its lookups reject, and later lookups cause new queries', async () => {
  let isUnavailable = true;
  const { clock, queries, errors, startLookup } = createLookups(() =>
    isUnavailable ? Promise.reject(new Error('the store does not respond')) : Promise.resolve(NO_KEYS),
  );
  const failedLookups = Array.from({ length: 50 }, (_, index) => startLookup(`guess-${index}`, 'peer'));
  await clock.advance(10);
  expect(failedLookups.map(({ outcome }) => outcome)).toEqual(failedLookups.map(() => 'failed'));
  expect(errors).toHaveLength(50);
  expect(queries).toHaveLength(2);
  isUnavailable = false;
  await clock.advance(10);
  const lookup = startLookup('a', 'peer');
  await clock.advance(10);
  expect(lookup.outcome).toBe('looked up');
});
