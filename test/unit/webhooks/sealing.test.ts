import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { createSigningKey, createSigningSecret } from '../../../src/model/webhook-target.ts';
import { createSigningKeyCache, openSigningSecret, sealSigningSecret } from '../../../src/webhooks/sealing.ts';

it('a sealed signing secret is decrypted, and another key cannot decrypt it', () => {
  const key = randomBytes(32);
  const secret = createSigningSecret(randomBytes);
  expect(openSigningSecret(key, sealSigningSecret(key, secret))).toBe(secret);
  expect(() => openSigningSecret(randomBytes(32), sealSigningSecret(key, secret))).toThrow();
});

it('the cache returns the correct key of each secret, even for more secrets than the cache can store', () => {
  const key = randomBytes(32);
  let loadCount = 0;
  const openKey = createSigningKeyCache(() => {
    loadCount += 1;
    return key;
  });
  const secrets = Array.from({ length: 1_030 }, () => createSigningSecret(randomBytes));
  const sealedSecrets = secrets.map((secret) => sealSigningSecret(key, secret));
  for (const round of [0, 1])
    for (const [index, secret] of secrets.entries())
      expect(openKey(sealedSecrets[index] ?? '').equals(createSigningKey(secret)), `${round} ${index}`).toBe(true);
  expect(openKey(sealedSecrets[0] ?? '')).toBe(openKey(sealedSecrets[0] ?? ''));
  expect(loadCount).toBe(1);
});

it('the cache stores no failure: a signing secret is decrypted after the secret of the installation has been restored', () => {
  const key = randomBytes(32);
  const sealedSecret = sealSigningSecret(key, createSigningSecret(randomBytes));
  let isLost = true;
  const openKey = createSigningKeyCache(() => {
    if (isLost) throw new Error('the file of the secret does not exist');
    return key;
  });
  expect(() => openKey(sealedSecret)).toThrow();
  isLost = false;
  expect(openKey(sealedSecret).type).toBe('secret');
});
