import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  deriveKey,
  loadOrCreateSecret,
  parseSecret,
  parseSecretSetting,
  SecretError,
  seal,
  unseal,
} from '../../../src/domains/secret.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';

const HEX = '0123456789abcdef'.repeat(4);

describe('the secret file', () => {
  it('is created by the first call, readable only by its owner, and read by later calls', () => {
    const folder = createTemporaryFolder();
    const path = join(folder, 'secret');
    const secret = loadOrCreateSecret(path);
    expect(secret).toHaveLength(32);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, 'utf8')).toBe(`${secret.toString('hex')}\n`);
    expect(loadOrCreateSecret(path)).toEqual(secret);
    expect(readdirSync(folder)).toEqual(['secret']);
    expect(loadOrCreateSecret(join(createTemporaryFolder(), 'secret'))).not.toEqual(secret);
  });

  it.each(['0644', '0640', '0604', '0660'])(
    'is refused if its mode is %s, and the error contains the remedy',
    (mode) => {
      const path = join(createTemporaryFolder(), 'secret');
      writeFileSync(path, HEX);
      chmodSync(path, Number.parseInt(mode, 8));
      expect(() => loadOrCreateSecret(path)).toThrow(`(mode ${mode}); run: chmod 600 ${path}`);
    },
  );

  it.each(['', 'x', HEX.slice(1), `${HEX}0`, `${HEX}\n${HEX}`, HEX.replace('0', 'g'), '\0'.repeat(64)])(
    'is refused if its content is invalid (%j), is not changed, and its content is not in the error',
    (content) => {
      const path = join(createTemporaryFolder(), 'secret');
      writeFileSync(path, content, { mode: 0o600 });
      expect(() => loadOrCreateSecret(path)).toThrow(SecretError);
      expect(() => loadOrCreateSecret(path)).toThrow('does not contain 64 hexadecimal digits');
      if (content !== '' && content !== 'x')
        expect(getErrorMessage(() => loadOrCreateSecret(path))).not.toContain(content.trim());
      expect(readFileSync(path, 'utf8')).toBe(content);
    },
  );
});

function getErrorMessage(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return String(error);
  }
  return '';
}

describe('POSTRIDER_SECRET', () => {
  it('must be 64 hexadecimal digits, and the error for another value does not contain the value', () => {
    expect(parseSecretSetting(HEX)).toEqual(parseSecret(HEX));
    const invalidSecret = `${HEX}77`;
    expect(() => parseSecretSetting(invalidSecret)).toThrow('POSTRIDER_SECRET has 66 characters');
    expect(getErrorMessage(() => parseSecretSetting(invalidSecret))).not.toContain(invalidSecret);
  });

  it('results in a different derived key for each purpose, and always in the same key for the same purpose', () => {
    const secret = Buffer.from(HEX, 'hex');
    expect(deriveKey(secret, 'dkim')).toHaveLength(32);
    expect(deriveKey(secret, 'dkim')).toEqual(deriveKey(secret, 'dkim'));
    expect(deriveKey(secret, 'dkim')).not.toEqual(deriveKey(secret, 'return-path'));
    expect(deriveKey(Buffer.alloc(32), 'dkim')).not.toEqual(deriveKey(secret, 'dkim'));
  });
});

describe('sealed data', () => {
  const key = deriveKey(Buffer.from(HEX, 'hex'), 'dkim');
  const name = 'dkim:example.org:pr20261121a';

  it('is unsealed to the same bytes, and is different each time it is sealed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000 }), (bytes) => {
        const plaintext = Buffer.from(bytes);
        const sealedText = seal(key, plaintext, name);
        expect(sealedText).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(unseal(key, sealedText, name).equals(plaintext)).toBe(true);
        expect(seal(key, plaintext, name)).not.toBe(sealedText);
      }),
    );
  });

  it('is not unsealed with another secret, under another name, or with any bit changed; the error names POSTRIDER_SECRET', () => {
    const sealedText = seal(key, Buffer.from('the private key'), name);
    const expectedError = /^dkim:.* POSTRIDER_SECRET/;
    expect(() => unseal(deriveKey(Buffer.alloc(32), 'dkim'), sealedText, name)).toThrow(expectedError);
    expect(() => unseal(key, sealedText, 'dkim:example.org:pr20261121e')).toThrow(expectedError);
    const bytes = Buffer.from(sealedText, 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const tamperedBytes = Buffer.from(bytes);
      tamperedBytes[bit >> 3] = (tamperedBytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(() => unseal(key, tamperedBytes.toString('base64url'), name)).toThrow(SecretError);
    }
    for (let length = 0; length < bytes.length; length++) {
      expect(() => unseal(key, bytes.toString('base64url', 0, length), name)).toThrow(SecretError);
    }
  });
});
