/**
 * The certificates that SNS signs with: fetched from SNS's own host, and believed only where a chain of issuers leads from
 * them to a root of this machine (RFC 5280 section 6: signatures, dates, authority to issue) and their name is SNS's.
 *
 * Promises: a certificate that could not be had is told apart from one that is not to be believed, so that a fault of the
 * network refuses nobody; only believed ones are remembered, so that a stranger's addresses push none of them out; what is
 * fetched is bounded in size, time and number at once.
 */
import { X509Certificate } from 'node:crypto';

const MOST_BYTES = 65_536;
const FETCH_MS = 10_000;
const MOST_AT_ONCE = 8;
const LONGEST_CHAIN = 5;
const MOST_CACHED = 20;
/** Fetched anew after that, so that a withdrawn one does not live for ever. */
const CACHE_MS = 24 * 3_600_000;
/** Issuers that a certificate itself names are fetched from Amazon's alone; what comes is believed for its signature. */
const ISSUER_HOST = '.amazontrust.com';
const ISSUER_MARK = 'CA Issuers - URI:';
const TOO_MANY_REQUESTS = 429;

export interface SnsCertificatesParts {
  readonly fetch: typeof fetch;
  /** PEM certificates that are trusted. */
  readonly roots: () => readonly string[];
  readonly now: () => number;
}

export type SnsCertificateResult =
  | { readonly kind: 'believed'; readonly certificate: X509Certificate }
  /** Not SNS's. `why` is one line. */
  | { readonly kind: 'refused'; readonly why: string }
  /** It could not be had now; what it signed may well be SNS's. */
  | { readonly kind: 'unavailable'; readonly why: string };

export interface SnsCertificates {
  /** The certificate at a URL that is known to be SNS's. Never rejects. */
  get(url: URL): Promise<SnsCertificateResult>;
}

type Download = { readonly kind: 'had'; readonly octets: Buffer } | Exclude<SnsCertificateResult, { kind: 'believed' }>;
interface Cached {
  readonly until: number;
  readonly certificate: X509Certificate;
}

export function createSnsCertificates({ fetch: get, roots, now }: SnsCertificatesParts): SnsCertificates {
  const cache = new Map<string, Cached>();
  const loading = new Map<string, Promise<SnsCertificateResult>>();
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

  async function load(url: URL): Promise<SnsCertificateResult> {
    const download = await downloaded(url);
    if (download.kind !== 'had') return download;
    const [leaf, ...given] = certificatesIn(download.octets);
    if (leaf === undefined) return refused('there is no certificate');
    // SNS's certificates are all in its common name; those of single regions may be in their own.
    const named = ['sns.amazonaws.com', url.hostname].some((name) => leaf.checkHost(name, NO_WILDCARDS) !== undefined);
    return named ? followed(leaf, given) : refused('the certificate is not in the name of SNS');
  }

  /** From issuer to issuer to a root, each of which must have signed the one before and be allowed to. */
  async function followed(leaf: X509Certificate, given: readonly X509Certificate[]): Promise<SnsCertificateResult> {
    let current = leaf;
    for (let length = 0; length < LONGEST_CHAIN; length += 1) {
      if (!inDate(current)) return OUT_OF_DATE;
      const child = current;
      const root = rootsBySubject()
        .get(child.issuer)
        ?.find((candidate) => issued(candidate, child));
      if (root !== undefined) return inDate(root) ? { kind: 'believed', certificate: leaf } : OUT_OF_DATE;
      const next = given.find((candidate) => issued(candidate, child)) ?? (await issuerNamedBy(child));
      if (!(next instanceof X509Certificate)) return next;
      if (!issued(next, child)) break;
      current = next;
    }
    return NO_CHAIN;
  }

  function inDate(certificate: X509Certificate): boolean {
    const at = now();
    return at >= certificate.validFromDate.getTime() && at <= certificate.validToDate.getTime();
  }

  /** RFC 5280 section 4.2.2.1: where a certificate says that its issuer's is to be had. */
  async function issuerNamedBy(certificate: X509Certificate): Promise<X509Certificate | Unbelieved> {
    const line = certificate.infoAccess?.split('\n').find((text) => text.startsWith(ISSUER_MARK));
    const url = URL.parse(line?.slice(ISSUER_MARK.length).trim() ?? '');
    // Plain HTTP is usual there, and harmless: the signature on the one below vouches for what comes.
    const known = url?.protocol === 'http:' || url?.protocol === 'https:';
    if (url === null || !known || url.port !== '' || !url.hostname.endsWith(ISSUER_HOST)) return NO_CHAIN;
    const download = await downloaded(url);
    if (download.kind !== 'had') return download;
    return certificatesIn(download.octets)[0] ?? NO_CHAIN;
  }

  async function downloaded(url: URL): Promise<Download> {
    try {
      const response = await get(url, { redirect: 'manual', signal: AbortSignal.timeout(FETCH_MS) });
      const { status, body } = response;
      if (status !== 200 || body === null) {
        await body?.cancel();
        const passing = status >= 500 || status === TOO_MANY_REQUESTS;
        const why = `${url.hostname} answered ${status} for the certificate`;
        return passing ? { kind: 'unavailable', why } : refused(why);
      }
      const pieces: Uint8Array[] = [];
      let length = 0;
      for await (const piece of body) {
        length += piece.length;
        if (length > MOST_BYTES) return refused('the certificate is too large');
        pieces.push(piece);
      }
      return { kind: 'had', octets: Buffer.concat(pieces) };
    } catch (error) {
      return { kind: 'unavailable', why: `the certificate could not be had from ${url.hostname} (${reason(error)})` };
    }
  }

  function remember(url: URL, certificate: X509Certificate): void {
    if (cache.size >= MOST_CACHED) cache.delete(cache.keys().next().value ?? '');
    cache.set(url.href, { until: Math.min(now() + CACHE_MS, certificate.validToDate.getTime()), certificate });
  }

  async function loaded(url: URL): Promise<SnsCertificateResult> {
    try {
      const found = await load(url);
      if (found.kind === 'believed') remember(url, found.certificate);
      return found;
    } catch (error) {
      return refused(`the certificate cannot be read (${reason(error)})`);
    } finally {
      loading.delete(url.href);
    }
  }

  return {
    async get(url) {
      const known = cache.get(url.href);
      if (known !== undefined && known.until > now()) return { kind: 'believed', certificate: known.certificate };
      cache.delete(url.href);
      const pending = loading.get(url.href);
      if (pending !== undefined) return pending;
      if (loading.size >= MOST_AT_ONCE) return { kind: 'unavailable', why: 'too many certificates are being fetched' };
      const certificate = loaded(url);
      loading.set(url.href, certificate);
      return certificate;
    },
  };
}

type Unbelieved = Exclude<SnsCertificateResult, { kind: 'believed' }>;

const NO_WILDCARDS = { wildcards: false };
const OUT_OF_DATE = refused('a certificate of its chain is out of date');
const NO_CHAIN = refused('no chain leads from the certificate to a root of this machine');

function refused(why: string): Unbelieved {
  return { kind: 'refused', why };
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
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
