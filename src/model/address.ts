/**
 * Email addresses as they are accepted: one bare addr-spec (RFC 5321 section 4.1.2 Mailbox without address
 * literals, RFC 6531 section 3.3), no display name, comment, folding or single-label domain. Header and envelope
 * are written from the object made here, so that they cannot name different mailboxes.
 *
 * Promises: one pass by character codes over at most 254 of them, whatever the input; never throws. What is
 * accepted holds no control character, no white space but U+0020 inside quotes, and no bidi or other format
 * control.
 */
import { parseHost } from './host.ts';

export interface Address {
  /** As submitted, quotes included. */
  readonly local: string;
  /** Lower-case A-labels. */
  readonly domain: string;
  /** False when the local part needs SMTPUTF8 (RFC 6531). */
  readonly ascii: boolean;
}

/** RFC 5321 section 4.5.3.1.1: octets of a local part. */
const MAX_LOCAL = 64;
/** RFC 5321 section 4.5.3.1.3: a path is 256 octets at most, and two of them are its angle brackets. */
const MAX_ADDRESS = 254;

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
 * What no internationalised local part may hold: controls, format controls (bidi overrides, zero-width joiners,
 * tags), separators, lone surrogates, noncharacters. They are invisible, or make one address look like another.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]|(?! )\p{Zs}/u;

/** The address in `text`, or null where it is none. */
export function parseAddress(text: string): Address | null {
  const length = text.length;
  // In A-labels and UTF-8 an address is never shorter than this but for invisible characters that UTS 46 drops.
  if (length > MAX_ADDRESS) return null;
  const at = text.charCodeAt(0) === QUOTE ? endOfQuotedString(text) : endOfDotAtom(text);
  if (at <= 0 || at > MAX_LOCAL || at + 1 >= length) return null;
  const local = text.slice(0, at);
  const octets = Buffer.byteLength(local, 'utf8');
  const ascii = octets === at;
  if (!ascii && (octets > MAX_LOCAL || UNSAFE.test(local))) return null;
  const domain = parseHost(text, at + 1);
  if (domain === null || octets + 1 + domain.length > MAX_ADDRESS) return null;
  return { local, domain, ascii };
}

/** Where the `@` behind a Dot-string (RFC 5321 section 4.1.2) stands, or -1. */
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

/** Where the `@` behind a Quoted-string (RFC 5321 section 4.1.2: no controls, tabs among them) stands, or -1. */
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

/** The addr-spec for envelope and header alike: the local part as given, the domain in A-labels. */
export function addrSpec(address: Address): string {
  return `${address.local}@${address.domain}`;
}

/**
 * The key of the suppression list. Two spellings of what is one mailbox almost everywhere (case, Unicode
 * composition, needless quoting) have one key, so that a second spelling does not get past a suppression.
 */
export function canonicalAddress(address: Address): string {
  let local = address.local;
  if (local.charCodeAt(0) === QUOTE) local = simplestQuoting(local);
  // Lower-casing can undo a composition (and the reverse), hence NFC after it.
  local = address.ascii ? local.toLowerCase() : local.normalize('NFC').toLowerCase().normalize('NFC');
  return `${local}@${address.domain}`;
}

/** RFC 5321 section 4.1.2: `"Joe\ Q"`, `"Joe Q"` are one, and quotes around a dot-atom mean nothing. */
function simplestQuoting(quoted: string): string {
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
