/**
 * Reads the certificate and its key from files, and reloads both when the files change.
 *
 * Guarantees: at the start, an invalid pair causes an Error whose message is one line. Later, each invalid pair
 * is reported once, and the previous pair remains in use. A change is loaded only after the next check has found no
 * further change, so that a partial renewal is never loaded.
 */
import { readFileSync } from 'node:fs';
import type { Clock } from '../clock.ts';
import { getTls } from '../node-http.ts';
import { watchFiles } from './watch-file.ts';

export interface CertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export interface CertificatePaths {
  readonly certPath: string;
  readonly keyPath: string;
}

/** Reads and checks the pair. Throws an Error whose one-line message names the setting, the file and the remedy. */
export function readCertificate(paths: CertificatePaths): CertificatePair {
  const certificatePair = {
    cert: readFile('POSTRIDER_TLS_CERT', paths.certPath),
    key: readFile('POSTRIDER_TLS_KEY', paths.keyPath),
  };
  const { createSecureContext } = getTls();
  try {
    createSecureContext({ cert: certificatePair.cert });
  } catch (error) {
    throw new Error(
      `POSTRIDER_TLS_CERT ${paths.certPath}: not a valid PEM certificate (${getErrorMessage(error)}); give the full certificate chain`,
    );
  }
  try {
    createSecureContext(certificatePair);
  } catch (error) {
    throw new Error(
      `POSTRIDER_TLS_KEY ${paths.keyPath}: not a valid PEM private key for ${paths.certPath} (${getErrorMessage(error)}); give the private key of this certificate`,
    );
  }
  return certificatePair;
}

/**
 * Checks the files every `intervalMs`. Calls `onPair` with each new valid pair, and `onFault` once for each invalid
 * pair. The returned function stops the checks.
 */
export function watchCertificate(
  paths: CertificatePaths,
  intervalMs: number,
  clock: Clock,
  onPair: (pair: CertificatePair) => void,
  onFault: (fault: string) => void,
): () => void {
  return watchFiles([paths.certPath, paths.keyPath], intervalMs, clock, () => {
    try {
      onPair(readCertificate(paths));
    } catch (error) {
      onFault(getErrorMessage(error));
    }
  });
}

function readFile(setting: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(
      `${setting}: cannot read ${path} (${getErrorMessage(error)}); give the path of a readable PEM file`,
    );
  }
}

function getErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
