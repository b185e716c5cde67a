/** Chains end at a root of this machine (RFC 5280 section 6). Only trusted ones are cached: forged URLs evict none. */
import { X509Certificate } from 'node:crypto';
import { getErrorText } from '../../printing/text.ts';

const MAX_CERTIFICATE_BYTES = 65_536;
const FETCH_TIMEOUT_MS = 10_000;
const MAX_CONCURRENT_FETCHES = 8;
const MAX_CHAIN_LENGTH = 5;
const MAX_CACHED_CERTIFICATES = 20;
/** After it was removed from its URL. */
const CACHE_TTL_MS = 24 * 3_600_000;
/** Of the issuers’ URLs, only these are fetched; the signature proves the issuer. */
const ISSUER_HOST = '.amazontrust.com';
const ISSUER_URL_PREFIX = 'CA Issuers - URI:';
const TOO_MANY_REQUESTS = 429;

export interface SnsCertificatesParts {
  readonly fetch: typeof fetch;
  readonly getRoots: () => readonly string[];
  readonly now: () => number;
}

export type SnsCertificateResult =
  | { readonly kind: 'trusted'; readonly certificate: X509Certificate }
  | { readonly kind: 'refused'; readonly reason: string }
  /** The message may be from SNS, which must send it again. */
  | { readonly kind: 'unavailable'; readonly reason: string };

export interface SnsCertificates {
  getCertificate(url: URL): Promise<SnsCertificateResult>;
}

type DownloadResult =
  | { readonly kind: 'fetched'; readonly octets: Buffer }
  | Exclude<SnsCertificateResult, { kind: 'trusted' }>;
interface CachedCertificate {
  readonly expiresAt: number;
  readonly certificate: X509Certificate;
}

export function createSnsCertificates({ fetch: fetchUrl, getRoots, now }: SnsCertificatesParts): SnsCertificates {
  const cache = new Map<string, CachedCertificate>();
  const pendingLoads = new Map<string, Promise<SnsCertificateResult>>();
  let trustedRoots: Map<string, X509Certificate[]> | null = null;

  function groupRootsBySubject(): Map<string, X509Certificate[]> {
    if (trustedRoots !== null) return trustedRoots;
    trustedRoots = new Map();
    for (const pem of getRoots()) {
      const root = new X509Certificate(pem);
      trustedRoots.set(root.subject, [...(trustedRoots.get(root.subject) ?? []), root]);
    }
    return trustedRoots;
  }

  async function loadCertificate(url: URL): Promise<SnsCertificateResult> {
    const downloadResult = await download(url);
    if (downloadResult.kind !== 'fetched') return downloadResult;
    const [leaf, ...includedCertificates] = parseCertificates(downloadResult.octets);
    if (leaf === undefined) return createRefusedResult('the file contains no certificate');
    const hasSnsName = ['sns.amazonaws.com', url.hostname].some(
      (name) => leaf.checkHost(name, NO_WILDCARDS) !== undefined,
    );
    return hasSnsName
      ? verifyChain(leaf, includedCertificates)
      : createRefusedResult('the certificate does not contain the name of SNS');
  }

  /** Each issuer must be a certificate authority and must have signed the preceding certificate. */
  async function verifyChain(
    leaf: X509Certificate,
    downloadedIssuers: readonly X509Certificate[],
  ): Promise<SnsCertificateResult> {
    let currentCertificate = leaf;
    for (let chainLength = 0; chainLength < MAX_CHAIN_LENGTH; chainLength += 1) {
      if (!isInValidityPeriod(currentCertificate)) return OUTSIDE_VALIDITY;
      const issuedCertificate = currentCertificate;
      const root = groupRootsBySubject()
        .get(issuedCertificate.issuer)
        ?.find((candidate) => isIssuerOf(candidate, issuedCertificate));
      if (root !== undefined)
        return isInValidityPeriod(root) ? { kind: 'trusted', certificate: leaf } : OUTSIDE_VALIDITY;
      const issuer =
        downloadedIssuers.find((candidate) => isIssuerOf(candidate, issuedCertificate)) ??
        (await fetchIssuer(issuedCertificate));
      if (!(issuer instanceof X509Certificate)) return issuer;
      if (!isIssuerOf(issuer, issuedCertificate)) break;
      currentCertificate = issuer;
    }
    return NO_TRUSTED_ROOT;
  }

  function isInValidityPeriod(certificate: X509Certificate): boolean {
    const checkedAt = now();
    return checkedAt >= certificate.validFromDate.getTime() && checkedAt <= certificate.validToDate.getTime();
  }

  /** RFC 5280 section 4.2.2.1. */
  async function fetchIssuer(certificate: X509Certificate): Promise<X509Certificate | UntrustedResult> {
    const issuerLine = certificate.infoAccess?.split('\n').find((text) => text.startsWith(ISSUER_URL_PREFIX));
    const url = URL.parse(issuerLine?.slice(ISSUER_URL_PREFIX.length).trim() ?? '');
    // Plain HTTP is usual for these URLs, and it is safe because the signature proves the issuer.
    const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
    if (url === null || !isHttp || url.port !== '' || !url.hostname.endsWith(ISSUER_HOST)) return NO_TRUSTED_ROOT;
    const downloadResult = await download(url);
    if (downloadResult.kind !== 'fetched') return downloadResult;
    return parseCertificates(downloadResult.octets)[0] ?? NO_TRUSTED_ROOT;
  }

  async function download(url: URL): Promise<DownloadResult> {
    try {
      const response = await fetchUrl(url, { redirect: 'manual', signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
      const { status, body } = response;
      if (status !== 200 || body === null) {
        await body?.cancel();
        const isTemporary = status >= 500 || status === TOO_MANY_REQUESTS;
        const reason = `${url.hostname} answered ${status} for the certificate`;
        return isTemporary ? { kind: 'unavailable', reason } : createRefusedResult(reason);
      }
      const chunks: Uint8Array[] = [];
      let length = 0;
      for await (const chunk of body) {
        length += chunk.length;
        if (length > MAX_CERTIFICATE_BYTES) return createRefusedResult('the certificate is too large');
        chunks.push(chunk);
      }
      return { kind: 'fetched', octets: Buffer.concat(chunks) };
    } catch (error) {
      return {
        kind: 'unavailable',
        reason: `the certificate could not be fetched from ${url.hostname} (${getErrorText(error)})`,
      };
    }
  }

  function addToCache(url: URL, certificate: X509Certificate): void {
    if (cache.size >= MAX_CACHED_CERTIFICATES) cache.delete(cache.keys().next().value ?? '');
    cache.set(url.href, { expiresAt: Math.min(now() + CACHE_TTL_MS, certificate.validToDate.getTime()), certificate });
  }

  async function loadAndCacheCertificate(url: URL): Promise<SnsCertificateResult> {
    try {
      const certificateResult = await loadCertificate(url);
      if (certificateResult.kind === 'trusted') addToCache(url, certificateResult.certificate);
      return certificateResult;
    } catch (error) {
      return createRefusedResult(`the certificate cannot be read (${getErrorText(error)})`);
    } finally {
      pendingLoads.delete(url.href);
    }
  }

  return {
    async getCertificate(url) {
      const cachedCertificate = cache.get(url.href);
      if (cachedCertificate !== undefined && cachedCertificate.expiresAt > now())
        return { kind: 'trusted', certificate: cachedCertificate.certificate };
      cache.delete(url.href);
      const pendingLoad = pendingLoads.get(url.href);
      if (pendingLoad !== undefined) return pendingLoad;
      if (pendingLoads.size >= MAX_CONCURRENT_FETCHES)
        return { kind: 'unavailable', reason: 'too many certificates are being fetched' };
      const load = loadAndCacheCertificate(url);
      pendingLoads.set(url.href, load);
      return load;
    },
  };
}

type UntrustedResult = Exclude<SnsCertificateResult, { kind: 'trusted' }>;

const NO_WILDCARDS = { wildcards: false };
const OUTSIDE_VALIDITY = createRefusedResult('a certificate of the chain is expired or not yet valid');
const NO_TRUSTED_ROOT = createRefusedResult('the chain of the certificate does not end at a trusted root certificate');

function createRefusedResult(reason: string): UntrustedResult {
  return { kind: 'refused', reason };
}

function isIssuerOf(issuer: X509Certificate, certificate: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

const CERTIFICATE_BEGIN = '-----BEGIN CERTIFICATE-----';
const CERTIFICATE_END = '-----END CERTIFICATE-----';

/** PEM, or the only certificate as DER. Throws when one is malformed. */
function parseCertificates(octets: Buffer): readonly X509Certificate[] {
  const text = octets.toString('latin1');
  if (!text.includes(CERTIFICATE_BEGIN)) return [new X509Certificate(octets)];
  const certificates: X509Certificate[] = [];
  for (
    let at = text.indexOf(CERTIFICATE_BEGIN);
    at >= 0 && certificates.length < MAX_CHAIN_LENGTH;
    at = text.indexOf(CERTIFICATE_BEGIN, at + 1)
  ) {
    const end = text.indexOf(CERTIFICATE_END, at);
    if (end < 0) break;
    certificates.push(new X509Certificate(text.slice(at, end + CERTIFICATE_END.length)));
  }
  return certificates;
}
