/** Parses the names of sending domains to lower-case A-labels, by the rules of addresses. Pure. */
import { isIP } from 'node:net';
import { domainToUnicode } from 'node:url';
import { parseHost } from '../model/address.ts';
import { parsePublicSuffix } from '../model/public-suffix.ts';
import { findMixedScripts } from './mixed-scripts.ts';

export type DomainName =
  /** `warning`: the name mixes scripts. */
  | { readonly ok: true; readonly name: string; readonly warning: string | null }
  | { readonly ok: false; readonly fault: string };

/** RFC 1035 section 2.3.4. */
const MAX_NAME_LENGTH = 253;
const MAX_LABEL_LENGTH = 63;
const DKIM_PREFIX_LENGTH = 'prYYYYMMDDxxxxa._domainkey.'.length;
const REMEDY = 'give a domain name such as example.com';

/** A public suffix, and a name that is too long for its DKIM records, are faults. */
export function parseDomainName(text: string): DomainName {
  const enteredName = text.endsWith('.') ? text.slice(0, -1) : text;
  const fault = findShapeFault(enteredName);
  if (fault !== null) return { ok: false, fault };
  const name = parseHost(enteredName, 0);
  if (name === null) return { ok: false, fault: describeLabelFault(enteredName) };
  if (name.length > MAX_NAME_LENGTH - DKIM_PREFIX_LENGTH) {
    const fault = `${quoteShortenedText(text)} has ${name.length} characters; the maximum is ${MAX_NAME_LENGTH - DKIM_PREFIX_LENGTH}, because the names of its DKIM records are longer; give a shorter name`;
    return { ok: false, fault };
  }
  const parsedName = parsePublicSuffix(name);
  if (parsedName.domain === null) {
    const suffixText = parsedName.isPrivate
      ? 'a provider assigns names under it to its customers'
      : 'anyone can register names under it';
    return {
      ok: false,
      fault: `${quoteShortenedText(text)} is a public suffix: ${suffixText}; give a domain that you own`,
    };
  }
  return { ok: true, name, warning: createMixedScriptWarning(name) };
}

/** Null if its suffix is not in the Public Suffix List, as for `node.js` and IP addresses. */
export function findOrganizationalDomain(host: string): string | null {
  const parsedName = parsePublicSuffix(host);
  return parsedName.isIcann === true || parsedName.isPrivate === true ? parsedName.domain : null;
}

/** The text is no domain name, but for example an address or a URL. */
function findShapeFault(enteredName: string): string | null {
  const quotedName = quoteShortenedText(enteredName);
  if (enteredName === '') return `a domain name is missing; ${REMEDY}`;
  if (enteredName.includes('@')) return `${quotedName} is an address; give the domain alone, such as example.com`;
  if (enteredName.includes('/')) return `${quotedName} is a URL or a path; give the domain alone, such as example.com`;
  if (enteredName.length > MAX_NAME_LENGTH) {
    return `${quotedName} has ${enteredName.length} characters; a domain name has at most ${MAX_NAME_LENGTH}`;
  }
  if (isIP(enteredName.startsWith('[') && enteredName.endsWith(']') ? enteredName.slice(1, -1) : enteredName) !== 0) {
    return `${quotedName} is an IP address; give a domain name, such as example.com`;
  }
  if (enteredName.includes(':')) return `${quotedName} has a port; give the domain alone, such as example.com`;
  if (enteredName.startsWith('*.'))
    return `${quotedName} is a pattern; give the domain alone, and allow its subdomains`;
  return null;
}

/** Why `parseHost` refuses the text. */
function describeLabelFault(enteredName: string): string {
  const quotedName = quoteShortenedText(enteredName);
  const labels = enteredName.split('.');
  if (labels.some((label) => label === '')) return `${quotedName} has an empty label; ${REMEDY}`;
  if (labels.length === 1) return `${quotedName} is a single label; ${REMEDY}`;
  const longLabel = labels.find((label) => label.length > MAX_LABEL_LENGTH);
  if (longLabel !== undefined)
    return `${quotedName} has a label of ${longLabel.length} characters; a label has at most ${MAX_LABEL_LENGTH}`;
  if (enteredName.includes('_'))
    return `${quotedName} has an underscore, which is not allowed in a mail domain; ${REMEDY}`;
  return `${quotedName} is not a domain name: labels consist of letters, digits and inner hyphens, and the last label is not a number; ${REMEDY}`;
}

function createMixedScriptWarning(name: string): string | null {
  if (!name.includes('xn--')) return null;
  const unicodeName = domainToUnicode(name);
  for (const label of unicodeName.split('.')) {
    const scripts = findMixedScripts(label);
    if (scripts !== null) {
      return `${unicodeName} mixes ${scripts.join(' and ')} letters in one label, so it may look like another name`;
    }
  }
  return null;
}

function quoteShortenedText(text: string): string {
  const shortText = text.length > 80 ? `${text.slice(0, 79)}…` : text;
  return `"${shortText.replaceAll(/\p{C}/gu, '\uFFFD')}"`;
}
