/** Splits host names at their public suffixes (https://publicsuffix.org). Pure. */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Splits a host name at its public suffix. The list is loaded at the first call, because most starts do not need it. */
export function parsePublicSuffix(
  host: string,
  allowPrivateDomains: boolean = true,
): ReturnType<typeof import('tldts').parse> {
  const { parse } = require('tldts') as typeof import('tldts');
  return parse(host, { allowPrivateDomains });
}

/**
 * Returns the organizational domain (RFC 7489 section 3.2) of a name in A-labels: the public suffix and one more label.
 * Suffixes of providers, such as github.io, are public suffixes too. If the name has no organizational domain, returns
 * the name.
 */
export function getOrganizationalDomain(name: string): string {
  return parsePublicSuffix(name).domain ?? name;
}

/** Returns the domain that was bought at a registry. It also contains the names that a provider gives away below it. */
export function getRegisteredDomain(name: string): string {
  return parsePublicSuffix(name, false).domain ?? name;
}
