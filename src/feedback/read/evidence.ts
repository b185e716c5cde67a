import { parseAddress } from '../../model/address.ts';
import type { Evidence } from '../../model/feedback.ts';

const MAX_DIAGNOSTIC_LENGTH = 1_000;
const MAX_HOST_LENGTH = 255;
const PLAIN_LINE = /^[!-~]+(?: [!-~]+)*$/;
/** Bounds the cost of a text that consists of white space. */
const MAX_SCANNED_LENGTH = 16_384;
/** Local part, at sign, domain (RFC 5321 section 4.5.3.1). */
const MAX_ADDRESS_LENGTH = 320;

/** Control characters and white space become one space. Null if nothing is left. */
export function toOneLine(text: string, maxLength: number = MAX_DIAGNOSTIC_LENGTH): string | null {
  if (text.length <= maxLength && PLAIN_LINE.test(text)) return text;
  let line = '';
  let hasPendingSpace = false;
  for (const character of text.slice(0, MAX_SCANNED_LENGTH)) {
    if (isSeparator(character.codePointAt(0) ?? 0)) {
      hasPendingSpace = line !== '';
      continue;
    }
    if (line.length + (hasPendingSpace ? 1 : 0) + character.length > maxLength) break;
    line += hasPendingSpace ? ` ${character}` : character;
    hasPendingSpace = false;
  }
  return line === '' ? null : line;
}

/** White space, control characters, line separators and bidirectional formatting. */
function isSeparator(code: number): boolean {
  if (code <= 0x20 || (code >= 0x7f && code <= 0xa0)) return true;
  return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || (code >= 0xd800 && code <= 0xdfff);
}

export function createEvidence(
  status: string | null,
  diagnostic: string | null,
  reportingHost: string | null,
): Evidence {
  return {
    status,
    diagnostic: diagnostic === null ? null : toOneLine(diagnostic),
    reportingHost: reportingHost === null ? null : toOneLine(reportingHost, MAX_HOST_LENGTH),
  };
}

/** `dns; mx.example.com` (RFC 3464 section 2.1.2). A semicolon within a sentence ends no type. */
export function stripType(value: string): string {
  const semicolonIndex = value.indexOf(';');
  if (semicolonIndex < 0) return value.trim();
  const type = value.slice(0, semicolonIndex).trim();
  return type.length <= 40 && !type.includes(' ') && !type.includes('@')
    ? value.slice(semicolonIndex + 1).trim()
    : value.trim();
}

/** Parses `rfc822; <a@b.example>` (RFC 3464 section 2.3.1). `isUndecoded`: the address is not xtext-encoded. */
export function parseFieldAddress(value: string, isUndecoded: boolean = false): string | null {
  const addressText = stripType(value);
  const openIndex = addressText.lastIndexOf('<');
  const closeIndex = openIndex < 0 ? -1 : addressText.indexOf('>', openIndex);
  const addressWithoutBrackets = (
    closeIndex > openIndex ? addressText.slice(openIndex + 1, closeIndex) : addressText
  ).trim();
  const addressWithoutScheme = addressWithoutBrackets.toLowerCase().startsWith('mailto:')
    ? addressWithoutBrackets.slice(7)
    : addressWithoutBrackets;
  const firstToken = addressWithoutScheme.startsWith('"')
    ? addressWithoutScheme
    : (addressWithoutScheme.split(' ')[0] ?? '');
  const address = decodeUnicode(isUndecoded ? firstToken : decodeXtext(firstToken));
  return address.length <= MAX_ADDRESS_LENGTH && parseAddress(address) !== null ? address : null;
}

/** RFC 3461 section 4. */
function decodeXtext(address: string): string {
  return address.includes('+') ? address.replaceAll('+2B', '+').replaceAll('+3D', '=') : address;
}

/** Escaped characters such as `\x{43E}` (RFC 6533 section 3). */
function decodeUnicode(address: string): string {
  if (!address.includes('\\x{')) return address;
  return address.replace(/\\x\{([0-9A-Fa-f]{2,6})\}/g, (sequence, digits: string) => {
    const code = Number.parseInt(digits, 16);
    return code > 0x7f && code <= 0x10ffff ? String.fromCodePoint(code) : sequence;
  });
}
