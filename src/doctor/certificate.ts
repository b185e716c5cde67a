/**
 * Checks that the certificate of the public listener is readable and valid now, and has a matching key, a host name and the
 * full chain.
 */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { type HttpListen, isUnixSocket } from '../model/listen-address.ts';
import { type Finding, failure, ok, warning } from './finding.ts';

const CHECK_NAME = 'certificate';
const DAY_MS = 86_400_000;
/**
 * Certificates are usually renewed 30 days before they expire. If less time than this remains, several renewals have
 * probably failed.
 */
const EXPIRY_WARNING_MS = 21 * DAY_MS;
const CERTIFICATE_END = '-----END CERTIFICATE-----';
const MAX_CHAIN_LENGTH = 20;

export interface CertificateCheckParts {
  /** Files of the certificate and its key. Null when the public listener uses plain HTTP. */
  readonly paths: { readonly certPath: string; readonly keyPath: string } | null;
  readonly listen: HttpListen;
  readonly acceptsRemoteClients: boolean;
  /** Rejects when the file cannot be read. */
  readonly read: (path: string) => Promise<Buffer>;
  readonly now: number;
}

export async function checkCertificate(parts: CertificateCheckParts): Promise<readonly Finding[]> {
  const { paths, listen, acceptsRemoteClients, read, now } = parts;
  if (paths === null) {
    if (isUnixSocket(listen) || !acceptsRemoteClients)
      return [ok(CHECK_NAME, 'not needed: the public listener accepts connections from this machine only')];
    const remedy = 'set POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY, or allow access only through an HTTPS proxy';
    return [
      warning(CHECK_NAME, `not set: API keys and messages to ${listen.host} cross the network in clear text`, remedy),
    ];
  }
  const { certPath, keyPath } = paths;
  const chainBytes = await readContents(read, certPath);
  if ('reason' in chainBytes)
    return [
      failure(
        CHECK_NAME,
        `${certPath} cannot be read (${chainBytes.reason})`,
        'set POSTRIDER_TLS_CERT to a PEM file that this user may read',
      ),
    ];
  const keyBytes = await readContents(read, keyPath);
  if ('reason' in keyBytes)
    return [
      failure(
        CHECK_NAME,
        `${keyPath} cannot be read (${keyBytes.reason})`,
        'set POSTRIDER_TLS_KEY to a PEM file that this user may read',
      ),
    ];
  const chain = readChain(chainBytes.bytes.toString('latin1'));
  const [leaf] = chain ?? [];
  if (chain === null || leaf === undefined) {
    return [
      failure(
        CHECK_NAME,
        `${certPath} is not a PEM certificate`,
        'use a file with the full chain, the certificate of this host first',
      ),
    ];
  }
  const keyFault = privateKeyFault(leaf, keyBytes.bytes);
  if (keyFault !== null)
    return [
      failure(CHECK_NAME, `${keyPath} ${keyFault}`, 'set POSTRIDER_TLS_KEY to the private key of the certificate'),
    ];
  return [leafFinding(leaf, chain, now)];
}

async function readContents(
  read: CertificateCheckParts['read'],
  path: string,
): Promise<{ readonly bytes: Buffer } | { readonly reason: string }> {
  try {
    return { bytes: await read(path) };
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    return { reason };
  }
}

function readChain(pem: string): readonly X509Certificate[] | null {
  const blocks = pem
    .split(CERTIFICATE_END, MAX_CHAIN_LENGTH)
    .filter((block) => block.includes('-----BEGIN CERTIFICATE-----'));
  try {
    return blocks.map((block) => new X509Certificate(`${block}${CERTIFICATE_END}\n`));
  } catch {
    return null;
  }
}

function privateKeyFault(leaf: X509Certificate, pem: Buffer): string | null {
  try {
    return leaf.checkPrivateKey(createPrivateKey(pem)) ? null : 'is the key of another certificate';
  } catch {
    return 'is not a PEM private key without a passphrase';
  }
}

function leafFinding(leaf: X509Certificate, chain: readonly X509Certificate[], now: number): Finding {
  const [from, to] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
  const names = listHostNames(leaf);
  const nameList = names.length === 0 ? 'no host name' : names.slice(0, 5).join(', ') + (names.length > 5 ? ', …' : '');
  const renew = 'renew it; Postrider loads the new files without a restart';
  if (now < from)
    return failure(
      CHECK_NAME,
      `for ${nameList}; it is not valid before ${formatDay(from)}`,
      'check the clock of this machine',
    );
  if (now >= to) return failure(CHECK_NAME, `for ${nameList}; it expired on ${formatDay(to)}`, renew);
  const detail = `for ${nameList}; valid until ${formatDay(to)}`;
  if (to - now < EXPIRY_WARNING_MS)
    return warning(CHECK_NAME, `${detail}, ${Math.ceil((to - now) / DAY_MS)} days from now`, renew);
  // RFC 9110 section 4.3.4 and RFC 6125: clients compare only the subject alternative names.
  if (names.length === 0)
    return warning(CHECK_NAME, detail, 'request a certificate with the host name as subject alternative name');
  if (leaf.checkIssued(leaf))
    return warning(
      CHECK_NAME,
      `${detail}; it is self-signed`,
      'use a certificate of a certificate authority, or configure the clients to trust this one',
    );
  if (chain.length === 1) {
    return warning(
      CHECK_NAME,
      `${detail}; the file has no intermediate certificate`,
      'use a file with the full chain (fullchain.pem), because clients may not find the intermediate certificate',
    );
  }
  const brokenIndex = chain.findIndex((certificate, at) => {
    const issuer = chain[at + 1];
    return issuer !== undefined && !certificate.checkIssued(issuer);
  });
  if (brokenIndex !== -1) {
    return warning(
      CHECK_NAME,
      `${detail}; certificate ${brokenIndex + 2} of the file did not issue the one before it`,
      'order the chain: the certificate of this host first, each issuer after it',
    );
  }
  return ok(CHECK_NAME, detail);
}

function listHostNames(leaf: X509Certificate): readonly string[] {
  return (leaf.subjectAltName ?? '')
    .split(', ')
    .filter((name) => name.startsWith('DNS:') || name.startsWith('IP Address:'))
    .map((name) => name.slice(name.indexOf(':') + 1));
}

function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
