import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import {
  createSigningKey,
  createSigningSecret,
  isSigningSecret,
  signWebhook,
} from '../../../src/model/webhook-target.ts';
import { createSigningKeyCache, openSigningSecret, sealSigningSecret } from '../../../src/webhooks/sealing.ts';

const BODY = JSON.stringify({
  type: 'message.bounced',
  timestamp: '2026-01-01T00:00:00.000Z',
  data: { to: 'é@x.test' },
});

function signBody(secrets: readonly string[], body = BODY, at = Date.now()) {
  return { ...signWebhook('01890a5d-ac96-774b-bcce-b302099a8057', at, Buffer.from(body), secrets) };
}

describe('a signature', () => {
  it('is verified by standardwebhooks with the secret of the endpoint', () => {
    const secret = createSigningSecret(randomBytes);
    expect(new Webhook(secret).verify(BODY, signBody([secret]))).toEqual(JSON.parse(BODY));
  });

  it('is verified with the current and with the previous secret during a rotation', () => {
    const [current, previous] = [createSigningSecret(randomBytes), createSigningSecret(randomBytes)];
    const headers = signBody([current, previous]);
    expect(headers['webhook-signature'].split(' ')).toHaveLength(2);
    for (const secret of [current, previous]) expect(new Webhook(secret).verify(BODY, headers)).toBeTruthy();
  });

  it('made with the key of a secret equals that made with the secret', () => {
    const secret = createSigningSecret(randomBytes);
    const at = Date.now();
    const id = '01890a5d-ac96-774b-bcce-b302099a8057';
    expect(signWebhook(id, at, Buffer.from(BODY), [createSigningKey(secret)])).toEqual(signBody([secret], BODY, at));
    expect(() => createSigningKey('whsec_short')).toThrow();
  });

  it('is refused with another secret, another body, another id and another time', () => {
    const secret = createSigningSecret(randomBytes);
    const headers = signBody([secret]);
    expect(() => new Webhook(createSigningSecret(randomBytes)).verify(BODY, headers)).toThrow();
    expect(() => new Webhook(secret).verify(`${BODY} `, headers)).toThrow();
    expect(() => new Webhook(secret).verify(BODY, { ...headers, 'webhook-id': 'other' })).toThrow();
    const laterTimestamp = String(Number(headers['webhook-timestamp']) + 1);
    expect(() => new Webhook(secret).verify(BODY, { ...headers, 'webhook-timestamp': laterTimestamp })).toThrow();
    expect(() => new Webhook(secret).verify(BODY, signBody([secret], BODY, Date.now() - 3_600_000))).toThrow();
  });

  it('is not made without a secret, with an invalid secret, or for an id with a full stop', () => {
    const secret = createSigningSecret(randomBytes);
    expect(() => signBody([])).toThrow();
    expect(() => signBody(['whsec_short'])).toThrow();
    expect(() => signWebhook('a.b', 0, Buffer.from(BODY), [secret])).toThrow();
  });
});

describe('a signing secret', () => {
  it('is `whsec_`, followed by the base64 encoding of 32 bytes', () => {
    const secret = createSigningSecret((bytes) => Buffer.alloc(bytes, 7));
    expect(secret).toBe(`whsec_${Buffer.alloc(32, 7).toString('base64')}`);
    expect(isSigningSecret(secret)).toBe(true);
  });

  it('has 24 to 64 bytes in canonical base64', () => {
    const encode = (bytes: number) => `whsec_${Buffer.alloc(bytes, 1).toString('base64')}`;
    expect([23, 24, 64, 65].map((bytes) => isSigningSecret(encode(bytes)))).toEqual([false, true, true, false]);
    expect(isSigningSecret(encode(32).slice('whsec_'.length))).toBe(false);
    expect(isSigningSecret(`${encode(32)} `)).toBe(false);
  });
});

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
