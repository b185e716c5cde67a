/** Reloads the certificate and its key when the files change. An invalid pair is reported once, and not used. */
import { readFileSync, statSync } from 'node:fs';
import type { Clock } from '../clock.ts';
import { getTls } from '../node-http.ts';
import { getErrorText } from '../printing/text.ts';

export interface CertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export interface CertificatePaths {
  readonly certPath: string;
  readonly keyPath: string;
}

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
      `POSTRIDER_TLS_CERT ${paths.certPath}: not a valid PEM certificate (${getErrorText(error)}); give the full certificate chain`,
    );
  }
  try {
    createSecureContext(certificatePair);
  } catch (error) {
    throw new Error(
      `POSTRIDER_TLS_KEY ${paths.keyPath}: not a valid PEM private key for ${paths.certPath} (${getErrorText(error)}); give the private key of this certificate`,
    );
  }
  return certificatePair;
}

/** Reports each new valid pair, and each invalid one once. Returns the function that stops. */
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
      onFault(getErrorText(error));
    }
  });
}

function readFile(setting: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`${setting}: cannot read ${path} (${getErrorText(error)}); give the path of a readable PEM file`);
  }
}

// Polls, because secrets and certificates are often replaced by a renamed file or symbolic link.

/** Calls `onChange` once no further change follows, so that no half-written file is read. Returns the stop. */
export function watchFiles(
  paths: readonly string[],
  intervalMs: number,
  clock: Clock,
  onChange: () => void,
): () => void {
  let reportedVersions = readVersions(paths);
  let previousVersions = reportedVersions;
  let cancel = clock.after(intervalMs, checkFiles);
  function checkFiles(): void {
    cancel = clock.after(intervalMs, checkFiles);
    const currentVersions = readVersions(paths);
    const isUnchanged = currentVersions === previousVersions;
    previousVersions = currentVersions;
    if (currentVersions === reportedVersions || !isUnchanged) return;
    reportedVersions = currentVersions;
    onChange();
  }
  return () => cancel();
}

function readVersions(paths: readonly string[]): string {
  return paths.map(readFileVersion).join(' ');
}

function readFileVersion(path: string): string {
  try {
    const fileStatus = statSync(path, { bigint: true });
    return `${fileStatus.ino}:${fileStatus.size}:${fileStatus.mtimeNs}`;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
  }
}
