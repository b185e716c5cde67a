/**
 * Fetches and validates the signing certificates of SNS. A certificate is trusted when its chain leads to a root certificate of
 * this machine (RFC 5280 section 6: signatures, validity, authority to issue) and its name is the name of SNS.
 *
 * A certificate that cannot be fetched is `unavailable`, not `refused`, so that a network failure does not refuse an event. Only
 * trusted certificates are cached, so that requests with forged URLs cannot evict them. Fetches are bounded in size, time and
 * concurrency.
 */
import { X509Certificate } from 'node:crypto';

const MAX_CERTIFICATE_BYTES = 65_536;
const FETCH_TIMEOUT_MS = 10_000;
const MAX_CONCURRENT_FETCHES = 8;
const MAX_CHAIN_LENGTH = 5;
const MAX_CACHED_CERTIFICATES = 20;
/** Cached certificates expire, so that a withdrawn certificate does not stay trusted. */
const CACHE_TTL_MS = 24 * 3_600_000;
/** A certificate can name the URL of its issuer. Only URLs below this domain are fetched; the signature decides about trust. */
const ISSUER_HOST = '.amazontrust.com';
const ISSUER_URL_PREFIX = 'CA Issuers - URI:';
const TOO_MANY_REQUESTS = 429;

export interface SnsCertificatesParts {
  readonly fetch: typeof fetch;
  /** Trusted root certificates (PEM). */
  readonly roots: () => readonly string[];
  readonly now: () => number;
}

export type SnsCertificateResult =
  | { readonly kind: 'trusted'; readonly certificate: X509Certificate }
  /** The certificate is not a certificate of SNS. `reason` is one line. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The certificate could not be fetched now. The message may be from SNS. */
  | { readonly kind: 'unavailable'; readonly reason: string };

export interface SnsCertificates {
  /** Returns the certificate at a URL of SNS, from the cache or fetched. Never rejects. */
  get(url: URL): Promise<SnsCertificateResult>;
}

type Download =
  | { readonly kind: 'fetched'; readonly octets: Buffer }
  | Exclude<SnsCertificateResult, { kind: 'trusted' }>;
interface CachedCertificate {
  readonly expiresAt: number;
  readonly certificate: X509Certificate;
}

export function createSnsCertificates({ fetch: fetchUrl, roots, now }: SnsCertificatesParts): SnsCertificates {
  const cache = new Map<string, CachedCertificate>();
  const pendingLoads = new Map<string, Promise<SnsCertificateResult>>();
  let trustedRoots: Map<string, X509Certificate[]> | null = null;

  function rootsBySubject(): Map<string, X509Certificate[]> {
    if (trustedRoots !== null) return trustedRoots;
    trustedRoots = new Map();
    for (const pem of roots()) {
      const root = new X509Certificate(pem);
      trustedRoots.set(root.subject, [...(trustedRoots.get(root.subject) ?? []), root]);
    }
    return trustedRoots;
  }

  async function load(url: URL): Promise<SnsCertificateResult> {
    const downloaded = await download(url);
    if (downloaded.kind !== 'fetched') return downloaded;
    const [leaf, ...included] = parseCertificates(downloaded.octets);
    if (leaf === undefined) return refused('the file contains no certificate');
    // The certificates of SNS have the global name of SNS. A regional name is valid too.
    const hasSnsName = ['sns.amazonaws.com', url.hostname].some(
      (name) => leaf.checkHost(name, NO_WILDCARDS) !== undefined,
    );
    return hasSnsName ? verifyChain(leaf, included) : refused('the certificate does not have the name of SNS');
  }

  /**
   * Follows the chain of issuers to a root. Each issuer must have signed the certificate before it and be a certificate
   * authority.
   */
  async function verifyChain(
    leaf: X509Certificate,
    included: readonly X509Certificate[],
  ): Promise<SnsCertificateResult> {
    let current = leaf;
    for (let length = 0; length < MAX_CHAIN_LENGTH; length += 1) {
      if (!isInValidityPeriod(current)) return OUTSIDE_VALIDITY;
      const child = current;
      const root = rootsBySubject()
        .get(child.issuer)
        ?.find((candidate) => isIssuerOf(candidate, child));
      if (root !== undefined)
        return isInValidityPeriod(root) ? { kind: 'trusted', certificate: leaf } : OUTSIDE_VALIDITY;
      const next = included.find((candidate) => isIssuerOf(candidate, child)) ?? (await fetchIssuer(child));
      if (!(next instanceof X509Certificate)) return next;
      if (!isIssuerOf(next, child)) break;
      current = next;
    }
    return NO_TRUSTED_ROOT;
  }

  function isInValidityPeriod(certificate: X509Certificate): boolean {
    const at = now();
    return at >= certificate.validFromDate.getTime() && at <= certificate.validToDate.getTime();
  }

  /** Fetches the issuer from the URL in the certificate (RFC 5280 section 4.2.2.1). */
  async function fetchIssuer(certificate: X509Certificate): Promise<X509Certificate | Untrusted> {
    const line = certificate.infoAccess?.split('\n').find((text) => text.startsWith(ISSUER_URL_PREFIX));
    const url = URL.parse(line?.slice(ISSUER_URL_PREFIX.length).trim() ?? '');
    // Plain HTTP is usual here. It is safe because the signature proves the issuer.
    const known = url?.protocol === 'http:' || url?.protocol === 'https:';
    if (url === null || !known || url.port !== '' || !url.hostname.endsWith(ISSUER_HOST)) return NO_TRUSTED_ROOT;
    const downloaded = await download(url);
    if (downloaded.kind !== 'fetched') return downloaded;
    return parseCertificates(downloaded.octets)[0] ?? NO_TRUSTED_ROOT;
  }

  async function download(url: URL): Promise<Download> {
    try {
      const response = await fetchUrl(url, { redirect: 'manual', signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
      const { status, body } = response;
      if (status !== 200 || body === null) {
        await body?.cancel();
        const temporary = status >= 500 || status === TOO_MANY_REQUESTS;
        const reason = `${url.hostname} answered ${status} for the certificate`;
        return temporary ? { kind: 'unavailable', reason } : refused(reason);
      }
      const chunks: Uint8Array[] = [];
      let length = 0;
      for await (const chunk of body) {
        length += chunk.length;
        if (length > MAX_CERTIFICATE_BYTES) return refused('the certificate is too large');
        chunks.push(chunk);
      }
      return { kind: 'fetched', octets: Buffer.concat(chunks) };
    } catch (error) {
      return {
        kind: 'unavailable',
        reason: `the certificate could not be fetched from ${url.hostname} (${errorText(error)})`,
      };
    }
  }

  function addToCache(url: URL, certificate: X509Certificate): void {
    if (cache.size >= MAX_CACHED_CERTIFICATES) cache.delete(cache.keys().next().value ?? '');
    cache.set(url.href, { expiresAt: Math.min(now() + CACHE_TTL_MS, certificate.validToDate.getTime()), certificate });
  }

  async function loadAndCache(url: URL): Promise<SnsCertificateResult> {
    try {
      const found = await load(url);
      if (found.kind === 'trusted') addToCache(url, found.certificate);
      return found;
    } catch (error) {
      return refused(`the certificate cannot be read (${errorText(error)})`);
    } finally {
      pendingLoads.delete(url.href);
    }
  }

  return {
    async get(url) {
      const known = cache.get(url.href);
      if (known !== undefined && known.expiresAt > now()) return { kind: 'trusted', certificate: known.certificate };
      cache.delete(url.href);
      const pending = pendingLoads.get(url.href);
      if (pending !== undefined) return pending;
      if (pendingLoads.size >= MAX_CONCURRENT_FETCHES)
        return { kind: 'unavailable', reason: 'too many certificates are being fetched' };
      const certificate = loadAndCache(url);
      pendingLoads.set(url.href, certificate);
      return certificate;
    },
  };
}

type Untrusted = Exclude<SnsCertificateResult, { kind: 'trusted' }>;

const NO_WILDCARDS = { wildcards: false };
const OUTSIDE_VALIDITY = refused('a certificate of the chain is expired or not yet valid');
const NO_TRUSTED_ROOT = refused('the chain of the certificate does not lead to a trusted root certificate');

function refused(reason: string): Untrusted {
  return { kind: 'refused', reason };
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function isIssuerOf(issuer: X509Certificate, certificate: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';

/** Reads all certificates of a PEM file, or the only certificate of a DER file. Throws when a certificate is malformed. */
function parseCertificates(octets: Buffer): readonly X509Certificate[] {
  const text = octets.toString('latin1');
  if (!text.includes(BEGIN)) return [new X509Certificate(octets)];
  const found: X509Certificate[] = [];
  for (let at = text.indexOf(BEGIN); at >= 0 && found.length < MAX_CHAIN_LENGTH; at = text.indexOf(BEGIN, at + 1)) {
    const end = text.indexOf(END, at);
    if (end < 0) break;
    found.push(new X509Certificate(text.slice(at, end + END.length)));
  }
  return found;
}
