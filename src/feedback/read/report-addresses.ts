/** The text before an address gives its role, for example `failed recipient:`. One pass; never throws. */
import { parsePhrases } from '../../classify/phrases.ts';
import { parseAddress } from '../../model/address.ts';
import { findLineEnd } from './entity.ts';
import {
  CONTACT_LOCAL_PARTS,
  CONTACT_PHRASES,
  ORIGINAL_RECIPIENT_PREFIXES,
  QUOTED_TO_PREFIXES,
  RECIPIENT_PREFIXES,
  SENDER_PREFIXES,
} from './phrases.ts';

const MAX_FOUND_ADDRESSES = 1_000;
/** RFC 5321 section 4.5.3.1.1 allows 64, but invalid addresses can be longer. */
const MAX_LOCAL_LENGTH = 80;
const MAX_DOMAIN_LENGTH = 253;
const MAX_CONTEXT_LENGTH = 80;

/** `origin`: failed, before forwarding, after its alias. `mentioned`: no known role. `other`: sender or contact. */
export type AddressRole = 'named' | 'origin' | 'mentioned' | 'other';

export interface FoundAddress {
  readonly address: string;
  readonly index: number;
  readonly lineStart: number;
  readonly role: AddressRole;
}

/** 1 for atext (RFC 5322 section 3.2.3) and the dot. */
const LOCAL_CHARACTERS = new Uint8Array(128);
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-/=?^_`{|}~.") {
  LOCAL_CHARACTERS[character.charCodeAt(0)] = 1;
}
const LEADING_CHARACTERS = "'*`{|/-=.~!#";

export function findAddresses(text: string): readonly FoundAddress[] {
  const foundAddresses: FoundAddress[] = [];
  let searchStart = 0;
  let lineStart = 0;
  // Once per line: a search at every `@` would be quadratic.
  let lineEnd = findLineEnd(text, 0);
  for (
    let atSignIndex = text.indexOf('@');
    atSignIndex >= 0 && foundAddresses.length < MAX_FOUND_ADDRESSES;
    atSignIndex = text.indexOf('@', atSignIndex + 1)
  ) {
    while (lineEnd < atSignIndex) {
      lineStart = lineEnd + 1;
      lineEnd = findLineEnd(text, lineStart);
    }
    const parsedAddress = readAddressAt(text, atSignIndex, Math.max(searchStart, lineStart));
    if (parsedAddress === null) continue;
    searchStart = parsedAddress.endIndex;
    foundAddresses.push({
      address: parsedAddress.address,
      index: parsedAddress.startIndex,
      lineStart,
      role: determineRole(text, parsedAddress.address, parsedAddress.startIndex, lineStart),
    });
  }
  return foundAddresses;
}

interface ParsedAddress {
  readonly address: string;
  readonly startIndex: number;
  readonly endIndex: number;
}

function readAddressAt(text: string, atSignIndex: number, searchStart: number): ParsedAddress | null {
  const startIndex = findLocalPartStart(text, atSignIndex, searchStart);
  if (startIndex >= atSignIndex) return null;
  let endIndex = atSignIndex + 1;
  const maxEnd = Math.min(text.length, endIndex + MAX_DOMAIN_LENGTH);
  while (endIndex < maxEnd && isHostCharacter(text.charCodeAt(endIndex))) endIndex += 1;
  const addressText = trimDomainEnd(text.slice(startIndex, endIndex));
  if (parseAddress(addressText) !== null) return { address: addressText, startIndex, endIndex };
  // The domain may be internationalized (RFC 6531). Such a domain can be adjacent to other words without a space.
  while (
    endIndex < maxEnd &&
    (isHostCharacter(text.charCodeAt(endIndex)) || isNonAsciiLetter(text.charCodeAt(endIndex)))
  )
    endIndex += 1;
  const internationalizedAddress = trimDomainEnd(text.slice(startIndex, endIndex));
  return parseAddress(internationalizedAddress) === null
    ? null
    : { address: internationalizedAddress, startIndex, endIndex };
}

function findLocalPartStart(text: string, atSignIndex: number, searchStart: number): number {
  const minStart = Math.max(searchStart, atSignIndex - MAX_LOCAL_LENGTH);
  if (text.charAt(atSignIndex - 1) === '"') {
    // The local part is quoted (RFC 5321 section 4.1.2).
    const quoteIndex = text.slice(minStart, Math.max(minStart, atSignIndex - 1)).lastIndexOf('"');
    return quoteIndex >= 0 ? minStart + quoteIndex : atSignIndex;
  }
  let start = atSignIndex;
  while (start > minStart && LOCAL_CHARACTERS[text.charCodeAt(start - 1)] === 1) start -= 1;
  if (start === atSignIndex) while (start > minStart && isNonAsciiLetter(text.charCodeAt(start - 1))) start -= 1;
  while (start < atSignIndex && LEADING_CHARACTERS.includes(text.charAt(start))) start += 1;
  // `to=a@b.example`: only a key such as `to` is removed, not the text before the `=` of a VERP address.
  const localPart = text.slice(start, atSignIndex);
  const equalsIndex = localPart.lastIndexOf('=');
  return equalsIndex > 0 && LOG_KEYS.includes(localPart.slice(0, equalsIndex).toLowerCase())
    ? start + equalsIndex + 1
    : start;
}

const LOG_KEYS: readonly string[] = parsePhrases(`
  to, rcpt, orcpt, account, user, recipient, addr, address, for, from, email, smtp
`);

function isHostCharacter(charCode: number): boolean {
  return (
    (charCode >= 0x61 && charCode <= 0x7a) ||
    (charCode >= 0x41 && charCode <= 0x5a) ||
    (charCode >= 0x30 && charCode <= 0x39) ||
    charCode === 0x2d ||
    charCode === 0x2e
  );
}

/** Not general or CJK punctuation and full-width forms. */
function isNonAsciiLetter(charCode: number): boolean {
  return (
    charCode >= 0xc0 &&
    !(charCode >= 0x2000 && charCode <= 0x206f) &&
    !(charCode >= 0x3000 && charCode <= 0x303f) &&
    charCode < 0xff00
  );
}

function trimDomainEnd(text: string): string {
  let end = text.length;
  while (end > 0 && (text.charAt(end - 1) === '.' || text.charAt(end - 1) === '-')) end -= 1;
  return text.slice(0, end);
}

function determineRole(text: string, address: string, at: number, lineStart: number): AddressRole {
  if (CONTACT_LOCAL_PARTS.includes(address.slice(0, address.lastIndexOf('@')).toLowerCase())) return 'other';
  const precedingText = text.slice(Math.max(lineStart, at - MAX_CONTEXT_LENGTH), at).toLowerCase();
  const isAtLineStart = hasOnlyMarks(precedingText);
  const previousLine = isAtLineStart ? readPreviousLine(text, lineStart) : '';
  const introducingText = removeBrackets(`${previousLine} ${precedingText}`);
  if (ORIGINAL_RECIPIENT_PREFIXES.some((word) => endsWithPhrase(introducingText, word))) return 'origin';
  if (SENDER_PREFIXES.some((word) => endsWithPhrase(introducingText, word))) return 'other';
  // A line that starts with `To:` is a quoted header line.
  if (QUOTED_TO_PREFIXES.includes(removeBrackets(precedingText))) return 'mentioned';
  if (RECIPIENT_PREFIXES.some((word) => endsWithPhrase(introducingText, word))) return 'named';
  if (CONTACT_PHRASES.some((word) => introducingText.includes(word))) return 'other';
  if (!isAtLineStart) return 'mentioned';
  // An address at the beginning of a line can continue a sentence or a list of addresses.
  const hasLeadingMark = precedingText.trim() !== '';
  const isSameIndent = precedingText.length === measureIndent(previousLine);
  const introducesReason = text.charAt(at + address.length) === ':';
  return introducesReason ||
    hasLeadingMark ||
    !isSameIndent ||
    isListLine(previousLine) ||
    !isUnfinishedSentence(previousLine)
    ? 'named'
    : 'mentioned';
}

function readPreviousLine(text: string, lineStart: number): string {
  if (lineStart < 2) return '';
  const precedingText = text.slice(Math.max(0, lineStart - 1 - MAX_CONTEXT_LENGTH), lineStart - 1);
  return precedingText.slice(precedingText.lastIndexOf('\n') + 1).toLowerCase();
}

function removeBrackets(text: string): string {
  return text.replaceAll('<', ' ').replaceAll('"', ' ').trim();
}

function isListLine(line: string): boolean {
  return line.includes('@') && line.trim().split(' ').length <= 3;
}

function measureIndent(line: string): number {
  return line.length - line.trimStart().length;
}

/** Ends with a letter or a comma. Before a list of addresses, it ends with a colon or is blank. */
function isUnfinishedSentence(line: string): boolean {
  const lastCharCode = line.trimEnd().charCodeAt(line.trimEnd().length - 1);
  return lastCharCode === 0x2c || (lastCharCode >= 0x61 && lastCharCode <= 0x7a);
}

function endsWithPhrase(text: string, phrase: string): boolean {
  if (!text.endsWith(phrase)) return false;
  const precedingCharCode = text.charCodeAt(text.length - phrase.length - 1);
  return (
    !(precedingCharCode >= 0x61 && precedingCharCode <= 0x7a) &&
    !(isNonAsciiLetter(precedingCharCode) && precedingCharCode < 0x3000)
  );
}

function hasOnlyMarks(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    const charCode = text.charCodeAt(i);
    const isWordCharacter =
      (charCode >= 0x61 && charCode <= 0x7a) || (charCode >= 0x30 && charCode <= 0x39) || isNonAsciiLetter(charCode);
    if (isWordCharacter) return false;
  }
  return true;
}
