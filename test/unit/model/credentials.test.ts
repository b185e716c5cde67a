import { createHash, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { generateApiKey } from '../../../src/model/credentials.ts';

test('a key consists of pr_ and 43 base64url characters that encode exactly 256 bits of the random source', () => {
  const secretBytes = randomBytes(32);
  const requestedBytes: number[] = [];
  const { key } = generateApiKey((bytes) => {
    requestedBytes.push(bytes);
    return secretBytes;
  });
  expect(requestedBytes).toEqual([32]);
  expect(key).toMatch(/^pr_[A-Za-z0-9_-]{43}$/);
  expect(Buffer.from(key.slice(3), 'base64url').equals(secretBytes)).toBe(true);
});

test('the stored hash is the SHA-256 of the key, and the stored prefix has ten characters', () => {
  const { key, prefix, hash } = generateApiKey(randomBytes);
  expect(hash).toBe(createHash('sha256').update(key).digest('hex'));
  expect(key.startsWith(prefix)).toBe(true);
  expect(prefix).toHaveLength(10);
});
