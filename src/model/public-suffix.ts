/** Splits host names at their public suffixes (https://publicsuffix.org). Pure. */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** The list is loaded at the first call, because most starts do not need it. */
export function parsePublicSuffix(
  host: string,
  allowPrivateDomains: boolean = true,
): ReturnType<typeof import('tldts').parse> {
  const { parse } = require('tldts') as typeof import('tldts');
  return parse(host, { allowPrivateDomains });
}

/** RFC 7489 section 3.2: the public suffix, also of providers such as github.io, and one more label. */
export function getOrganizationalDomain(name: string): string {
  return parsePublicSuffix(name).domain ?? name;
}

/** The domain that was bought at a registry. It contains the names that a provider gives away below it. */
export function getRegisteredDomain(name: string): string {
  return parsePublicSuffix(name, false).domain ?? name;
}
