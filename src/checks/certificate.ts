import { createPrivateKey, X509Certificate } from 'node:crypto';
import { type HttpListen, isUnixSocket } from '../model/listen-address.ts';
import { type Finding, report } from './facts.ts';

const DAY_MS = 86_400_000;
/** Certificates are renewed 30 days before they expire, so several renewals have probably failed. */
const EXPIRY_WARNING_MS = 21 * DAY_MS;
const CERTIFICATE_END = '-----END CERTIFICATE-----';
const MAX_CHAIN_LENGTH = 20;

export interface CertificateCheckParts {
  /** Null when the public listener uses plain HTTP. */
  readonly paths: { readonly certPath: string; readonly keyPath: string } | null;
  readonly listen: HttpListen;
  readonly acceptsRemoteClients: boolean;
  readonly read: (path: string) => Promise<Buffer>;
  readonly now: number;
}

const certificate = report('certificate');

export async function checkCertificate(parts: CertificateCheckParts): Promise<Finding> {
  const { paths, listen, acceptsRemoteClients, read, now } = parts;
  const { ok, warning, failure } = certificate;
  if (paths === null) {
    if (isUnixSocket(listen) || !acceptsRemoteClients)
      return ok('not needed: the public listener accepts connections from this machine only');
    return warning(
      `not set: API keys and messages to ${listen.host} cross the network in clear text`,
      'set POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY, or allow access only through an HTTPS proxy',
    );
  }
  const { certPath, keyPath } = paths;
  const contents: Buffer[] = [];
  for (const [setting, path] of Object.entries({ POSTRIDER_TLS_CERT: certPath, POSTRIDER_TLS_KEY: keyPath }))
    try {
      contents.push(await read(path));
    } catch (error) {
      const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
      return failure(`${path} cannot be read (${reason})`, `set ${setting} to a PEM file that this user may read`);
    }
  const [chainPem = Buffer.of(), keyPem = Buffer.of()] = contents;
  const chain = readChain(chainPem.toString('latin1'));
  const [leaf] = chain;
  if (leaf === undefined)
    return failure(
      `${certPath} is not a PEM certificate`,
      'use a file with the full chain that begins with the certificate of this host',
    );
  const keyFault = findPrivateKeyFault(leaf, keyPem);
  if (keyFault !== null)
    return failure(`${keyPath} ${keyFault}`, 'set POSTRIDER_TLS_KEY to the private key of the certificate');
  return checkLeafCertificate(leaf, chain, now);
}

function readChain(pemText: string): readonly X509Certificate[] {
  const blocks = pemText
    .split(CERTIFICATE_END, MAX_CHAIN_LENGTH)
    .filter((block) => block.includes('-----BEGIN CERTIFICATE-----'));
  try {
    return blocks.map((block) => new X509Certificate(`${block}${CERTIFICATE_END}\n`));
  } catch {
    return [];
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
  const { ok, warning, failure } = certificate;
  const [validFromMs, validToMs] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
  // RFC 9110 section 4.3.4 and RFC 6125: clients compare only the subject alternative names.
  const hostNames = (leaf.subjectAltName ?? '')
    .split(', ')
    .filter((name) => name.startsWith('DNS:') || name.startsWith('IP Address:'))
    .map((name) => name.slice(name.indexOf(':') + 1));
  const names = hostNames.slice(0, 5).join(', ') + (hostNames.length > 5 ? ', …' : '');
  const owner = `for ${hostNames.length === 0 ? 'no host name' : names}`;
  const renewal = 'renew the certificate; Postrider loads the new files without a restart';
  if (now < validFromMs)
    return failure(
      `${owner}; the certificate is not valid before ${formatDay(validFromMs)}`,
      'check the clock of this machine',
    );
  if (now >= validToMs) return failure(`${owner}; the certificate expired on ${formatDay(validToMs)}`, renewal);
  const text = `${owner}; valid until ${formatDay(validToMs)}`;
  if (validToMs - now < EXPIRY_WARNING_MS)
    return warning(`${text}, ${Math.ceil((validToMs - now) / DAY_MS)} days from now`, renewal);
  if (hostNames.length === 0)
    return warning(text, 'request a certificate with the host name as subject alternative name');
  if (leaf.checkIssued(leaf))
    return warning(
      `${text}; the certificate is self-signed`,
      'use a certificate of a certificate authority, or configure the clients to trust this certificate',
    );
  if (chain.length === 1)
    return warning(
      `${text}; the file has no intermediate certificate`,
      'use a file with the full chain (fullchain.pem), because clients may not find the intermediate certificate',
    );
  const brokenIndex = chain.findIndex((member, index) => {
    const issuer = chain[index + 1];
    return issuer !== undefined && !member.checkIssued(issuer);
  });
  if (brokenIndex !== -1)
    return warning(
      `${text}; certificate ${brokenIndex + 2} of the file did not issue the certificate before it`,
      'order the chain: the certificate of this host first, and each issuer after the certificate that it issued',
    );
  return ok(text);
}

function formatDay(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}
