/** The certificate of the public listener: readable, fitting its key, in date, naming somebody, with its chain. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { HostPort } from '../config/settings.ts';
import { type Finding, failure, ok, warning } from './finding.ts';

const CHECK = 'certificate';
const DAY_MS = 86_400_000;
/** Renewals run at 30 days before the end: one that is later than this has failed more than once. */
const SOON_MS = 21 * DAY_MS;
const END = '-----END CERTIFICATE-----';
/** More than any chain. */
const MAX_CHAIN = 20;

export interface CertificateCheckParts {
  /** Null where the public listener speaks plain HTTP. */
  readonly paths: { readonly certPath: string; readonly keyPath: string } | null;
  readonly listen: HostPort;
  readonly acceptsRemoteClients: boolean;
  /** Rejects where the file cannot be read. */
  readonly read: (path: string) => Promise<Buffer>;
  readonly now: number;
}

export async function checkCertificate(parts: CertificateCheckParts): Promise<readonly Finding[]> {
  const { paths, listen, acceptsRemoteClients: listensBeyondThisMachine, read, now } = parts;
  if (paths === null) {
    if (!listensBeyondThisMachine) return [ok(CHECK, 'none: the public listener is open to this machine alone')];
    const remedy = 'set POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY, or let only a proxy that speaks HTTPS reach it';
    return [warning(CHECK, `none: keys and mail cross the network to ${listen.host} in clear text`, remedy)];
  }
  const { certPath, keyPath } = paths;
  const chainBytes = await contents(read, certPath);
  if ('why' in chainBytes)
    return [
      failure(
        CHECK,
        `${certPath} cannot be read (${chainBytes.why})`,
        'set POSTRIDER_TLS_CERT to a PEM file that this user may read',
      ),
    ];
  const keyBytes = await contents(read, keyPath);
  if ('why' in keyBytes)
    return [
      failure(
        CHECK,
        `${keyPath} cannot be read (${keyBytes.why})`,
        'set POSTRIDER_TLS_KEY to a PEM file that this user may read',
      ),
    ];
  const chain = readChain(chainBytes.bytes.toString('latin1'));
  const [leaf] = chain ?? [];
  if (chain === null || leaf === undefined) {
    return [
      failure(CHECK, `${certPath} is no PEM certificate`, 'give the full chain, the certificate of this host first'),
    ];
  }
  const keyFault = privateKeyFault(leaf, keyBytes.bytes);
  if (keyFault !== null)
    return [failure(CHECK, `${keyPath} ${keyFault}`, 'give the key that the certificate was made with')];
  return [leafFinding(leaf, chain, now)];
}

async function contents(
  read: CertificateCheckParts['read'],
  path: string,
): Promise<{ readonly bytes: Buffer } | { readonly why: string }> {
  try {
    return { bytes: await read(path) };
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    return { why };
  }
}

function readChain(pem: string): readonly X509Certificate[] | null {
  const blocks = pem.split(END, MAX_CHAIN).filter((block) => block.includes('-----BEGIN CERTIFICATE-----'));
  try {
    return blocks.map((block) => new X509Certificate(`${block}${END}\n`));
  } catch {
    return null;
  }
}

function privateKeyFault(leaf: X509Certificate, pem: Buffer): string | null {
  try {
    return leaf.checkPrivateKey(createPrivateKey(pem)) ? null : 'is the key of another certificate';
  } catch {
    return 'is no PEM private key without a passphrase';
  }
}

function leafFinding(leaf: X509Certificate, chain: readonly X509Certificate[], now: number): Finding {
  const [from, to] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
  const names = namesOf(leaf);
  const shown = names.length === 0 ? 'no name' : names.slice(0, 5).join(', ') + (names.length > 5 ? ', …' : '');
  const renew = 'renew it; the new files are taken over without a restart';
  if (now < from)
    return failure(CHECK, `of ${shown}; it is valid only from ${day(from)} on`, 'see that this clock is right');
  if (now >= to) return failure(CHECK, `of ${shown}; it expired on ${day(to)}`, renew);
  const detail = `of ${shown}; valid until ${day(to)}`;
  if (to - now < SOON_MS) return warning(CHECK, `${detail}, ${Math.ceil((to - now) / DAY_MS)} days from now`, renew);
  // RFC 9110 section 4.3.4 and RFC 6125: clients compare the subject alternative names, and no other.
  if (names.length === 0) return warning(CHECK, detail, 'have it made with the host name as subject alternative name');
  if (leaf.checkIssued(leaf))
    return warning(
      CHECK,
      `${detail}; it is self-signed`,
      'clients must be told to trust it, or use one of an authority',
    );
  if (chain.length === 1) {
    return warning(
      CHECK,
      `${detail}; the file has no intermediate certificate`,
      'give the full chain (fullchain.pem): clients may not find it themselves',
    );
  }
  const broken = chain.findIndex((certificate, at) => {
    const issuer = chain[at + 1];
    return issuer !== undefined && !certificate.checkIssued(issuer);
  });
  if (broken !== -1) {
    return warning(
      CHECK,
      `${detail}; certificate ${broken + 2} of the file did not issue the one before it`,
      'put the chain in order, this host first',
    );
  }
  return ok(CHECK, detail);
}

function namesOf(leaf: X509Certificate): readonly string[] {
  return (leaf.subjectAltName ?? '')
    .split(', ')
    .filter((name) => name.startsWith('DNS:') || name.startsWith('IP Address:'))
    .map((name) => name.slice(name.indexOf(':') + 1));
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
