/**
 * The secret of the installation (256 bits) and the keys that are derived from it. Only the owner can read its file,
 * which is synced before its use and never replaced, because data that was sealed with a lost secret cannot be
 * recovered. Errors contain no secret.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, linkSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncPath } from '../folder.ts';
import { getErrorCode } from '../printing/text.ts';

/** An error that an operator must correct. */
export class SecretError extends Error {
  override readonly name = 'SecretError';
}

const SECRET_DIGITS = 64;
const NONCE_OCTETS = 12;
const TAG_OCTETS = 16;
/** Version 1: AES-256-GCM with a 96-bit nonce. */
const SEAL_VERSION = 1;
const SECRET_FORMAT = `${SECRET_DIGITS} hexadecimal digits, such as the output of openssl rand -hex 32`;

export function parseSecret(text: string): Buffer | null {
  if (text.length !== SECRET_DIGITS) return null;
  const secret = Buffer.from(text, 'hex');
  return secret.length === SECRET_DIGITS / 2 ? secret : null;
}

/** The error does not contain the value. */
export function parseSecretSetting(text: string): Buffer {
  const secret = parseSecret(text);
  if (secret === null)
    throw new SecretError(`POSTRIDER_SECRET has ${text.length} characters; it must be ${SECRET_FORMAT}`);
  return secret;
}

/**
 * Of several processes that start at once, one creates the file, and all read the same secret. Throws a SecretError,
 * also if other users can read the file.
 */
export function loadOrCreateSecret(path: string): Buffer {
  try {
    return readSecretFile(path) ?? createSecretFile(path);
  } catch (error) {
    if (error instanceof SecretError) throw error;
    throw new SecretError(
      `the secret file ${path} cannot be used (${getErrorCode(error) ?? String(error)}); make it accessible, or set POSTRIDER_SECRET`,
    );
  }
}

function readSecretFile(path: string): Buffer | null {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT') return null;
    throw error;
  }
  try {
    const { mode } = fstatSync(file);
    if ((mode & 0o077) !== 0) {
      const modeText = (mode & 0o777).toString(8).padStart(4, '0');
      throw new SecretError(
        `the secret file ${path} is accessible to other users (mode ${modeText}); run: chmod 600 ${path}`,
      );
    }
    const content = Buffer.alloc(4 * SECRET_DIGITS);
    const text = content.toString('latin1', 0, readSync(file, content));
    const secret = parseSecret(text.trimEnd());
    if (secret === null) {
      throw new SecretError(`the secret file ${path} does not contain ${SECRET_FORMAT}; restore it from a backup`);
    }
    return secret;
  } finally {
    closeSync(file);
  }
}

/** Links a temporary file to `path`, or reads what another process has created in the meantime. */
function createSecretFile(path: string): Buffer {
  const secret = randomBytes(SECRET_DIGITS / 2);
  const temporaryPath = `${path}.${randomBytes(6).toString('hex')}`;
  const file = openSync(temporaryPath, 'wx', 0o600);
  try {
    try {
      writeSync(file, `${secret.toString('hex')}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    linkSync(temporaryPath, path);
  } catch (error) {
    if (getErrorCode(error) !== 'EEXIST') throw error;
    const existingSecret = readSecretFile(path);
    if (existingSecret === null) throw error;
    return existingSecret;
  } finally {
    unlinkSync(temporaryPath);
  }
  syncPath(dirname(path));
  return secret;
}

/** HKDF (RFC 5869). */
export function deriveKey(secret: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `postrider ${purpose}`, 32));
}

/**
 * AES-256-GCM, in base64url. `unseal` requires the same `associatedData`. The nonce is generated here, because a
 * repeated nonce would break the encryption.
 */
export function seal(key: Buffer, plaintext: Buffer, associatedData: string): string {
  const nonce = randomBytes(NONCE_OCTETS);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_OCTETS });
  cipher.setAAD(Buffer.from(associatedData, 'utf8'));
  const sealedParts = [Buffer.of(SEAL_VERSION), nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(sealedParts).toString('base64url');
}

/** Throws a SecretError that contains `associatedData`. */
export function unseal(key: Buffer, sealed: string, associatedData: string): Buffer {
  const bytes = Buffer.from(sealed, 'base64url');
  if (bytes.length < 1 + NONCE_OCTETS + TAG_OCTETS || bytes[0] !== SEAL_VERSION) {
    throw new SecretError(
      `${associatedData} has a storage format that this version does not support; upgrade this node, or restore the data from a backup`,
    );
  }
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(1, 1 + NONCE_OCTETS), {
    authTagLength: TAG_OCTETS,
  });
  decipher.setAAD(Buffer.from(associatedData, 'utf8'));
  decipher.setAuthTag(bytes.subarray(bytes.length - TAG_OCTETS));
  try {
    return Buffer.concat([
      decipher.update(bytes.subarray(1 + NONCE_OCTETS, bytes.length - TAG_OCTETS)),
      decipher.final(),
    ]);
  } catch {
    throw new SecretError(
      `${associatedData} cannot be decrypted: POSTRIDER_SECRET (or the secret file beside the database) is not the secret that this data was encrypted with, or the stored data was changed; restore the correct secret`,
    );
  }
}
