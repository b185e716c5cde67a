import { createHash, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { newApiKey } from '../../../src/model/credentials.ts';

test('a key is pr_ and 43 base64url characters that hold exactly the 256 bits asked of the source', () => {
  const bits = randomBytes(32);
  const asked: number[] = [];
  const { key } = newApiKey((bytes) => {
    asked.push(bytes);
    return bits;
  });
  expect(asked).toEqual([32]);
  expect(key).toMatch(/^pr_[A-Za-z0-9_-]{43}$/);
  expect(Buffer.from(key.slice(3), 'base64url').equals(bits)).toBe(true);
});

test('what is stored is its SHA-256 and too little of it to guess the rest', () => {
  const { key, prefix, hash } = newApiKey(randomBytes);
  expect(hash).toBe(createHash('sha256').update(key).digest('hex'));
  expect(key.startsWith(prefix)).toBe(true);
  expect(prefix).toHaveLength(10);
});

test('no two are alike', () => {
  const made = Array.from({ length: 100 }, () => newApiKey(randomBytes));
  expect(new Set(made.map(({ key }) => key)).size).toBe(100);
  expect(new Set(made.map(({ hash }) => hash)).size).toBe(100);
});
