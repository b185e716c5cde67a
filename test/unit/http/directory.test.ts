import { expect, test } from 'vitest';
import { KeyDirectory, type KeyDirectoryParts } from '../../../src/http/directory.ts';
import { account, apiKey } from './rig.ts';

const RAW = `pr_${'d'.repeat(43)}`;

function keyDirectory(publish: KeyDirectoryParts['publish'] = () => undefined): KeyDirectory {
  return new KeyDirectory({ clock: { now: () => 0 }, publish });
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
  expect(directory.works(RAW, 0)).toBe(false);
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
  expect(directory.takeUsed()).toEqual([{ id: 1, at: 1000 }]);
  directory.lookup(RAW, 60_999);
  expect(directory.takeUsed()).toEqual([]);
  directory.apply({ revision: 2, accounts: [], keys: [apiKey(RAW, { lastUsedAt: 1000 })] });
  directory.lookup(RAW, 61_000);
  expect(directory.takeUsed()).toEqual([{ id: 1, at: 61_000 }]);
  directory.apply({ revision: 3, accounts: [account({ locked: { reason: 'x', at: 1 } })], keys: [] });
  directory.lookup(RAW, 200_000);
  expect(directory.takeUsed()).toEqual([]);
});
