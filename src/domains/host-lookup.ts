/**
 * Looks up the IP addresses of the hosts of webhooks. DNS is queried with c-ares, because a lookup by the operating
 * system occupies a thread of the pool that also signs messages and looks up the relay.
 */
import { lookup as lookUpInSystem } from 'node:dns/promises';
import { createResolver, type Lookup } from './dns.ts';

/**
 * The limits of a lookup in DNS. The queries for the IPv4 and the IPv6 addresses end before the attempt to send the
 * webhook times out.
 */
const LOOKUP_LIMITS = { timeoutMs: 2_000, maxAttempts: 2 } as const;

/**
 * Creates the lookup. Names with a dot are looked up in DNS, at the server of POSTRIDER_DNS or at the servers of the
 * system. Other names, and names below `localhost`, are looked up by the system, which also reads its hosts file. If
 * `usesHostsFile` is true, the system also looks up each name for which DNS returns no address. At most one lookup by
 * the system runs at a time. A lookup never rejects.
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
