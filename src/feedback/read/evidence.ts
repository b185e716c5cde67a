/** What a report says for itself, made fit to be kept and shown: one line each, bounded, control characters removed. */
import { parseAddress } from '../../model/address.ts';
import type { Evidence } from '../../model/feedback.ts';

const LONGEST_DIAGNOSTIC = 1_000;
const LONGEST_HOST = 255;
/** Characters that are looked at for one line: a text may be white space alone. */
const MAX_SCANNED = 16_384;
/** RFC 5321 section 4.5.3.1: local part, at sign, domain. */
const LONGEST_ADDRESS = 320;

/** One line of at most `longest` characters: control characters and white space become single spaces. Null where nothing is left. */
export function toOneLine(text: string, longest: number = LONGEST_DIAGNOSTIC): string | null {
  let line = '';
  let gap = false;
  for (const character of text.slice(0, MAX_SCANNED)) {
    if (isSeparator(character.codePointAt(0) ?? 0)) {
      gap = line !== '';
      continue;
    }
    if (line.length + (gap ? 1 : 0) + character.length > longest) break;
    line += gap ? ` ${character}` : character;
    gap = false;
  }
  return line === '' ? null : line;
}

/** White space, controls, line separators, and what turns the direction of a line that an operator reads. */
function isSeparator(code: number): boolean {
  if (code <= 0x20 || (code >= 0x7f && code <= 0xa0)) return true;
  return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || (code >= 0xd800 && code <= 0xdfff);
}

/** Evidence out of outside text, each piece bounded. */
export function createEvidence(
  status: string | null,
  diagnostic: string | null,
  reportingHost: string | null,
): Evidence {
  return {
    status,
    diagnostic: diagnostic === null ? null : toOneLine(diagnostic),
    reportingHost: reportingHost === null ? null : toOneLine(reportingHost, LONGEST_HOST),
  };
}

/** `dns; mx.example.com` without its type (RFC 3464 section 2.1.2); a semicolon in the middle of words is none. */
export function stripType(value: string): string {
  const semicolon = value.indexOf(';');
  if (semicolon < 0) return value.trim();
  const type = value.slice(0, semicolon).trim();
  return type.length <= 40 && !type.includes(' ') && !type.includes('@')
    ? value.slice(semicolon + 1).trim()
    : value.trim();
}

/**
 * The address in a field such as `rfc822; <a@b.example>` (RFC 3464 section 2.3.1), or null. `asWritten` keeps the octets
 * that RFC 3461 section 4 writes as `+2B` and `+3D`, for an address that really holds them.
 */
export function parseFieldAddress(value: string, asWritten: boolean = false): string | null {
  const typed = stripType(value);
  const open = typed.lastIndexOf('<');
  const close = open < 0 ? -1 : typed.indexOf('>', open);
  const bare = (close > open ? typed.slice(open + 1, close) : typed).trim();
  const unwrapped = bare.toLowerCase().startsWith('mailto:') ? bare.slice(7) : bare;
  const first = unwrapped.startsWith('"') ? unwrapped : (unwrapped.split(' ')[0] ?? '');
  const address = decodeUnicode(asWritten ? first : decodeXtext(first));
  return address.length <= LONGEST_ADDRESS && parseAddress(address) !== null ? address : null;
}

/** RFC 3461 section 4: a plus and an equals sign must be written so; anything else is left as it stands. */
function decodeXtext(address: string): string {
  return address.includes('+') ? address.replaceAll('+2B', '+').replaceAll('+3D', '=') : address;
}

/** RFC 6533 section 3: `\x{43E}` stands for a character beyond ASCII. */
function decodeUnicode(address: string): string {
  if (!address.includes('\\x{')) return address;
  return address.replace(/\\x\{([0-9A-Fa-f]{2,6})\}/g, (whole, digits: string) => {
    const code = Number.parseInt(digits, 16);
    return code > 0x7f && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
