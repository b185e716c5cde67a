/**
 * Reads the certificate and its key from files, and reloads them when the files change.
 *
 * Guarantees: at start, an invalid pair causes a one-line error. Later, an invalid pair is reported once, and the previous pair
 * remains in use. A change is loaded only if the files did not change between two checks, so a partial renewal is never loaded.
 */
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../clock.ts';

export interface CertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export interface CertificatePaths {
  readonly certPath: string;
  readonly keyPath: string;
}

/** Reads and checks the pair. Throws an Error with one line that names the setting, the file and the remedy. */
export function readCertificate(paths: CertificatePaths): CertificatePair {
  const pair = {
    cert: readFile('POSTRIDER_TLS_CERT', paths.certPath),
    key: readFile('POSTRIDER_TLS_KEY', paths.keyPath),
  };
  try {
    createSecureContext({ cert: pair.cert });
  } catch (error) {
    throw new Error(
      `POSTRIDER_TLS_CERT ${paths.certPath}: not a valid PEM certificate (${messageOf(error)}); give the full certificate chain`,
    );
  }
  try {
    createSecureContext(pair);
  } catch (error) {
    throw new Error(
      `POSTRIDER_TLS_KEY ${paths.keyPath}: not a valid PEM private key for ${paths.certPath} (${messageOf(error)}); give the private key of this certificate`,
    );
  }
  return pair;
}

/**
 * Checks the files every `intervalMs`. Calls `onPair` with each new valid pair, and `onFault` once for an invalid pair. The
 * returned function stops the checks.
 */
export function watchCertificate(
  paths: CertificatePaths,
  intervalMs: number,
  clock: Clock,
  onPair: (pair: CertificatePair) => void,
  onFault: (fault: string) => void,
): () => void {
  let loaded = fileVersions(paths);
  let previous = loaded;
  let cancel = clock.after(intervalMs, check);
  function check(): void {
    cancel = clock.after(intervalMs, check);
    const current = fileVersions(paths);
    const isUnchanged = current === previous;
    previous = current;
    if (current === loaded || !isUnchanged) return;
    loaded = current;
    try {
      onPair(readCertificate(paths));
    } catch (error) {
      onFault(messageOf(error));
    }
  }
  return () => cancel();
}

/** Returns a text that changes when either file changes. Symbolic links are followed, because a renewal may replace the link. */
function fileVersions({ certPath, keyPath }: CertificatePaths): string {
  return `${fileVersion(certPath)} ${fileVersion(keyPath)}`;
}

function fileVersion(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    return `${stat.ino}:${stat.size}:${stat.mtimeNs}`;
  } catch (error) {
    // A missing file, a loop of links or a missing permission is a change. Reading the file then reports the error.
    return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
  }
}

function readFile(setting: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`${setting}: cannot read ${path} (${messageOf(error)})`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
