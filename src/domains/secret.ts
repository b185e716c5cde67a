/**
 * The secret of the installation (POSTRIDER_SECRET): 256 bits, from the environment or from a file beside the database,
 * and the keys derived from it. Each use has its own key, which reveals nothing about the others.
 *
 * Guarantees: the file is readable only by its owner, completely on disk before it is used, and never replaced: data sealed with a lost
 * secret is lost. Sealed data can neither be read nor moved to another name without the secret. Errors are SecretErrors of one line that
 * never contain a secret.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, linkSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** An error that an operator must correct. */
export class SecretError extends Error {
  override readonly name = 'SecretError';
}

const SECRET_DIGITS = 64;
const NONCE_OCTETS = 12;
const TAG_OCTETS = 16;
/** The first byte of what is sealed: AES-256-GCM with a 96-bit nonce. */
const SEAL_VERSION = 1;
const SECRET_FORMAT = `${SECRET_DIGITS} hexadecimal digits, such as openssl rand -hex 32 prints`;

/** The secret in `text`, or null where it is not 64 hexadecimal digits. */
export function parseSecret(text: string): Buffer | null {
  if (text.length !== SECRET_DIGITS) return null;
  const secret = Buffer.from(text, 'hex');
  return secret.length === SECRET_DIGITS / 2 ? secret : null;
}

/** POSTRIDER_SECRET as a setting; throws a SecretError that does not repeat it. */
export function parseSecretSetting(text: string): Buffer {
  const secret = parseSecret(text);
  if (secret === null)
    throw new SecretError(`POSTRIDER_SECRET has ${text.length} characters; it must be ${SECRET_FORMAT}`);
  return secret;
}

/**
 * Reads the secret in the file at `path`; creates it at the first start. If several processes start at once, one creates it and all read
 * the same secret. Throws a SecretError if others can read the file, it has other content, or it cannot be created.
 */
export function loadOrCreateSecret(path: string): Buffer {
  try {
    return readSecretFile(path) ?? createSecretFile(path);
  } catch (error) {
    if (error instanceof SecretError) throw error;
    throw new SecretError(`the secret file ${path} cannot be used (${errorCode(error)}); set POSTRIDER_SECRET instead`);
  }
}

function readSecretFile(path: string): Buffer | null {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
  try {
    const { mode } = fstatSync(file);
    if ((mode & 0o077) !== 0) {
      const shown = (mode & 0o777).toString(8).padStart(4, '0');
      throw new SecretError(`the secret file ${path} is open to other users (mode ${shown}); run: chmod 600 ${path}`);
    }
    const content = Buffer.alloc(4 * SECRET_DIGITS);
    const text = content.toString('latin1', 0, readSync(file, content));
    const secret = parseSecret(text.trimEnd());
    if (secret === null) {
      throw new SecretError(`the secret file ${path} does not hold ${SECRET_FORMAT}; restore it from a backup`);
    }
    return secret;
  } finally {
    closeSync(file);
  }
}

/** Writes a temporary file and links it to `path`, which fails if another process was first. */
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
    if (errorCode(error) !== 'EEXIST') throw error;
    const existing = readSecretFile(path);
    if (existing === null) throw error;
    return existing;
  } finally {
    unlinkSync(temporaryPath);
  }
  const folder = openSync(dirname(path), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
  return secret;
}

function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : String(error);
}

/** A 256-bit key for one use, such as `dkim` (HKDF, RFC 5869). */
export function deriveKey(secret: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `postrider ${purpose}`, 32));
}

/**
 * Encrypts with AES-256-GCM and a new random nonce; base64url. `associated` identifies the data and must be the same to unseal it. The
 * nonce is not a parameter, because a repeated nonce would reveal the key.
 */
export function seal(key: Buffer, plaintext: Buffer, associatedData: string): string {
  const nonce = randomBytes(NONCE_OCTETS);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_OCTETS });
  cipher.setAAD(Buffer.from(associatedData, 'utf8'));
  const sealed = [Buffer.of(SEAL_VERSION), nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(sealed).toString('base64url');
}

/** Decrypts sealed data. Throws a SecretError that names `associated` if the secret is another one or the data was changed. */
export function unseal(key: Buffer, sealed: string, associatedData: string): Buffer {
  const bytes = Buffer.from(sealed, 'base64url');
  if (bytes.length < 1 + NONCE_OCTETS + TAG_OCTETS || bytes[0] !== SEAL_VERSION) {
    throw new SecretError(`${associatedData} is not stored in a form that this version can open`);
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
      `${associatedData} cannot be opened: POSTRIDER_SECRET (or the file secret beside the database) is not the one it was sealed with, or the stored text was changed`,
    );
  }
}
