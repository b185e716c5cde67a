/**
 * Parses addresses: mailboxes, the host names after their `@`, and the addresses of peers.
 *
 * A mailbox is one addr-spec (RFC 5321 section 4.1.2 Mailbox without address literals, RFC 6531 section 3.3). It has no
 * display name, comment, folding or single-label domain. Header and envelope are both written from this object, so they
 * always name the same mailbox.
 *
 * Guarantees: the parser reads at most 254 characters in one pass and never throws. An accepted address has no control
 * character, no white space except U+0020 inside quotes, and no bidi or other format control.
 */
import { toASCII } from 'tr46';

export interface Address {
  /** The local part as submitted, including quotes. */
  readonly localPart: string;
  /** Lower-case A-labels. */
  readonly domain: string;
  /** False if the local part requires SMTPUTF8 (RFC 6531). */
  readonly isAscii: boolean;
}

/** RFC 5321 section 4.5.3.1.1: octets of a local part. */
const MAX_LOCAL_OCTETS = 64;
/** RFC 5321 section 4.5.3.1.3: a path has at most 256 octets, including two angle brackets. */
const MAX_ADDRESS_OCTETS = 254;

const QUOTE = 0x22;
const DOT = 0x2e;
const AT = 0x40;
const BACKSLASH = 0x5c;

/** atext of RFC 5322 section 3.2.3. */
const ATEXT = new Uint8Array(128);
for (const c of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-/=?^_`{|}~") {
  ATEXT[c.charCodeAt(0)] = 1;
}

/**
 * Characters that are not allowed in an internationalised local part: controls, format controls (bidi overrides,
 * zero-width joiners, tags), separators, lone surrogates, noncharacters. These characters are invisible, or they make
 * one address resemble another.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]|(?! )\p{Zs}/u;

/** Parses an address. Returns null if `text` is not an address. */
export function parseAddress(text: string): Address | null {
  const length = text.length;
  // The conversion to A-labels and UTF-8 shortens an address only if UTS 46 removes invisible characters.
  if (length > MAX_ADDRESS_OCTETS) return null;
  const at = text.charCodeAt(0) === QUOTE ? endOfQuotedString(text) : endOfDotAtom(text);
  if (at <= 0 || at > MAX_LOCAL_OCTETS || at + 1 >= length) return null;
  const localPart = text.slice(0, at);
  const octets = Buffer.byteLength(localPart, 'utf8');
  const isAscii = octets === at;
  if (!isAscii && (octets > MAX_LOCAL_OCTETS || UNSAFE.test(localPart))) return null;
  const domain = parseHost(text, at + 1);
  if (domain === null || octets + 1 + domain.length > MAX_ADDRESS_OCTETS) return null;
  return { localPart, domain, isAscii };
}

/** Returns the index of the `@` after a Dot-string (RFC 5321 section 4.1.2), or -1. */
function endOfDotAtom(text: string): number {
  let afterDot = true;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c >= 0x80 || ATEXT[c] === 1) {
      afterDot = false;
    } else {
      if (afterDot) return -1;
      if (c === AT) return i;
      if (c !== DOT) return -1;
      afterDot = true;
    }
  }
  return -1;
}

/** Returns the index of the `@` after a Quoted-string (RFC 5321 section 4.1.2: no controls, no tabs), or -1. */
function endOfQuotedString(text: string): number {
  for (let i = 1; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) return text.charCodeAt(i + 1) === AT ? i + 1 : -1;
    if (c < 0x20 || c === 0x7f) return -1;
    if (c === BACKSLASH) {
      // quoted-pairSMTP: a backslash and one printable ASCII character.
      const escaped = text.charCodeAt(++i);
      if (!(escaped >= 0x20 && escaped < 0x7f)) return -1;
    }
  }
  return -1;
}

/** Returns the addr-spec for envelope and header: the local part as submitted, the domain in A-labels. */
export function formatAddrSpec(address: Address): string {
  return `${address.localPart}@${address.domain}`;
}

/**
 * Returns the canonical form of an address, which is the key of the suppression list. Forms that almost all servers treat as one
 * mailbox (case, Unicode composition, unnecessary quotes) have the same key, so another form does not bypass a suppression.
 */
export function canonicalAddress(address: Address): string {
  let local = address.localPart;
  if (local.charCodeAt(0) === QUOTE) local = simplifyQuoting(local);
  // Each conversion can change the result of the other, so NFC is applied before and after the conversion to lower
  // case.
  local = address.isAscii ? local.toLowerCase() : local.normalize('NFC').toLowerCase().normalize('NFC');
  return `${local}@${address.domain}`;
}

/** Removes unnecessary quotes and escapes (RFC 5321 section 4.1.2): `"Joe\ Q"` and `"Joe Q"` are the same local part. */
function simplifyQuoting(quoted: string): string {
  let content = '';
  let escaped = '';
  for (let i = 1; i < quoted.length - 1; i++) {
    if (quoted.charCodeAt(i) === BACKSLASH) i++;
    const c = quoted.charAt(i);
    content += c;
    escaped += c === '"' || c === '\\' ? `\\${c}` : c;
  }
  return endOfDotAtom(`${content}@`) === content.length ? content : `"${escaped}"`;
}

// The functions below check the domain of an address as a host name and convert it to lower-case A-labels. They are
// pure and read at most 254 characters in one pass. They return null for text that is not a host name, and never throw.

/** RFC 1035 section 2.3.4: maximum octets of one label, and of a whole name with its dots. */
const MAX_LABEL_OCTETS = 63;
const MAX_DOMAIN_OCTETS = 253;

const HYPHEN = 0x2d;

/** 1 digit, 2 lower-case letter, 3 upper-case letter, 4 hyphen, 0 not allowed in a host label. */
const HOST_CHARACTER = new Uint8Array(128);
for (let c = 0x30; c <= 0x39; c++) HOST_CHARACTER[c] = 1;
for (let c = 0x61; c <= 0x7a; c++) HOST_CHARACTER[c] = 2;
for (let c = 0x41; c <= 0x5a; c++) HOST_CHARACTER[c] = 3;
HOST_CHARACTER[HYPHEN] = 4;

/**
 * Reads the domain in `text` from `start` to the end. Returns the domain in lower-case A-labels, or null if the domain
 * is not valid. A valid domain has at least two labels of letters, digits and inner hyphens (RFC 1123 section 2.1), and
 * its last label is not all digits. A domain with A-labels or with characters outside ASCII must be valid by UTS 46,
 * non-transitional.
 */
export function parseHost(text: string, start: number): string | null {
  const end = text.length;
  let hasUpperCase = false;
  let hasUnicode = false;
  let labels = 1;
  let labelStart = start;
  let isDigitsOnly = true;
  let hasALabel = false;
  for (let i = start; i < end; i++) {
    const c = text.charCodeAt(i);
    if (c === DOT) {
      if (!hasUnicode && !isValidLabel(text, labelStart, i)) return null;
      if (isALabel(text, labelStart, i)) hasALabel = true;
      labels++;
      labelStart = i + 1;
      isDigitsOnly = true;
      continue;
    }
    if (c >= 0x80) {
      hasUnicode = true;
      continue;
    }
    const kind = HOST_CHARACTER[c];
    if (kind === 0) return null;
    if (kind !== 1) isDigitsOnly = false;
    if (kind === 3) hasUpperCase = true;
  }
  if (hasUnicode) return toAsciiDomain(text.slice(start));
  if (labels < 2 || isDigitsOnly || end - start > MAX_DOMAIN_OCTETS || !isValidLabel(text, labelStart, end))
    return null;
  if (hasALabel || isALabel(text, labelStart, end)) return toAsciiDomain(text.slice(start));
  const domain = text.slice(start);
  return hasUpperCase ? domain.toLowerCase() : domain;
}

/**
 * Returns true if the label from `start` to `end` is neither empty nor too long, and neither begins nor ends with a
 * hyphen.
 */
function isValidLabel(text: string, start: number, end: number): boolean {
  const length = end - start;
  return (
    length > 0 && length <= MAX_LABEL_OCTETS && text.charCodeAt(start) !== HYPHEN && text.charCodeAt(end - 1) !== HYPHEN
  );
}

/** Returns true if the label begins with `xn--`, in upper or lower case (RFC 5890 section 2.3.2.1). */
function isALabel(text: string, start: number, end: number): boolean {
  return (
    end - start >= 4 &&
    text.charCodeAt(start + 2) === HYPHEN &&
    text.charCodeAt(start + 3) === HYPHEN &&
    (text.charCodeAt(start) | 0x20) === 0x78 &&
    (text.charCodeAt(start + 1) | 0x20) === 0x6e
  );
}

/**
 * Applies UTS 46 section 4.2 (ToASCII) with every check enabled. The mapping can add ASCII characters and dots (U+3002,
 * full-width letters and digits), so the host rules are checked on the result as well.
 */
function toAsciiDomain(domain: string): string | null {
  const ascii = toASCII(domain, {
    checkBidi: true,
    checkHyphens: true,
    checkJoiners: true,
    useSTD3ASCIIRules: true,
    verifyDNSLength: true,
    transitionalProcessing: false,
    ignoreInvalidPunycode: false,
  });
  return ascii !== null && isHost(ascii) ? ascii : null;
}

/** Returns true if a name in lower-case ASCII obeys the host rules. */
function isHost(domain: string): boolean {
  if (domain.length > MAX_DOMAIN_OCTETS) return false;
  let labels = 1;
  let labelStart = 0;
  let isDigitsOnly = true;
  for (let i = 0; i < domain.length; i++) {
    const c = domain.charCodeAt(i);
    if (c === DOT) {
      if (!isValidLabel(domain, labelStart, i)) return false;
      labels++;
      labelStart = i + 1;
      isDigitsOnly = true;
    } else {
      const kind = c < 0x80 ? HOST_CHARACTER[c] : 0;
      if (kind === 0) return false;
      if (kind !== 1) isDigitsOnly = false;
    }
  }
  return labels >= 2 && !isDigitsOnly && isValidLabel(domain, labelStart, domain.length);
}

// Limits per peer apply to a network. One subscriber has an IPv6 /64 network (RFC 6177) and can use every address in
// this network.

/** Returns the /64 network of an IPv6 address, or the IPv4 address. An IPv4-mapped IPv6 address counts as its IPv4 address. */
export function peerNetworkOf(address: string): string {
  const plain = address.toLowerCase();
  if (plain.startsWith('::ffff:') && plain.includes('.')) return plain.slice('::ffff:'.length);
  if (!plain.includes(':')) return plain;
  const [head = '', tail] = plain.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...Array.from({ length: zeros }, () => '0'), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
