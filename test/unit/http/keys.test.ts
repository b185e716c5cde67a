import { expect, test } from 'vitest';
import {
  ApiKeyCache,
  type ApiKeyCacheParts,
  BatchedLookups,
  MAX_DIGESTS_PER_QUERY,
  MAX_WAITING_LOOKUPS,
} from '../../../src/http/keys.ts';
import type { FoundKeys } from '../../../src/model/account.ts';
import { virtualClock } from '../../rig/clock.ts';
import { account, apiKey } from './rig.ts';

const RAW = `pr_${'d'.repeat(43)}`;

function keyDirectory(publish: ApiKeyCacheParts['publish'] = () => undefined): ApiKeyCache {
  return new ApiKeyCache({ clock: { now: () => 0 }, publish });
}

test('knows a key by its raw value alone', () => {
  const directory = keyDirectory();
  expect(directory.lookup(RAW, 0)).toEqual({ kind: 'missing', hash: apiKey(RAW).hash });
  directory.apply({ revision: 1, accounts: [account()], keys: [apiKey(RAW)] });
  expect(directory.lookup(RAW, 0)).toMatchObject({ kind: 'valid', key: { id: 1 }, account: { id: 1 } });
  for (const other of [` ${RAW}`, `${RAW} `, RAW.toUpperCase(), apiKey(RAW).hash, `Bearer ${RAW}`]) {
    expect(directory.lookup(other, 0)).toEqual({ kind: 'missing', hash: apiKey(other).hash });
  }
  for (const none of [undefined, '', 'k'.repeat(513)]) expect(directory.lookup(none, 0)).toEqual({ kind: 'invalid' });
});

test('a key ends at the millisecond of its revocation or expiry', () => {
  const directory = keyDirectory();
  directory.apply({ revision: 1, accounts: [account()], keys: [apiKey(RAW, { expiresAt: 1000 })] });
  expect([999, 1000].map((now) => directory.lookup(RAW, now).kind)).toEqual(['valid', 'invalid']);
  directory.apply({ revision: 2, accounts: [], keys: [apiKey(RAW, { revokedAt: 500 })] });
  expect([499, 500].map((now) => directory.lookup(RAW, now).kind)).toEqual(['valid', 'invalid']);
});

test('an account that comes, changes or is locked later counts for its keys; a key without account is missing', () => {
  const directory = keyDirectory();
  directory.apply({ revision: 1, accounts: [], keys: [apiKey(RAW)] });
  expect(directory.lookup(RAW, 0)).toEqual({ kind: 'missing', hash: apiKey(RAW).hash });
  expect(directory.isValid(RAW, 0)).toBe(false);
  directory.apply({ revision: 2, accounts: [account({ name: 'late' })], keys: [] });
  expect(directory.lookup(RAW, 0)).toMatchObject({ kind: 'valid', account: { name: 'late' } });
  directory.apply({ revision: 3, accounts: [account({ locked: { reason: 'x', at: 1 } })], keys: [] });
  expect(directory.lookup(RAW, 0).kind).toBe('locked');
  directory.apply({ revision: 4, accounts: [], keys: [apiKey(RAW, { revokedAt: 0 })] });
  expect(directory.lookup(RAW, 1).kind).toBe('invalid');
});

test('a key whose hash was replaced no longer opens', () => {
  const directory = keyDirectory();
  directory.apply({ revision: 1, accounts: [account()], keys: [apiKey(RAW)] });
  directory.apply({ revision: 2, accounts: [], keys: [apiKey('other')] });
  expect(directory.lookup(RAW, 0).kind).toBe('missing');
  expect(directory.lookup('other', 0).kind).toBe('valid');
});

test('an answer of the store that arrives late undoes nothing that is newer', () => {
  const directory = keyDirectory();
  const locked = account({ locked: { reason: 'abuse', at: 1 } });
  directory.apply({ revision: 5, accounts: [locked], keys: [apiKey(RAW, { revokedAt: 3 })] });
  directory.apply({ revision: 4, accounts: [account()], keys: [apiKey(RAW)] });
  expect(directory.lookup(RAW, 9).kind).toBe('invalid');
  expect(directory.isLocked(1)).toBe(true);
  // What is as new, or was not known, counts.
  directory.apply({ revision: 5, accounts: [account({ locked: { reason: 'again', at: 2 } })], keys: [] });
  directory.apply({ revision: 4, accounts: [], keys: [apiKey('other', { id: 2 })] });
  expect(directory.lookup('other', 9).kind).toBe('locked');
  expect(directory.account(1)?.locked?.reason).toBe('again');
});

test('a known account that is warned or locked is published once, and so is every change', () => {
  const heard: string[] = [];
  const directory = keyDirectory((event) =>
    heard.push('reason' in event ? `${event.type} ${event.reason}` : event.type),
  );
  const locked = account({ locked: { reason: 'abuse', at: 1 } });
  directory.apply({ revision: 1, accounts: [], keys: [] });
  expect(heard).toEqual([]);
  // What is known from the start was published when it happened.
  directory.apply({ revision: 2, accounts: [locked, account({ id: 2 })], keys: [] });
  expect(heard.splice(0)).toEqual(['account.changed']);
  directory.apply({ revision: 3, accounts: [locked, account({ id: 2, warning: 'bounces' })], keys: [] });
  expect(heard.splice(0)).toEqual(['account.warned bounces', 'account.changed']);
  directory.apply({ revision: 4, accounts: [account({ id: 2, warning: 'bounces', locked: locked.locked })], keys: [] });
  expect(heard.splice(0)).toEqual(['account.locked abuse', 'account.changed']);
});

test('the use of a key is reported once a minute, and only where it opened', () => {
  const directory = keyDirectory();
  directory.apply({ revision: 1, accounts: [account()], keys: [apiKey(RAW)] });
  directory.lookup(RAW, 1000);
  directory.lookup(RAW, 2000);
  expect(directory.drainUsedKeys()).toEqual([{ id: 1, at: 1000 }]);
  directory.lookup(RAW, 60_999);
  expect(directory.drainUsedKeys()).toEqual([]);
  directory.apply({ revision: 2, accounts: [], keys: [apiKey(RAW, { lastUsedAt: 1000 })] });
  directory.lookup(RAW, 61_000);
  expect(directory.drainUsedKeys()).toEqual([{ id: 1, at: 61_000 }]);
  directory.apply({ revision: 3, accounts: [account({ locked: { reason: 'x', at: 1 } })], keys: [] });
  directory.lookup(RAW, 200_000);
  expect(directory.drainUsedKeys()).toEqual([]);
});

// Credentials that are not known here: asked of the store in few queries, in turn by peer, and never refused for being many.

const NONE: FoundKeys = { revision: 0, accounts: [], keys: [] };

function rigged(find: (hashes: readonly string[]) => Promise<FoundKeys> = () => Promise.resolve(NONE)) {
  const clock = virtualClock(1_000);
  const queries: { readonly at: number; readonly hashes: readonly string[] }[] = [];
  const answers: FoundKeys[] = [];
  const faults: unknown[] = [];
  const lookups = new BatchedLookups({
    find: (hashes) => {
      queries.push({ at: clock.now(), hashes });
      return find(hashes);
    },
    clock,
  });
  /** Asks, and keeps what it came to. */
  const ask = (hash: string, peer: string) => {
    const one = { outcome: 'waiting' };
    const asked = lookups.find(hash, peer);
    if (asked === null) one.outcome = 'full';
    asked?.then(
      (found) => {
        answers.push(found);
        one.outcome = 'looked up';
      },
      (error: unknown) => {
        faults.push(error);
        one.outcome = 'failed';
      },
    );
    return one;
  };
  return { clock, queries, answers, faults, ask };
}

test('a lone lookup is asked at once, and is given what was found', async () => {
  const found: FoundKeys = { ...NONE, revision: 7 };
  const { clock, queries, answers, ask } = rigged(() => Promise.resolve(found));
  const one = ask('a', 'p');
  expect(queries).toEqual([{ at: 1_000, hashes: ['a'] }]);
  await clock.advance(0);
  expect(one.outcome).toBe('looked up');
  expect(answers).toEqual([found]);
});

test('a flood of guesses costs one query in 10 ms, of at most 1,000 digests, and every guess is answered', async () => {
  const { clock, queries, ask } = rigged();
  const asked = Array.from({ length: 9_500 }, (_, n) => ask(`guess-${n}`, `peer-${n % 3}`));
  await clock.advance(200);
  expect(asked.filter(({ outcome }) => outcome !== 'looked up')).toEqual([]);
  expect(queries).toHaveLength(11);
  expect(Math.max(...queries.map(({ hashes }) => hashes.length))).toBe(MAX_DIGESTS_PER_QUERY);
  for (const [n, { at }] of queries.entries()) expect(at).toBe(1_000 + 10 * n);
});

test('one query at a time: a slow store is asked no faster than it answers', async () => {
  let running = 0;
  let most = 0;
  const { clock, queries, ask } = rigged(async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise<void>((resolve) => clock.after(100, resolve));
    running -= 1;
    return NONE;
  });
  const asked = Array.from({ length: 2_500 }, (_, n) => ask(`guess-${n}`, 'peer'));
  await clock.advance(1_000);
  expect(asked.every(({ outcome }) => outcome === 'looked up')).toBe(true);
  expect([most, queries.length]).toEqual([1, 4]);
});

test('a lookup is answered by a query that began after it', async () => {
  const replies: (() => void)[] = [];
  const { clock, queries, ask } = rigged(() => new Promise((resolve) => replies.push(() => resolve(NONE))));
  ask('same', 'p');
  const later = ask('same', 'q');
  replies[0]?.();
  await clock.advance(0);
  expect(later.outcome).toBe('waiting');
  await clock.advance(10);
  expect(queries).toHaveLength(2);
  replies[1]?.();
  await clock.advance(0);
  expect(later.outcome).toBe('looked up');
});

test('a guesser delays himself: a new key from elsewhere is in the next query, before thousands of guesses', async () => {
  const { clock, queries, ask } = rigged();
  const guesses = Array.from({ length: 8_000 }, (_, n) => ask(`guess-${n}`, 'guesser'));
  const fresh = ask('new-key', 'client');
  await clock.advance(10);
  expect(queries[1]?.hashes).toContain('new-key');
  expect(fresh.outcome).toBe('looked up');
  expect(guesses.filter(({ outcome }) => outcome === 'waiting').length).toBeGreaterThan(5_000);
});

test('with more peers than a query has room for, each has its turn', async () => {
  const { clock, queries, ask } = rigged();
  ask('first', 'first');
  const peers = 2 * MAX_DIGESTS_PER_QUERY + 1;
  for (let n = 0; n < peers; n += 1) {
    ask(`${n}-a`, `peer-${n}`);
    ask(`${n}-b`, `peer-${n}`);
  }
  await clock.advance(30);
  const hashes = queries.slice(1).flatMap((query) => query.hashes);
  expect(hashes).toHaveLength(3 * MAX_DIGESTS_PER_QUERY);
  expect(hashes.slice(0, peers)).toEqual(Array.from({ length: peers }, (_, n) => `${n}-a`));
});

test('what waits is bounded, and one peer never takes all of the room', async () => {
  const { clock, ask } = rigged();
  const first = Array.from({ length: MAX_WAITING_LOOKUPS }, (_, n) => ask(`guess-${n}`, 'guesser'));
  const shed = first.filter(({ outcome }) => outcome === 'full').length;
  // The first of them is under way at once and waits no more.
  expect(MAX_WAITING_LOOKUPS - shed).toBe(MAX_WAITING_LOOKUPS / 2 + 1);
  const fresh = ask('new-key', 'client');
  expect(fresh.outcome).toBe('waiting');
  await clock.advance(10);
  expect(fresh.outcome).toBe('looked up');
  // There is room again as soon as some are answered.
  expect(ask('guess', 'guesser').outcome).toBe('waiting');
  await clock.advance(1_000);
  expect(first.filter(({ outcome }) => outcome === 'waiting')).toEqual([]);
});

test('a store that is away fails those who wait, once a query, and is asked again', async () => {
  let away = true;
  const { clock, queries, faults, ask } = rigged(() =>
    away ? Promise.reject(new Error('the store is away')) : Promise.resolve(NONE),
  );
  const lost = Array.from({ length: 50 }, (_, n) => ask(`guess-${n}`, 'peer'));
  await clock.advance(10);
  expect(lost.map(({ outcome }) => outcome)).toEqual(lost.map(() => 'failed'));
  expect(faults).toHaveLength(50);
  expect(queries).toHaveLength(2);
  away = false;
  await clock.advance(10);
  const one = ask('a', 'peer');
  await clock.advance(10);
  expect(one.outcome).toBe('looked up');
});
