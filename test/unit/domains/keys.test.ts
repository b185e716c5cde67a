import { createPrivateKey, createPublicKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createKeys, formatPublicKey, unsealKey } from '../../../src/domains/keys.ts';
import { deriveKey } from '../../../src/domains/secret.ts';

const sealingKey = deriveKey(Buffer.alloc(32, 7), 'dkim');
const request = {
  domain: 'example.org',
  algorithms: ['rsa', 'ed25519'],
  state: 'active',
  usedSelectors: [],
  sealingKey,
  now: Date.UTC(2026, 10, 21, 23, 59),
  random: () => 0,
} as const;

describe('new keys', () => {
  it('are an RSA-2048 and an Ed25519 key pair, and a private key is unsealed only under its domain and selector', async () => {
    const keys = await createKeys(request);
    expect(keys.map(({ selector, algorithm, state }) => [selector, algorithm, state])).toEqual([
      ['pr20261121aaaaa', 'rsa', 'active'],
      ['pr20261121aaaae', 'ed25519', 'active'],
    ]);
    for (const { selector, algorithm, sealed, publicKey } of keys) {
      const der = unsealKey(sealingKey, 'example.org', selector, sealed);
      const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
      expect(key.asymmetricKeyType).toBe(algorithm);
      expect(formatPublicKey(key)).toBe(publicKey);
      expect(() => unsealKey(sealingKey, 'example.com', selector, sealed)).toThrow('dkim:example.com');
      expect(() => unsealKey(sealingKey, 'example.org', 'other', sealed)).toThrow('other');
    }
    const [rsa, ed25519] = keys.map((key) => Buffer.from(key.publicKey, 'base64'));
    expect(ed25519).toHaveLength(32);
    const spki = createPublicKey({ key: rsa ?? Buffer.alloc(0), format: 'der', type: 'spki' });
    expect(spki.asymmetricKeyDetails?.modulusLength).toBe(2048);
  });

  it('have selectors that the domain has never used and that consist of one label', async () => {
    const randomNumbers = [0, 0, 0, 0, 0.99, 0.99, 0.99, 0.99];
    const nextRequest = {
      ...request,
      algorithms: ['ed25519'],
      usedSelectors: ['pr20261121aaaaa'],
      state: 'staged',
    } as const;
    const [key] = await createKeys({ ...nextRequest, random: () => randomNumbers.shift() ?? 0 });
    expect(key).toMatchObject({ selector: 'pr202611219999e', state: 'staged', activatedAt: null });
    expect(key?.selector).toMatch(/^[a-z0-9]{1,63}$/);
    await expect(createKeys(nextRequest)).rejects.toThrow('No unused selector');
  });
});
