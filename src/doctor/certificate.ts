/**
 * Checks that the certificate of the public listener is readable, is valid now, matches its key, names a host and
 * includes the full chain.
 */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { type HttpListen, isUnixSocket } from '../model/listen-address.ts';
import { createFailure, createOkFinding, createWarning, type Finding } from './finding.ts';

const CHECK_NAME = 'certificate';
const DAY_MS = 86_400_000;
/**
 * Certificates are usually renewed 30 days before they expire. If less than `EXPIRY_WARNING_MS` remains, several
 * renewals have probably failed.
 */
const EXPIRY_WARNING_MS = 21 * DAY_MS;
const CERTIFICATE_END = '-----END CERTIFICATE-----';
const MAX_CHAIN_LENGTH = 20;

export interface CertificateCheckParts {
  /** Paths of the certificate and its key. Null when the public listener uses plain HTTP. */
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
      return [
        createOkFinding(CHECK_NAME, 'not needed: the public listener accepts connections from this machine only'),
      ];
    const remedy = 'set POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY, or allow access only through an HTTPS proxy';
    return [
      createWarning(
        CHECK_NAME,
        `not set: API keys and messages to ${listen.host} cross the network in clear text`,
        remedy,
      ),
    ];
  }
  const { certPath, keyPath } = paths;
  const chainBytes = await readContents(read, certPath);
  if ('reason' in chainBytes)
    return [
      createFailure(
        CHECK_NAME,
        `${certPath} cannot be read (${chainBytes.reason})`,
        'set POSTRIDER_TLS_CERT to a PEM file that this user may read',
      ),
    ];
  const keyBytes = await readContents(read, keyPath);
  if ('reason' in keyBytes)
    return [
      createFailure(
        CHECK_NAME,
        `${keyPath} cannot be read (${keyBytes.reason})`,
        'set POSTRIDER_TLS_KEY to a PEM file that this user may read',
      ),
    ];
  const chain = readChain(chainBytes.bytes.toString('latin1'));
  const [leaf] = chain ?? [];
  if (chain === null || leaf === undefined) {
    return [
      createFailure(
        CHECK_NAME,
        `${certPath} is not a PEM certificate`,
        'use a file with the full chain that begins with the certificate of this host',
      ),
    ];
  }
  const keyFault = findPrivateKeyFault(leaf, keyBytes.bytes);
  if (keyFault !== null)
    return [
      createFailure(
        CHECK_NAME,
        `${keyPath} ${keyFault}`,
        'set POSTRIDER_TLS_KEY to the private key of the certificate',
      ),
    ];
  return [checkLeafCertificate(leaf, chain, now)];
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

function readChain(pemText: string): readonly X509Certificate[] | null {
  const blocks = pemText
    .split(CERTIFICATE_END, MAX_CHAIN_LENGTH)
    .filter((block) => block.includes('-----BEGIN CERTIFICATE-----'));
  try {
    return blocks.map((block) => new X509Certificate(`${block}${CERTIFICATE_END}\n`));
  } catch {
    return null;
  }
}

function findPrivateKeyFault(leaf: X509Certificate, keyPem: Buffer): string | null {
  try {
    return leaf.checkPrivateKey(createPrivateKey(keyPem)) ? null : 'is the key of another certificate';
  } catch {
    return 'is not a PEM private key without a passphrase';
  }
}

function checkLeafCertificate(leaf: X509Certificate, chain: readonly X509Certificate[], now: number): Finding {
  const [validFromMs, validToMs] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
  const hostNames = listHostNames(leaf);
  const nameList =
    hostNames.length === 0 ? 'no host name' : hostNames.slice(0, 5).join(', ') + (hostNames.length > 5 ? ', …' : '');
  const renewalRemedy = 'renew the certificate; Postrider loads the new files without a restart';
  if (now < validFromMs)
    return createFailure(
      CHECK_NAME,
      `for ${nameList}; the certificate is not valid before ${formatDay(validFromMs)}`,
      'check the clock of this machine',
    );
  if (now >= validToMs)
    return createFailure(
      CHECK_NAME,
      `for ${nameList}; the certificate expired on ${formatDay(validToMs)}`,
      renewalRemedy,
    );
  const detail = `for ${nameList}; valid until ${formatDay(validToMs)}`;
  if (validToMs - now < EXPIRY_WARNING_MS)
    return createWarning(
      CHECK_NAME,
      `${detail}, ${Math.ceil((validToMs - now) / DAY_MS)} days from now`,
      renewalRemedy,
    );
  // RFC 9110 section 4.3.4 and RFC 6125: clients compare only the subject alternative names.
  if (hostNames.length === 0)
    return createWarning(CHECK_NAME, detail, 'request a certificate with the host name as subject alternative name');
  if (leaf.checkIssued(leaf))
    return createWarning(
      CHECK_NAME,
      `${detail}; the certificate is self-signed`,
      'use a certificate of a certificate authority, or configure the clients to trust this certificate',
    );
  if (chain.length === 1) {
    return createWarning(
      CHECK_NAME,
      `${detail}; the file has no intermediate certificate`,
      'use a file with the full chain (fullchain.pem), because clients may not find the intermediate certificate',
    );
  }
  const brokenIndex = chain.findIndex((certificate, index) => {
    const issuer = chain[index + 1];
    return issuer !== undefined && !certificate.checkIssued(issuer);
  });
  if (brokenIndex !== -1) {
    return createWarning(
      CHECK_NAME,
      `${detail}; certificate ${brokenIndex + 2} of the file did not issue the certificate before it`,
      'order the chain: the certificate of this host first, and each issuer after the certificate that it issued',
    );
  }
  return createOkFinding(CHECK_NAME, detail);
}

function listHostNames(leaf: X509Certificate): readonly string[] {
  return (leaf.subjectAltName ?? '')
    .split(', ')
    .filter((name) => name.startsWith('DNS:') || name.startsWith('IP Address:'))
    .map((name) => name.slice(name.indexOf(':') + 1));
}

function formatDay(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}
