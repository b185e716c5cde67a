import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it, test } from 'vitest';
import {
  formatPublicKey,
  parsePrivateKey,
  parseSelector,
  sealImportedKey,
  unsealKey,
} from '../../../src/domains/keys.ts';
import { deriveKey } from '../../../src/domains/secret.ts';

const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 });
const SHORT_RSA = generateKeyPairSync('rsa', { modulusLength: 1024 });
const ED25519 = generateKeyPairSync('ed25519');
const PKCS8 = RSA.privateKey.export({ format: 'pem', type: 'pkcs8' });
const PKCS1 = RSA.privateKey.export({ format: 'pem', type: 'pkcs1' });

describe('a private key is accepted', () => {
  it.each([
    ['RSA in PKCS#8', PKCS8, 'rsa', RSA],
    ['RSA in PKCS#1', PKCS1, 'rsa', RSA],
    [
      'RSA with CRLF line ends and text before the block',
      `Bag Attributes\r\n${String(PKCS1).replaceAll('\n', '\r\n')}`,
      'rsa',
      RSA,
    ],
    ['Ed25519 in PKCS#8', ED25519.privateKey.export({ format: 'pem', type: 'pkcs8' }), 'ed25519', ED25519],
  ] as const)('%s', (_name, pem, algorithm, { publicKey, privateKey }) => {
    expect(parsePrivateKey(String(pem))).toEqual({
      ok: true,
      keyPair: {
        algorithm,
        publicKey: formatPublicKey(publicKey),
        privateKey: privateKey.export({ format: 'der', type: 'pkcs8' }),
      },
      warning: null,
    });
  });
});

describe('a text that is not one supported private key is refused with a one-line error that contains no part of the text', () => {
  const encryptKey = (type: 'pkcs1' | 'pkcs8') =>
    String(SHORT_RSA.privateKey.export({ format: 'pem', type, cipher: 'aes-256-cbc', passphrase: 'secret' }));
  const formatBlock = (label: string) => `-----BEGIN ${label}-----\nAAAA\n-----END ${label}-----\n`;
  it.each([
    ['an encrypted key in PKCS#8', encryptKey('pkcs8'), /is encrypted/],
    ['an encrypted key in PKCS#1', encryptKey('pkcs1'), /is encrypted/],
    ['an OpenSSH key', formatBlock('OPENSSH PRIVATE KEY'), /has the format of OpenSSH/],
    ['a public key', String(RSA.publicKey.export({ format: 'pem', type: 'spki' })), /is a public key/],
    ['an RSA public key', String(RSA.publicKey.export({ format: 'pem', type: 'pkcs1' })), /is a public key/],
    ['a certificate', formatBlock('CERTIFICATE'), /is a certificate/],
    ['a DKIM record', `v=DKIM1; k=rsa; p=${formatPublicKey(RSA.publicKey)}`, /public record of a key/],
    ['two keys', `${PKCS8}${PKCS1}`, /there are 2 PEM blocks/],
    ['no PEM', 'nonsense', /there is no PEM block/],
    ['an empty text', '', /there is no PEM block/],
    ['a truncated key', String(PKCS8).slice(0, 400), /cannot be decoded/],
    [
      'a key of elliptic curves',
      exportPem(generateKeyPairSync('ec', { namedCurve: 'P-256' })),
      /neither RSA nor Ed25519/,
    ],
    ['RSA-PSS', exportPem(generateKeyPairSync('rsa-pss', { modulusLength: 1024 })), /neither RSA nor Ed25519/],
    ['RSA of 512 bits', exportPem(generateKeyPairSync('rsa', { modulusLength: 512 })), /has 512 bits/],
  ])('%s', (_name, text, fault) => {
    const parseResult = parsePrivateKey(text);
    expect(parseResult).toEqual({ ok: false, fault: expect.stringMatching(fault) });
    if (parseResult.ok) return;
    expect(parseResult.fault).not.toContain('\n');
    for (const line of text.split('\n').slice(1, -2))
      if (line.length > 20) expect(parseResult.fault).not.toContain(line);
  });
});

function exportPem({ privateKey }: { readonly privateKey: import('node:crypto').KeyObject }): string {
  return String(privateKey.export({ format: 'pem', type: 'pkcs8' }));
}

test.each([
  ['s1', 's1'],
  ['Mail.2024', 'mail.2024'],
  ['pm-1', 'pm-1'],
  ['-s1', null],
  ['s1-', null],
  ['s_1', null],
  ['s1.', null],
  ['s..1', null],
  ['', null],
  ['é', null],
  ['s1._domainkey', null],
  ['s1._domainkey.example.org', null],
  ['x'.repeat(64), null],
  [Array.from({ length: 12 }, () => 'x'.repeat(20)).join('.'), null],
])('the selector %s is %s', (text, selector) => {
  const parseResult = parseSelector(text, 'example.org');
  expect(parseResult.ok ? parseResult.selector : null).toBe(selector);
});

test('an imported key is sealed under its own name, and its unencrypted form is overwritten', () => {
  const parseResult = parsePrivateKey(String(PKCS1));
  if (!parseResult.ok) throw new Error(parseResult.fault);
  const sealingKey = deriveKey(Buffer.alloc(32, 7), 'dkim');
  const key = sealImportedKey(parseResult.keyPair, { domain: 'example.org', selector: 's1', sealingKey, now: 5 });
  expect(key).toMatchObject({ selector: 's1', algorithm: 'rsa', state: 'active', activatedAt: 5, retireAt: null });
  expect(parseResult.keyPair.privateKey.every((byte) => byte === 0)).toBe(true);
  const der = RSA.privateKey.export({ format: 'der', type: 'pkcs8' });
  expect(unsealKey(sealingKey, 'example.org', 's1', key.sealed)).toEqual(der);
  expect(() => unsealKey(sealingKey, 'example.org', 's2', key.sealed)).toThrow('s2');
});
