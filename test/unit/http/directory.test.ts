import { expect, test } from 'vitest';
import { KeyDirectory } from '../../../src/http/directory.ts';
import { account, apiKey } from './rig.ts';

const RAW = `pr_${'d'.repeat(43)}`;

test('knows a key by its raw value alone', () => {
  const directory = new KeyDirectory();
  expect(directory.lookup(RAW, 0)).toEqual({ kind: 'invalid' });
  directory.apply({ revision: 1, accounts: [account()], keys: [apiKey(RAW)] });
  expect(directory.lookup(RAW, 0)).toMatchObject({ kind: 'valid', key: { id: 1 }, account: { id: 1 } });
  for (const other of [undefined, '', ` ${RAW}`, `${RAW} `, RAW.toUpperCase(), apiKey(RAW).hash, `Bearer ${RAW}`]) {
    expect(directory.lookup(other, 0)).toEqual({ kind: 'invalid' });
  }
});

test('a key ends at the millisecond of its revocation or expiry', () => {
  const directory = new KeyDirectory();
  directory.apply({ revision: 1, accounts: [account()], keys: [apiKey(RAW, { expiresAt: 1000 })] });
  expect([999, 1000].map((now) => directory.lookup(RAW, now).kind)).toEqual(['valid', 'invalid']);
  directory.apply({ revision: 2, accounts: [], keys: [apiKey(RAW, { revokedAt: 500 })] });
  expect([499, 500].map((now) => directory.lookup(RAW, now).kind)).toEqual(['valid', 'invalid']);
});

test('an account that comes, changes or is locked later counts for its keys; a key without account is invalid', () => {
  const directory = new KeyDirectory();
  directory.apply({ revision: 1, accounts: [], keys: [apiKey(RAW)] });
  expect(directory.lookup(RAW, 0).kind).toBe('invalid');
  directory.apply({ revision: 2, accounts: [account({ name: 'late' })], keys: [] });
  expect(directory.lookup(RAW, 0)).toMatchObject({ kind: 'valid', account: { name: 'late' } });
  directory.apply({ revision: 3, accounts: [account({ locked: { reason: 'x', at: 1 } })], keys: [] });
  expect(directory.lookup(RAW, 0).kind).toBe('locked');
  directory.apply({ revision: 4, accounts: [], keys: [apiKey(RAW, { revokedAt: 0 })] });
  expect(directory.lookup(RAW, 1).kind).toBe('invalid');
});

test('a key whose hash was replaced no longer opens', () => {
  const directory = new KeyDirectory();
  directory.apply({ revision: 1, accounts: [account()], keys: [apiKey(RAW)] });
  directory.apply({ revision: 2, accounts: [], keys: [apiKey('other')] });
  expect(directory.lookup(RAW, 0).kind).toBe('invalid');
  expect(directory.lookup('other', 0).kind).toBe('valid');
});

test('the use of a key is reported once a minute, and only where it opened', () => {
  const directory = new KeyDirectory();
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
