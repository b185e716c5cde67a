/**
 * Finds addresses in free text and determines the role of each: an address that begins a line or follows an introducing phrase is
 * a failed recipient. The search makes one pass over the text, returns at most MAX_FOUND addresses, and never throws.
 */
import { parseAddress } from '../../model/address.ts';
import {
  CONTACT_LOCAL_PARTS,
  CONTACT_PHRASES,
  ORIGINAL_RECIPIENT_PREFIXES,
  QUOTED_TO_PREFIXES,
  RECIPIENT_PREFIXES,
  SENDER_PREFIXES,
} from './layout-phrases.ts';

const MAX_FOUND = 1_000;
/** RFC 5321 section 4.5.3.1.1 allows 64 characters. The other characters are a margin for invalid addresses. */
const MAX_LOCAL_LENGTH = 80;
const MAX_DOMAIN_LENGTH = 253;
const MAX_CONTEXT_LENGTH = 80;

/**
 * `named`: a failed recipient; `origin`: the original address of the named one before it; `mentioned`: an address without a known
 * role; `other`: a sender or a contact.
 */
export type AddressRole = 'named' | 'origin' | 'mentioned' | 'other';

export interface FoundAddress {
  readonly address: string;
  /** Index of the address, and index of its line. */
  readonly at: number;
  readonly lineStart: number;
  readonly role: AddressRole;
}

/** Characters of ASCII local parts: atext of RFC 5322 section 3.2.3 and the dot. */
const LOCAL_CHARACTERS = new Uint8Array(128);
for (const c of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-/=?^_`{|}~.") {
  LOCAL_CHARACTERS[c.charCodeAt(0)] = 1;
}
/** Characters before an address that are not part of the address. */
const LEADING_CHARACTERS = "'*`{|/-=.~!#";

/** Returns the addresses of `text` in order. */
export function findAddresses(text: string): readonly FoundAddress[] {
  const found: FoundAddress[] = [];
  let from = 0;
  let lineStart = 0;
  // The line end is computed once per line. A search at every `@` would be quadratic in the length of the line.
  let lineEnd = endOfLine(text, 0);
  for (
    let atSign = text.indexOf('@');
    atSign >= 0 && found.length < MAX_FOUND;
    atSign = text.indexOf('@', atSign + 1)
  ) {
    while (lineEnd < atSign) {
      lineStart = lineEnd + 1;
      lineEnd = endOfLine(text, lineStart);
    }
    const read = readAddressAt(text, atSign, Math.max(from, lineStart));
    if (read === null) continue;
    from = read.end;
    found.push({
      address: read.address,
      at: read.at,
      lineStart,
      role: determineRole(text, read.address, read.at, lineStart),
    });
  }
  return found;
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

interface ParsedAddress {
  readonly address: string;
  readonly at: number;
  readonly end: number;
}

function readAddressAt(text: string, atSign: number, from: number): ParsedAddress | null {
  const start = findLocalPartStart(text, atSign, from);
  if (start >= atSign) return null;
  let end = atSign + 1;
  const maxEnd = Math.min(text.length, end + MAX_DOMAIN_LENGTH);
  while (end < maxEnd && isHostCharacter(text.charCodeAt(end))) end += 1;
  const plain = trimDomainEnd(text.slice(start, end));
  if (parseAddress(plain) !== null) return { address: plain, at: start, end };
  // An internationalized domain (RFC 6531). A space is not required between the domain and the surrounding words.
  while (end < maxEnd && (isHostCharacter(text.charCodeAt(end)) || isLetter(text.charCodeAt(end)))) end += 1;
  const internationalized = trimDomainEnd(text.slice(start, end));
  return parseAddress(internationalized) === null ? null : { address: internationalized, at: start, end };
}

function findLocalPartStart(text: string, atSign: number, from: number): number {
  const minStart = Math.max(from, atSign - MAX_LOCAL_LENGTH);
  if (text.charAt(atSign - 1) === '"') {
    // Quoted local part (RFC 5321 section 4.1.2).
    const quote = text.slice(minStart, Math.max(minStart, atSign - 1)).lastIndexOf('"');
    return quote >= 0 ? minStart + quote : atSign;
  }
  let start = atSign;
  while (start > minStart && LOCAL_CHARACTERS[text.charCodeAt(start - 1)] === 1) start -= 1;
  if (start === atSign) while (start > minStart && isLetter(text.charCodeAt(start - 1))) start -= 1;
  while (start < atSign && LEADING_CHARACTERS.includes(text.charAt(start))) start += 1;
  // A log line contains `to=a@b.example`. The equals sign within a VERP address is not removed.
  const local = text.slice(start, atSign);
  const equals = local.lastIndexOf('=');
  return equals > 0 && LOG_KEYS.includes(local.slice(0, equals).toLowerCase()) ? start + equals + 1 : start;
}

const LOG_KEYS: readonly string[] = [
  'to',
  'rcpt',
  'orcpt',
  'account',
  'user',
  'recipient',
  'addr',
  'address',
  'for',
  'from',
  'email',
  'smtp',
];

function isHostCharacter(c: number): boolean {
  return (c >= 0x61 && c <= 0x7a) || (c >= 0x41 && c <= 0x5a) || (c >= 0x30 && c <= 0x39) || c === 0x2d || c === 0x2e;
}

/** Returns true for non-ASCII characters except general punctuation, CJK punctuation and full-width forms. */
function isLetter(c: number): boolean {
  return c >= 0xc0 && !(c >= 0x2000 && c <= 0x206f) && !(c >= 0x3000 && c <= 0x303f) && c < 0xff00;
}

function trimDomainEnd(text: string): string {
  let end = text.length;
  while (end > 0 && (text.charAt(end - 1) === '.' || text.charAt(end - 1) === '-')) end -= 1;
  return text.slice(0, end);
}

function determineRole(text: string, address: string, at: number, lineStart: number): AddressRole {
  if (CONTACT_LOCAL_PARTS.includes(address.slice(0, address.lastIndexOf('@')).toLowerCase())) return 'other';
  const before = text.slice(Math.max(lineStart, at - MAX_CONTEXT_LENGTH), at).toLowerCase();
  const isFirst = hasOnlyMarks(before);
  const previous = isFirst ? previousLine(text, lineStart) : '';
  const words = removeBrackets(`${previous} ${before}`);
  if (ORIGINAL_RECIPIENT_PREFIXES.some((word) => endsWithPhrase(words, word))) return 'origin';
  if (SENDER_PREFIXES.some((word) => endsWithPhrase(words, word))) return 'other';
  // A line that starts with `To:` is a quoted header line.
  if (QUOTED_TO_PREFIXES.includes(removeBrackets(before))) return 'mentioned';
  if (RECIPIENT_PREFIXES.some((word) => endsWithPhrase(words, word))) return 'named';
  if (CONTACT_PHRASES.some((word) => words.includes(word))) return 'other';
  if (!isFirst) return 'mentioned';
  // An address at the start of a line can be the continuation of a sentence or of a list of addresses.
  const hasMark = before.trim() !== '';
  const isSameIndent = before.length === indentOf(previous);
  return hasMark || !isSameIndent || isListLine(previous) || !isBrokenSentence(previous) ? 'named' : 'mentioned';
}

/** Returns the end of the previous line in lower case. */
function previousLine(text: string, lineStart: number): string {
  if (lineStart < 2) return '';
  const precedingText = text.slice(Math.max(0, lineStart - 1 - MAX_CONTEXT_LENGTH), lineStart - 1);
  return precedingText.slice(precedingText.lastIndexOf('\n') + 1).toLowerCase();
}

function removeBrackets(text: string): string {
  return text.replaceAll('<', ' ').replaceAll('"', ' ').trim();
}

/** Returns true for a line with an address and at most two more words. */
function isListLine(line: string): boolean {
  return line.includes('@') && line.trim().split(' ').length <= 3;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Returns true when the line ends with a letter or a comma. A line before a list ends with a colon or is blank. */
function isBrokenSentence(line: string): boolean {
  const last = line.trimEnd().charCodeAt(line.trimEnd().length - 1);
  return last === 0x2c || (last >= 0x61 && last <= 0x7a);
}

/** Returns true when the text ends with the phrase, and the phrase begins at a word boundary. */
function endsWithPhrase(text: string, phrase: string): boolean {
  if (!text.endsWith(phrase)) return false;
  const before = text.charCodeAt(text.length - phrase.length - 1);
  return !(before >= 0x61 && before <= 0x7a) && !(isLetter(before) && before < 0x3000);
}

/** Returns true when the text contains only bullets, quotes, brackets and similar characters. */
function hasOnlyMarks(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    const word = (c >= 0x61 && c <= 0x7a) || (c >= 0x30 && c <= 0x39) || isLetter(c);
    if (word) return false;
  }
  return true;
}
