/**
 * Looks up DNS records with c-ares. Only NXDOMAIN and an empty answer are `none`; a timeout, SERVFAIL, a refusal or a
 * network error is `failed`. Lookups never reject.
 */
import { lookup as lookUpInSystem, Resolver as NodeResolver } from 'node:dns/promises';
import { isIP } from 'node:net';

export type Lookup<T = string> =
  | { readonly kind: 'found'; readonly values: readonly T[] }
  | { readonly kind: 'none' }
  /** `reason`: a short text, such as `timeout`. */
  | { readonly kind: 'failed'; readonly reason: string };

export interface MailExchange {
  readonly priority: number;
  /** Lower case, without the trailing dot. Empty for a null MX (RFC 7505). */
  readonly exchange: string;
}

/** The names in arguments and results have no trailing dot. */
export interface Resolver {
  /** The strings of a record are concatenated (RFC 7208 section 3.3, RFC 6376 section 3.6.2.2). */
  lookUpTxt(name: string): Promise<Lookup>;
  lookUpMx(name: string): Promise<Lookup<MailExchange>>;
  lookUpCname(name: string): Promise<Lookup>;
  lookUpAddresses(name: string): Promise<Lookup>;
  /** PTR. */
  lookUpHostNames(address: string): Promise<Lookup>;
}

export interface ResolverLimits {
  /** Of the first attempt. Each further attempt has twice as much, but at most 4 s. */
  readonly timeoutMs: number;
  /** For each server. */
  readonly maxAttempts: number;
}

const DEFAULT_LIMITS: ResolverLimits = { timeoutMs: 2_000, maxAttempts: 3 };
const MAX_TIMEOUT_MS = 4_000;
const DNS_PORT = 53;

const FAILURE_TEXTS: Readonly<Record<string, string>> = {
  ETIMEOUT: 'timeout',
  ESERVFAIL: 'SERVFAIL',
  EREFUSED: 'refused',
  ECONNREFUSED: 'no DNS server answers; set POSTRIDER_DNS to one that answers',
  EBADNAME: 'not a valid DNS name',
  EBADRESP: 'malformed DNS answer',
  EFORMERR: 'malformed DNS answer',
  ENOTIMP: 'the DNS server does not support this query',
};

/** Null: the servers of the system. Throws if the host of the server is not an IP address. */
export function createResolver(
  server: { readonly host: string; readonly port: number } | null,
  limits: Partial<ResolverLimits> = {},
): Resolver {
  const { timeoutMs, maxAttempts } = { ...DEFAULT_LIMITS, ...limits };
  const nodeResolver = new NodeResolver({
    timeout: timeoutMs,
    tries: maxAttempts,
    maxTimeout: Math.max(timeoutMs, MAX_TIMEOUT_MS),
  });
  if (server !== null) nodeResolver.setServers([formatServer(server.host, server.port)]);
  return {
    lookUpTxt: (name) => lookUp(async () => (await nodeResolver.resolveTxt(name)).map((strings) => strings.join(''))),
    lookUpMx: (name) =>
      lookUp(async () =>
        (await nodeResolver.resolveMx(name)).map(({ priority, exchange }) => ({
          priority,
          exchange: normalizeName(exchange),
        })),
      ),
    lookUpCname: (name) => lookUp(async () => (await nodeResolver.resolveCname(name)).map(normalizeName)),
    async lookUpAddresses(name) {
      return combineFamilies(
        await Promise.all([lookUp(() => nodeResolver.resolve4(name)), lookUp(() => nodeResolver.resolve6(name))]),
      );
    },
    // `nodeResolver.reverse` would read the hosts file first, but the checks need the public DNS records.
    lookUpHostNames: (address) =>
      lookUp(async () => (await nodeResolver.resolvePtr(toReverseName(address))).map(normalizeName)),
  };
}

/** RFC 1035 section 3.5, RFC 3596 section 2.5. */
function toReverseName(address: string): string {
  const ipVersion = isIP(address);
  if (ipVersion === 0) throw new Error(`${address} is not an IP address`);
  if (ipVersion === 4) return `${address.split('.').reverse().join('.')}.in-addr.arpa`;
  // The URL parser normalizes every notation to groups of hexadecimal digits.
  const [leadingText = '', trailingText] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const splitGroups = (text = '') => (text === '' ? [] : text.split(':'));
  const [leadingGroups, trailingGroups] = [splitGroups(leadingText), splitGroups(trailingText)];
  const groups = [
    ...leadingGroups,
    ...new Array<string>(8 - leadingGroups.length - trailingGroups.length).fill('0'),
    ...trailingGroups,
  ];
  const digits = groups.map((group) => group.padStart(4, '0')).join('');
  return `${[...digits].reverse().join('.')}.ip6.arpa`;
}

function formatServer(host: string, port: number): string {
  const address = host === 'localhost' ? '127.0.0.1' : host.startsWith('[') ? host.slice(1, -1) : host;
  const version = isIP(address);
  if (version === 0) {
    throw new Error(
      `POSTRIDER_DNS: "${host}" is not an IP address; set the address of the resolver, such as 127.0.0.1:${DNS_PORT}`,
    );
  }
  return version === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

async function lookUp<T>(query: () => Promise<readonly T[]>): Promise<Lookup<T>> {
  try {
    const values = await query();
    return values.length === 0 ? { kind: 'none' } : { kind: 'found', values };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    if (code === 'ENOTFOUND' || code === 'ENODATA') return { kind: 'none' };
    return { kind: 'failed', reason: FAILURE_TEXTS[code] ?? code };
  }
}

/** `none` only if both are. */
function combineFamilies([ipv4, ipv6]: readonly [Lookup, Lookup]): Lookup {
  const values = [ipv4, ipv6].flatMap((lookup) => (lookup.kind === 'found' ? lookup.values : []));
  if (values.length > 0) return { kind: 'found', values };
  return ipv4.kind === 'failed' ? ipv4 : ipv6;
}

function normalizeName(name: string): string {
  const lowerCaseName = name.toLowerCase();
  return lowerCaseName.endsWith('.') ? lowerCaseName.slice(0, -1) : lowerCaseName;
}

// A lookup by the system occupies a thread of the pool that also signs messages, so c-ares is used.

/** The queries for both families end before the attempt to send the webhook times out. */
const LOOKUP_LIMITS = { timeoutMs: 2_000, maxAttempts: 2 } as const;

/**
 * Names without a dot and names below `localhost` are looked up by the system, which reads its hosts file; with
 * `usesHostsFile` also names without an address in DNS. The system looks up one name at a time. Never rejects.
 */
export function createHostLookup(
  server: { readonly host: string; readonly port: number } | null,
  usesHostsFile: boolean,
): (host: string) => Promise<Lookup> {
  const resolver = createResolver(server, LOOKUP_LIMITS);
  let lastSystemLookup: Promise<unknown> = Promise.resolve();

  async function runSystemLookup(host: string): Promise<Lookup> {
    try {
      const addresses = await lookUpInSystem(host, { all: true });
      return addresses.length === 0
        ? { kind: 'none' }
        : { kind: 'found', values: addresses.map(({ address }) => address) };
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
      return code === 'ENOTFOUND' ? { kind: 'none' } : { kind: 'failed', reason: code };
    }
  }

  function queueSystemLookup(host: string): Promise<Lookup> {
    const result = lastSystemLookup.then(() => runSystemLookup(host));
    lastSystemLookup = result;
    return result;
  }

  return async (host) => {
    const name = host.endsWith('.') ? host.slice(0, -1) : host;
    if (!name.includes('.') || name.endsWith('.localhost')) return queueSystemLookup(name);
    const result = await resolver.lookUpAddresses(name);
    return result.kind === 'found' || !usesHostsFile ? result : queueSystemLookup(name);
  };
}
