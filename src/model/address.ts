/**
 * Parses mailboxes (RFC 5321 section 4.1.2 without address literals, RFC 6531 section 3.3), host names and peers, in
 * one pass over at most 254 characters. Header and envelope are written from the parsed address, so they name the same
 * mailbox.
 */
import { createRequire } from 'node:module';

export interface Address {
  /** The local part as submitted, including quotes. */
  readonly localPart: string;
  /** The domain in lower-case A-labels. */
  readonly domain: string;
  /** False if the local part requires SMTPUTF8 (RFC 6531). */
  readonly isAscii: boolean;
}

const require = createRequire(import.meta.url);

/** RFC 5321 section 4.5.3.1.1. */
const MAX_LOCAL_OCTETS = 64;
/** A path has at most 256 octets with its angle brackets (RFC 5321 section 4.5.3.1.3). */
const MAX_ADDRESS_OCTETS = 254;

const QUOTE = 0x22;
const DOT = 0x2e;
const AT = 0x40;
const BACKSLASH = 0x5c;

/** The characters of `atext` (RFC 5322 section 3.2.3). */
const ATEXT = new Uint8Array(128);
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-/=?^_`{|}~") {
  ATEXT[character.charCodeAt(0)] = 1;
}

/** Invisible in an internationalized local part, or making one address resemble another. */
const UNSAFE_CHARACTERS = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]|(?! )\p{Zs}/u;

export function parseAddress(text: string): Address | null {
  const length = text.length;
  // The maximum applies to the text as written, even if UTS 46 would make it shorter.
  if (length > MAX_ADDRESS_OCTETS) return null;
  const atIndex = text.charCodeAt(0) === QUOTE ? findQuotedStringEnd(text) : findDotAtomEnd(text);
  if (atIndex <= 0 || atIndex > MAX_LOCAL_OCTETS || atIndex + 1 >= length) return null;
  const localPart = text.slice(0, atIndex);
  const octets = Buffer.byteLength(localPart, 'utf8');
  const isAscii = octets === atIndex;
  if (!isAscii && (octets > MAX_LOCAL_OCTETS || UNSAFE_CHARACTERS.test(localPart))) return null;
  const domain = parseHost(text, atIndex + 1);
  if (domain === null || octets + 1 + domain.length > MAX_ADDRESS_OCTETS) return null;
  return { localPart, domain, isAscii };
}

/** Also of a text that is no valid address. */
export function getDomain(address: string): string {
  return parseAddress(address)?.domain ?? address.slice(address.lastIndexOf('@') + 1).toLowerCase();
}

/** Mail programs read one of these in a quoted local part of `From` as another address or as an encoded word. */
const MISREAD_IN_SENDER = /[@<>,]|=\?/;

export function parseSenderAddress(text: string): Address | null {
  const address = parseAddress(text);
  const isMisread = address?.localPart.startsWith('"') === true && MISREAD_IN_SENDER.test(address.localPart);
  return isMisread ? null : address;
}

/** Returns the index of the `@` after a Dot-string (RFC 5321 section 4.1.2), or -1. */
function findDotAtomEnd(text: string): number {
  let isAfterDot = true;
  for (let i = 0; i < text.length; i++) {
    const codeUnit = text.charCodeAt(i);
    if (codeUnit >= 0x80 || ATEXT[codeUnit] === 1) {
      isAfterDot = false;
    } else {
      if (isAfterDot) return -1;
      if (codeUnit === AT) return i;
      if (codeUnit !== DOT) return -1;
      isAfterDot = true;
    }
  }
  return -1;
}

/** Returns the index of the `@` after a Quoted-string (RFC 5321 section 4.1.2: no controls, no tabs), or -1. */
function findQuotedStringEnd(text: string): number {
  for (let i = 1; i < text.length; i++) {
    const codeUnit = text.charCodeAt(i);
    if (codeUnit === QUOTE) return text.charCodeAt(i + 1) === AT ? i + 1 : -1;
    if (codeUnit < 0x20 || codeUnit === 0x7f) return -1;
    if (codeUnit === BACKSLASH) {
      // A quoted-pairSMTP is a backslash and one printable ASCII character.
      const escapedCodeUnit = text.charCodeAt(++i);
      if (!(escapedCodeUnit >= 0x20 && escapedCodeUnit < 0x7f)) return -1;
    }
  }
  return -1;
}

export function formatAddrSpec(address: Address): string {
  return `${address.localPart}@${address.domain}`;
}

/** The key of the suppression list: forms that almost all servers treat as one mailbox are equal. */
export function toCanonicalAddress(address: Address): string {
  let localPart = address.localPart;
  if (localPart.charCodeAt(0) === QUOTE) localPart = simplifyQuoting(localPart);
  // NFC and lower case can change each other’s result.
  localPart = address.isAscii ? localPart.toLowerCase() : localPart.normalize('NFC').toLowerCase().normalize('NFC');
  return `${localPart}@${address.domain}`;
}

/** RFC 5321 section 4.1.2: `"Joe\ Q"` and `"Joe Q"` are the same local part. */
function simplifyQuoting(quotedLocalPart: string): string {
  let content = '';
  let escapedContent = '';
  for (let i = 1; i < quotedLocalPart.length - 1; i++) {
    if (quotedLocalPart.charCodeAt(i) === BACKSLASH) i++;
    const character = quotedLocalPart.charAt(i);
    content += character;
    escapedContent += character === '"' || character === '\\' ? `\\${character}` : character;
  }
  return findDotAtomEnd(`${content}@`) === content.length ? content : `"${escapedContent}"`;
}

/** RFC 1035 section 2.3.4. */
const MAX_LABEL_OCTETS = 63;
const MAX_DOMAIN_OCTETS = 253;

const HYPHEN = 0x2d;

/** 1 digit, 2 lower-case letter, 3 upper-case letter, 4 hyphen, 0 not allowed. */
const HOST_CHARACTER_CLASS = new Uint8Array(128);
for (let codeUnit = 0x30; codeUnit <= 0x39; codeUnit++) HOST_CHARACTER_CLASS[codeUnit] = 1;
for (let codeUnit = 0x61; codeUnit <= 0x7a; codeUnit++) HOST_CHARACTER_CLASS[codeUnit] = 2;
for (let codeUnit = 0x41; codeUnit <= 0x5a; codeUnit++) HOST_CHARACTER_CLASS[codeUnit] = 3;
HOST_CHARACTER_CLASS[HYPHEN] = 4;

/**
 * Returns the domain from `start` in lower-case A-labels, or null. It has at least two labels of letters, digits and
 * inner hyphens (RFC 1123 section 2.1), and the last is not all digits. A name with A-labels or outside ASCII must be
 * valid in UTS 46 (non-transitional).
 */
export function parseHost(text: string, start: number): string | null {
  const end = text.length;
  let hasUpperCase = false;
  let hasUnicode = false;
  let labelCount = 1;
  let labelStart = start;
  let isDigitsOnly = true;
  let hasAceLabel = false;
  for (let i = start; i < end; i++) {
    const codeUnit = text.charCodeAt(i);
    if (codeUnit === DOT) {
      if (!hasUnicode && !isValidLabel(text, labelStart, i)) return null;
      if (hasAcePrefix(text, labelStart, i)) hasAceLabel = true;
      labelCount++;
      labelStart = i + 1;
      isDigitsOnly = true;
      continue;
    }
    if (codeUnit >= 0x80) {
      hasUnicode = true;
      continue;
    }
    const characterClass = HOST_CHARACTER_CLASS[codeUnit];
    if (characterClass === 0) return null;
    if (characterClass !== 1) isDigitsOnly = false;
    if (characterClass === 3) hasUpperCase = true;
  }
  if (hasUnicode) return toAsciiDomain(text.slice(start));
  if (labelCount < 2 || isDigitsOnly || end - start > MAX_DOMAIN_OCTETS || !isValidLabel(text, labelStart, end))
    return null;
  if (hasAceLabel || hasAcePrefix(text, labelStart, end)) return toAsciiDomain(text.slice(start));
  const domain = text.slice(start);
  return hasUpperCase ? domain.toLowerCase() : domain;
}

function isValidLabel(text: string, start: number, end: number): boolean {
  const length = end - start;
  return (
    length > 0 && length <= MAX_LABEL_OCTETS && text.charCodeAt(start) !== HYPHEN && text.charCodeAt(end - 1) !== HYPHEN
  );
}

/** Returns true if the label begins with `xn--`, in upper or lower case (RFC 5890 section 2.3.2.1). */
function hasAcePrefix(text: string, start: number, end: number): boolean {
  return (
    end - start >= 4 &&
    text.charCodeAt(start + 2) === HYPHEN &&
    text.charCodeAt(start + 3) === HYPHEN &&
    (text.charCodeAt(start) | 0x20) === 0x78 &&
    (text.charCodeAt(start + 1) | 0x20) === 0x6e
  );
}

/** UTS 46 section 4.2. The mapping can add ASCII characters and dots, so the host rules are checked again. */
function toAsciiDomain(domain: string): string | null {
  // The tables are loaded for the first name that needs them, because loading them delays the start of each thread.
  const { toASCII } = require('tr46') as { toASCII(name: string, options: object): string | null };
  const asciiDomain = toASCII(domain, {
    checkBidi: true,
    checkHyphens: true,
    checkJoiners: true,
    useSTD3ASCIIRules: true,
    verifyDNSLength: true,
    transitionalProcessing: false,
    ignoreInvalidPunycode: false,
  });
  return asciiDomain !== null && isHost(asciiDomain) ? asciiDomain : null;
}

function isHost(domain: string): boolean {
  if (domain.length > MAX_DOMAIN_OCTETS) return false;
  let labelCount = 1;
  let labelStart = 0;
  let isDigitsOnly = true;
  for (let i = 0; i < domain.length; i++) {
    const codeUnit = domain.charCodeAt(i);
    if (codeUnit === DOT) {
      if (!isValidLabel(domain, labelStart, i)) return false;
      labelCount++;
      labelStart = i + 1;
      isDigitsOnly = true;
    } else {
      const characterClass = codeUnit < 0x80 ? HOST_CHARACTER_CLASS[codeUnit] : 0;
      if (characterClass === 0) return false;
      if (characterClass !== 1) isDigitsOnly = false;
    }
  }
  return labelCount >= 2 && !isDigitsOnly && isValidLabel(domain, labelStart, domain.length);
}

// Limits per peer apply to an IPv6 /64 network, because one subscriber usually controls such a network (RFC 6177).

/** An IPv4-mapped IPv6 address counts as its IPv4 address. */
export function toPeerNetwork(address: string): string {
  const lowerCaseAddress = address.toLowerCase();
  if (lowerCaseAddress.startsWith('::ffff:') && lowerCaseAddress.includes('.'))
    return lowerCaseAddress.slice('::ffff:'.length);
  if (!lowerCaseAddress.includes(':')) return lowerCaseAddress;
  const [head = '', tail] = lowerCaseAddress.split('::');
  const groupsBefore = head === '' ? [] : head.split(':');
  const groupsAfter = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeroCount = tail === undefined ? 0 : Math.max(0, 8 - groupsBefore.length - groupsAfter.length);
  const groups = [...groupsBefore, ...Array.from({ length: zeroCount }, () => '0'), ...groupsAfter];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

// Splits host names at their public suffixes (https://publicsuffix.org).

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

// Evidence that can lock an account. An outsider owns any number of addresses of one domain, and gets any number of
// names below the domain of a provider of names such as duckdns.org. So a registered domain is one source of evidence,
// except at mailbox providers.

export type EvidenceKind = 'bounce' | 'complaint';

/** Everyone can have an address at these domains. */
const SHARED_DOMAINS: ReadonlySet<string> = new Set([
  ...['gmail.com', 'googlemail.com'],
  ...['outlook.com', 'outlook.de', 'outlook.fr', 'hotmail.com', 'hotmail.co.uk', 'hotmail.de', 'hotmail.es'],
  ...['hotmail.fr', 'hotmail.it', 'live.com', 'live.co.uk', 'live.de', 'live.fr', 'live.nl', 'msn.com'],
  ...['yahoo.com', 'yahoo.co.jp', 'yahoo.co.uk', 'yahoo.co.in', 'yahoo.com.br', 'yahoo.de', 'yahoo.es', 'yahoo.fr'],
  ...['yahoo.it', 'ymail.com', 'rocketmail.com', 'aol.com', 'icloud.com', 'me.com', 'mac.com'],
  ...['gmx.de', 'gmx.net', 'gmx.at', 'gmx.ch', 'gmx.com', 'web.de', 't-online.de', 'freenet.de'],
  ...['proton.me', 'protonmail.com', 'fastmail.com', 'zoho.com', 'mail.com'],
  ...['orange.fr', 'wanadoo.fr', 'free.fr', 'laposte.net', 'sfr.fr', 'libero.it', 'virgilio.it', 'tiscali.it'],
  ...['comcast.net', 'verizon.net', 'att.net', 'sbcglobal.net', 'cox.net', 'btinternet.com', 'sky.com'],
  ...['mail.ru', 'yandex.ru', 'yandex.com', 'rambler.ru', 'seznam.cz', 'wp.pl', 'onet.pl', 'o2.pl', 'interia.pl'],
  ...['qq.com', '163.com', '126.com', 'sina.com', 'naver.com', 'daum.net', 'hanmail.net'],
  ...['docomo.ne.jp', 'ezweb.ne.jp', 'softbank.ne.jp', 'uol.com.br', 'bol.com.br', 'terra.com.br'],
]);

/** Without the detail after `+` (RFC 5233): the owner of a mailbox can use any detail. */
export function toComplainant(recipient: string): string {
  const atIndex = recipient.lastIndexOf('@');
  const plusIndex = recipient.indexOf('+');
  if (recipient.startsWith('"') || plusIndex < 1 || plusIndex > atIndex) return recipient;
  return recipient.slice(0, plusIndex) + recipient.slice(atIndex);
}

/** The registered domain, or the mailbox at a large mailbox provider. */
export function toEvidenceSource(recipient: string): string {
  const domain = recipient.slice(recipient.lastIndexOf('@') + 1);
  return SHARED_DOMAINS.has(domain) ? toComplainant(recipient) : getRegisteredDomain(domain);
}
