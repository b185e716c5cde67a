/**
 * The addresses of the hosts of webhooks, by c-ares: a lookup by the system occupies a thread of the pool that also
 * signs messages.
 */
import { lookup as lookUpInSystem } from 'node:dns/promises';
import { createResolver, type Lookup } from './dns.ts';

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
