/**
 * Certificate and key from files, and their reload when the files change.
 *
 * Guarantees: at start, an unusable pair is an error of one line. Later, it is reported once and the old pair stays in use. A change is
 * loaded only if the files did not change between two checks, so a partial renewal is never loaded.
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

/** Reads and checks the pair. Throws an Error of one line that names setting, file and remedy. */
export function readCertificate(paths: CertificatePaths): CertificatePair {
  const pair = {
    cert: readFile('POSTRIDER_TLS_CERT', paths.certPath),
    key: readFile('POSTRIDER_TLS_KEY', paths.keyPath),
  };
  try {
    createSecureContext({ cert: pair.cert });
  } catch (error) {
    throw new Error(
      `POSTRIDER_TLS_CERT ${paths.certPath}: no usable PEM certificate (${messageOf(error)}); give the full chain`,
    );
  }
  try {
    createSecureContext(pair);
  } catch (error) {
    throw new Error(
      `POSTRIDER_TLS_KEY ${paths.keyPath}: no usable PEM private key for ${paths.certPath} (${messageOf(error)}); give the key the certificate was made with`,
    );
  }
  return pair;
}

/**
 * Checks the files every `everyMs`. Calls `onPair` with each new usable pair and `onFault` once for an unusable one. The returned function
 * stops it.
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

/** A text that changes with either file. Symbolic links are followed, because renewals replace them. */
function fileVersions({ certPath, keyPath }: CertificatePaths): string {
  return `${fileVersion(certPath)} ${fileVersion(keyPath)}`;
}

function fileVersion(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    return `${stat.ino}:${stat.size}:${stat.mtimeNs}`;
  } catch (error) {
    // A missing file, a loop of links or a missing permission counts as a change; the read then reports the error.
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
