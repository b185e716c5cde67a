/**
 * Checks the typed name of a sending domain and converts it to lower-case A-labels, by the same rules as the domains of
 * addresses. The functions are pure. Every error is one line with the problem and the remedy.
 */
import { isIP } from 'node:net';
import { domainToUnicode } from 'node:url';
import { parse } from 'tldts';
import { parseHost } from '../model/address.ts';
import { findMixedScripts } from './mixed-scripts.ts';

export type DomainName =
  /** `warning` is one line if the name mixes scripts, else null. */
  | { readonly ok: true; readonly name: string; readonly warning: string | null }
  | { readonly ok: false; readonly fault: string };

/** RFC 1035 section 2.3.4. */
const MAX_NAME_LENGTH = 253;
const MAX_LABEL_LENGTH = 63;
/** Length of the part of a DKIM record name before the domain: a selector (keys.ts) and `._domainkey.`. */
const DKIM_PREFIX_LENGTH = 'prYYYYMMDDxxxxa._domainkey.'.length;
const EXAMPLE = 'give one such as example.com';

export function parseDomainName(text: string): DomainName {
  const typed = text.endsWith('.') ? text.slice(0, -1) : text;
  const fault = shapeFault(typed);
  if (fault !== null) return { ok: false, fault };
  const name = parseHost(typed, 0);
  if (name === null) return { ok: false, fault: labelFault(typed) };
  if (name.length > MAX_NAME_LENGTH - DKIM_PREFIX_LENGTH) {
    const fault = `${quote(text)} has ${name.length} characters; the maximum is ${MAX_NAME_LENGTH - DKIM_PREFIX_LENGTH}, because the names of its DKIM records are longer; give a shorter one`;
    return { ok: false, fault };
  }
  const suffix = parse(name, { allowPrivateDomains: true });
  if (suffix.domain === null) {
    const owner = suffix.isPrivate
      ? 'a provider assigns names under it to its customers'
      : 'anyone can register names under it';
    return { ok: false, fault: `${quote(text)} is a public suffix: ${owner}; give a domain that you own` };
  }
  return { ok: true, name, warning: mixedScriptWarning(name) };
}

/**
 * Returns the organisational domain (RFC 7489 section 3.2) of a name in A-labels: the public suffix and one label more.
 * Suffixes of providers, such as github.io, are public suffixes too. Returns the name itself if it has no
 * organisational domain.
 */
export function organisationalDomain(name: string): string {
  return parse(name, { allowPrivateDomains: true }).domain ?? name;
}

/** Returns an error if the text has another form, such as an address or a URL. Otherwise returns null. */
function shapeFault(typed: string): string | null {
  const shown = quote(typed);
  if (typed === '') return `a domain name is missing; ${EXAMPLE}`;
  if (typed.includes('@')) return `${shown} is an address; give the domain alone, such as example.com`;
  if (typed.includes('/')) return `${shown} is a URL or a path; give the domain alone, such as example.com`;
  if (typed.length > MAX_NAME_LENGTH) {
    return `${shown} has ${typed.length} characters; a domain name has at most ${MAX_NAME_LENGTH}`;
  }
  if (isIP(typed.startsWith('[') && typed.endsWith(']') ? typed.slice(1, -1) : typed) !== 0) {
    return `${shown} is an IP address; give a domain name, such as example.com`;
  }
  if (typed.includes(':')) return `${shown} has a port; give the domain alone, such as example.com`;
  if (typed.startsWith('*.')) return `${shown} is a pattern; give the domain alone, and allow its subdomains`;
  return null;
}

/** Returns the reason for which `parseHost` refuses the text. */
function labelFault(typed: string): string {
  const shown = quote(typed);
  const labels = typed.split('.');
  if (labels.some((label) => label === '')) return `${shown} has an empty label; ${EXAMPLE}`;
  if (labels.length === 1) return `${shown} is a single label; ${EXAMPLE}`;
  const longLabel = labels.find((label) => label.length > MAX_LABEL_LENGTH);
  if (longLabel !== undefined)
    return `${shown} has a label of ${longLabel.length} characters; a label has at most ${MAX_LABEL_LENGTH}`;
  if (typed.includes('_')) return `${shown} has an underscore, which is not allowed in a mail domain; ${EXAMPLE}`;
  return `${shown} is not a domain name: labels consist of letters, digits and inner hyphens, and the last label is not a number; ${EXAMPLE}`;
}

function mixedScriptWarning(name: string): string | null {
  if (!name.includes('xn--')) return null;
  const shown = domainToUnicode(name);
  for (const label of shown.split('.')) {
    const scripts = findMixedScripts(label);
    if (scripts !== null) {
      return `${shown} mixes ${scripts.join(' and ')} letters in one label, so it may look like another name`;
    }
  }
  return null;
}

/** Returns the text in quotes on one line: at most 80 characters, with control characters replaced. */
function quote(text: string): string {
  const short = text.length > 80 ? `${text.slice(0, 79)}…` : text;
  return `"${short.replaceAll(/\p{C}/gu, '\uFFFD')}"`;
}
