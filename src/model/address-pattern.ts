/**
 * Patterns of addresses: `name@example.com` is that address, `@example.com` that domain alone, `@*.example.com` all its
 * subdomains. A parsed pattern is its canonical text, so that a set or an index finds the patterns of an address.
 */
import { parseAddress, parseHost, toCanonicalAddress } from './address.ts';

export type ParsedPattern =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly fault: string };

export function parseAddressPattern(text: string): ParsedPattern {
  const pattern = toCanonicalPattern(text.trim());
  if (pattern !== null) return { ok: true, value: pattern };
  const shownText = text.slice(0, 80).replaceAll(/\p{C}/gu, '\uFFFD');
  const fault = `"${shownText}" is neither an address such as name@example.com, nor a domain such as @example.com, nor its subdomains such as @*.example.com`;
  return { ok: false, fault };
}

function toCanonicalPattern(text: string): string | null {
  if (!text.startsWith('@')) {
    // An address, but its author means a domain.
    const address = text.startsWith('*@') ? null : parseAddress(text);
    return address === null ? null : toCanonicalAddress(address);
  }
  const prefix = text.startsWith('@*.') ? '@*.' : '@';
  const domain = parseHost(text, prefix.length);
  return domain === null ? null : prefix + domain;
}

/** The patterns that match a canonical address, the most specific first. */
export function listMatchingPatterns(address: string): readonly string[] {
  const domainStart = address.lastIndexOf('@') + 1;
  const patterns = [address, address.slice(domainStart - 1)];
  for (let dot = address.indexOf('.', domainStart); dot >= 0; ) {
    const nextDot = address.indexOf('.', dot + 1);
    // A pattern has a domain of two labels or more.
    if (nextDot >= 0) patterns.push(`@*${address.slice(dot)}`);
    dot = nextDot;
  }
  return patterns;
}

/** `address` is canonical. */
export function matchesPattern(pattern: string, address: string): boolean {
  return listMatchingPatterns(address).includes(pattern);
}
