/**
 * The certificates that SNS signs with: fetched from SNS's own host, and believed only where a chain of issuers leads from
 * them to a root of this machine (RFC 5280 section 6: signatures, dates, authority to issue) and their name is SNS's.
 */
import { X509Certificate } from 'node:crypto';

const MOST_BYTES = 65_536;
const FETCH_MS = 10_000;
const LONGEST_CHAIN = 5;
const MOST_CACHED = 20;
/** Fetched anew after that, so that a withdrawn one does not live for ever. */
const CACHE_MS = 24 * 3_600_000;
/** Issuers that a certificate itself names are fetched from Amazon's alone; what comes is believed for its signature. */
const ISSUER_HOST = '.amazontrust.com';

export interface CertificateParts {
  readonly fetch: typeof fetch;
  /** PEM certificates that are trusted. */
  readonly roots: () => readonly string[];
  readonly now: () => number;
}

export interface SnsCertificates {
  /** The certificate at a URL that is known to be SNS's; rejects with an Error of one line where it is not to be believed. */
  at(url: URL): Promise<X509Certificate>;
}

export function createSnsCertificates({ fetch: get, roots, now }: CertificateParts): SnsCertificates {
  const cache = new Map<string, { readonly until: number; readonly certificate: Promise<X509Certificate> }>();
  let trusted: Map<string, X509Certificate[]> | null = null;

  function rootsBySubject(): Map<string, X509Certificate[]> {
    if (trusted !== null) return trusted;
    trusted = new Map();
    for (const pem of roots()) {
      const root = new X509Certificate(pem);
      trusted.set(root.subject, [...(trusted.get(root.subject) ?? []), root]);
    }
    return trusted;
  }

  async function load(url: URL): Promise<X509Certificate> {
    const octets = await download(url);
    const chain = certificatesIn(octets);
    const [leaf] = chain;
    if (leaf === undefined) throw new Error('there is no certificate');
    // SNS's certificates are all in its common name; those of single regions may be in their own.
    if (leaf.checkHost('sns.amazonaws.com') === undefined && leaf.checkHost(url.hostname) === undefined) {
      throw new Error('the certificate is not in the name of SNS');
    }
    await follow(leaf, chain.slice(1));
    return leaf;
  }

  /** From issuer to issuer to a root, each of which must have signed the one before and be allowed to. */
  async function follow(leaf: X509Certificate, given: readonly X509Certificate[]): Promise<void> {
    let current = leaf;
    for (let length = 0; length < LONGEST_CHAIN; length += 1) {
      inDate(current);
      const root = rootsBySubject()
        .get(current.issuer)
        ?.find((candidate) => issued(candidate, current));
      if (root !== undefined) return inDate(root);
      const next = given.find((candidate) => issued(candidate, current)) ?? (await issuerNamedBy(current));
      if (next === null || !issued(next, current)) break;
      current = next;
    }
    throw new Error('no chain leads from the certificate to a root of this machine');
  }

  function inDate(certificate: X509Certificate): void {
    const at = now();
    if (at < certificate.validFromDate.getTime() || at > certificate.validToDate.getTime()) {
      throw new Error('a certificate of its chain is out of date');
    }
  }

  async function issuerNamedBy(certificate: X509Certificate): Promise<X509Certificate | null> {
    const line = certificate.infoAccess?.split('\n').find((text) => text.startsWith('CA Issuers - URI:'));
    const url = URL.parse(line?.slice('CA Issuers - URI:'.length).trim() ?? '');
    if (url === null || !url.hostname.endsWith(ISSUER_HOST)) return null;
    return new X509Certificate(await download(url));
  }

  async function download(url: URL): Promise<Buffer> {
    const response = await get(url, { redirect: 'error', signal: AbortSignal.timeout(FETCH_MS) });
    if (response.status !== 200 || response.body === null)
      throw new Error(`${url.hostname} answered ${response.status}`);
    const pieces: Uint8Array[] = [];
    let length = 0;
    for await (const piece of response.body) {
      length += piece.length;
      if (length > MOST_BYTES) throw new Error('the certificate is too large');
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  }

  return {
    at(url) {
      const known = cache.get(url.href);
      if (known !== undefined && known.until > now()) return known.certificate;
      cache.delete(url.href);
      if (cache.size >= MOST_CACHED) cache.delete(cache.keys().next().value ?? '');
      const certificate = load(url);
      cache.set(url.href, { until: now() + CACHE_MS, certificate });
      // One that could not be had is asked for again by the next message.
      certificate.catch(() => cache.delete(url.href));
      return certificate;
    },
  };
}

function issued(issuer: X509Certificate, certificate: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';

/** All certificates of a PEM file, or the one of a DER file. Throws where they cannot be read. */
function certificatesIn(octets: Buffer): readonly X509Certificate[] {
  const text = octets.toString('latin1');
  if (!text.includes(BEGIN)) return [new X509Certificate(octets)];
  const found: X509Certificate[] = [];
  for (let at = text.indexOf(BEGIN); at >= 0 && found.length < LONGEST_CHAIN; at = text.indexOf(BEGIN, at + 1)) {
    const end = text.indexOf(END, at);
    if (end < 0) break;
    found.push(new X509Certificate(text.slice(at, end + END.length)));
  }
  return found;
}
