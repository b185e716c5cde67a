/** Pieces of outside text, bounded and on one line, as evidence keeps them. */
import { parseAddress } from '../../admit/address.ts';

const LONGEST_DIAGNOSTIC = 1_000;
const LONGEST_HOST = 255;
const LONGEST_ADDRESS = 320;

/** One line without control characters, white space collapsed, cut; null where nothing is left. */
export function oneLine(text: string, longest = LONGEST_DIAGNOSTIC): string | null {
  let line = '';
  let gap = false;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code <= 0x20 || (code >= 0x7f && code <= 0xa0) || code === 0x2028 || code === 0x2029) {
      gap = line !== '';
      continue;
    }
    if (line.length >= longest) break;
    line += gap ? ` ${character}` : character;
    gap = false;
  }
  return line === '' ? null : line;
}

/** `dns; mx.example.com` without its type (RFC 3464 section 2.1.2), or null. */
export function typedValue(value: string | null): string | null {
  if (value === null) return null;
  const semicolon = value.indexOf(';');
  return oneLine(semicolon < 0 ? value : value.slice(semicolon + 1));
}

export function hostName(value: string | null): string | null {
  const host = typedValue(value);
  return host === null ? null : host.slice(0, LONGEST_HOST);
}

/**
 * An address as a report writes it: type, angle brackets and comments taken off, and `xtext` undone where the field holds it
 * (an original recipient, RFC 3461 section 4.2); null where it is none.
 */
export function reportedAddress(value: string | null, xtext = false): string | null {
  const typed = typedValue(value);
  if (typed === null) return null;
  const open = typed.lastIndexOf('<');
  const close = open < 0 ? -1 : typed.indexOf('>', open);
  const bare = (close > open ? typed.slice(open + 1, close) : typed).trim();
  const plain = xtext && bare.includes('+') ? unXtext(bare) : bare;
  const cut = plain.search(/[ (]/);
  for (const address of [plain, bare, cut < 0 ? '' : plain.slice(0, cut)]) {
    if (address.length <= LONGEST_ADDRESS && parseAddress(address) !== null) return address;
  }
  return null;
}

/** RFC 3461 section 4: `+3D` is an octet in hexadecimal. A plain plus of a sub-address stays one. */
function unXtext(text: string): string {
  return text.replaceAll(/\+([0-9A-F]{2})/g, (whole, digits: string) => {
    const code = Number.parseInt(digits, 16);
    return code >= 0x21 && code < 0x7f ? String.fromCharCode(code) : whole;
  });
}

const MOST_ADDRESSES = 100;

/** The addresses that stand in a text, in order, each once: in angle brackets, in quotes or bare. */
export function addressesIn(text: string): readonly string[] {
  const found = new Map<string, string>();
  for (let at = text.indexOf('@'); at >= 0 && found.size < MOST_ADDRESSES; at = text.indexOf('@', at + 1)) {
    let from = at;
    while (from > 0 && at - from < 64 && isLocal(text.charCodeAt(from - 1))) from -= 1;
    let to = at + 1;
    while (to < text.length && to - at < 256 && isDomain(text.charCodeAt(to))) to += 1;
    while (to > at && !isAlphanumeric(text.charCodeAt(to - 1))) to -= 1;
    while (from < at && (text.charAt(from) === '.' || text.charAt(from) === "'" || text.charAt(from) === '*'))
      from += 1;
    // X.400 gateways write `SMTP=a@b`.
    if (text.slice(from, from + 5).toLowerCase() === 'smtp=') from += 5;
    const address = text.slice(from, to);
    // `smtp:a@b`, `mailto:a@b`: what stands before a colon is no part of it; a colon is none of these characters.
    if (parseAddress(address) !== null && !found.has(address.toLowerCase())) found.set(address.toLowerCase(), address);
  }
  return [...found.values()];
}

/** Characters of a dot-atom (RFC 5322 section 3.2.3), and those of RFC 6532. */
function isLocal(code: number): boolean {
  return isAlphanumeric(code) || ".!#$%&'*+/=?^_`{|}~-".includes(String.fromCharCode(code));
}

function isDomain(code: number): boolean {
  return isAlphanumeric(code) || code === 0x2d || code === 0x2e;
}

function isAlphanumeric(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code > 0xbf
  );
}
