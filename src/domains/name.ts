/** Parses the names of sending domains to lower-case A-labels, by the rules of addresses. Pure. */
import { isIP } from 'node:net';
import { domainToUnicode } from 'node:url';
import { getOrganizationalDomain, parseHost, parsePublicSuffix } from '../model/address.ts';
import type { ReturnPath } from '../model/domain.ts';
import type { SendingSetup } from './records.ts';

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

// UTS 39 section 5.2, level "highly restrictive". Similar labels in one script are not detected.

const SCRIPT_PATTERNS: readonly (readonly [string, RegExp])[] = [
  ['Latin', /\p{Script=Latin}/u],
  ['Greek', /\p{Script=Greek}/u],
  ['Cyrillic', /\p{Script=Cyrillic}/u],
  ['Armenian', /\p{Script=Armenian}/u],
  ['Georgian', /\p{Script=Georgian}/u],
  ['Hebrew', /\p{Script=Hebrew}/u],
  ['Arabic', /\p{Script=Arabic}/u],
  ['Devanagari', /\p{Script=Devanagari}/u],
  ['Thai', /\p{Script=Thai}/u],
  ['Cherokee', /\p{Script=Cherokee}/u],
  ['Han', /\p{Script=Han}/u],
  ['Hiragana', /\p{Script=Hiragana}/u],
  ['Katakana', /\p{Script=Katakana}/u],
  ['Bopomofo', /\p{Script=Bopomofo}/u],
  ['Hangul', /\p{Script=Hangul}/u],
];

/** Digits, hyphens and marks, which are allowed in any script. */
const NEUTRAL_CHARACTER = /\p{Script=Common}|\p{Script=Inherited}/u;
const OTHER_SCRIPT = 'other';

/** Latin with the scripts of Japanese, of Chinese or of Korean. */
const COMBINABLE_SCRIPTS: readonly (readonly string[])[] = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
];

export function findMixedScripts(label: string): readonly string[] | null {
  const scripts = new Set<string>();
  for (const character of label) {
    if (NEUTRAL_CHARACTER.test(character)) continue;
    scripts.add(SCRIPT_PATTERNS.find(([, pattern]) => pattern.test(character))?.[0] ?? OTHER_SCRIPT);
  }
  if (scripts.size < 2) return null;
  const foundScripts = [...scripts];
  return COMBINABLE_SCRIPTS.some((combination) => foundScripts.every((script) => combination.includes(script)))
    ? null
    : foundScripts;
}

// The return path of a sending domain: its name, and whether messages use it.

/** 254 octets of an address, less the local part of a bounce address and the `@` (message/return-path.ts). */
const MAX_RETURN_PATH_LENGTH = 254 - 48;

export type ParsedReturnPath =
  | { readonly ok: true; readonly name: string }
  | { readonly ok: false; readonly fault: string };

/**
 * SPF aligns only within the organizational domain (RFC 7489 section 3.1.2). The feedback listener refuses messages to
 * ordinary mailboxes, so the sending domain and the domains above it are refused.
 */
export function parseReturnPath(domain: string, text: string): ParsedReturnPath {
  const parsedName = parseDomainName(text);
  if (!parsedName.ok) return parsedName;
  const { name } = parsedName;
  const example = `bounces.${domain}`;
  if (name === domain || domain.endsWith(`.${name}`)) {
    const relationText = name === domain ? 'the sending domain' : 'a domain above the sending domain';
    const fault = `${name} is ${relationText}, and its MX record must name the mail server of its mailboxes; give a subdomain such as ${example}`;
    return { ok: false, fault };
  }
  const organizationalDomain = getOrganizationalDomain(domain);
  if (getOrganizationalDomain(name) !== organizationalDomain) {
    const fault = `${name} is outside of ${organizationalDomain}, so SPF would not align with the sender (DMARC); give a subdomain such as ${example}`;
    return { ok: false, fault };
  }
  if (name.length > MAX_RETURN_PATH_LENGTH) {
    const fault = `the name has ${name.length} characters; the maximum is ${MAX_RETURN_PATH_LENGTH}, because a bounce address is longer than this name and has at most 254 characters; give a shorter name`;
    return { ok: false, fault };
  }
  return { ok: true, name };
}

/**
 * `unverified`: its records have not been found. `replaced`: the provider replaces the envelope sender. `no-listener`:
 * POSTRIDER_RETURN_PATH_DOMAIN is not set.
 */
export type ReturnPathState = 'used' | 'unverified' | 'replaced' | 'no-listener';

export function describeReturnPath(
  { name, isVerified }: ReturnPath,
  { returnPath, replacedBy }: Pick<SendingSetup, 'returnPath' | 'replacedBy'>,
): { readonly state: ReturnPathState; readonly detail: string } {
  if (replacedBy !== null)
    return {
      state: 'replaced',
      detail: `the return path ${name} has no effect: ${replacedBy} replaces the envelope sender`,
    };
  if (returnPath === null)
    return {
      state: 'no-listener',
      detail: `the return path ${name} has no effect: POSTRIDER_RETURN_PATH_DOMAIN, the public name of the feedback listener, is not set`,
    };
  if (!isVerified)
    return {
      state: 'unverified',
      detail: `messages use ${returnPath} until the MX and SPF records of the return path ${name} are found`,
    };
  return { state: 'used', detail: `messages use the return path ${name}` };
}
