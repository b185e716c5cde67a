/**
 * Addresses in text that people read, and how sure it is that one is the recipient in question: it begins a line, or
 * follows words that announce a recipient. Promises one pass over the text, at most MOST_FOUND addresses, never throws.
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

const MOST_FOUND = 1_000;
/** RFC 5321 section 4.5.3.1.1, with room for what only looks like a local part. */
const LONGEST_LOCAL = 80;
const LONGEST_DOMAIN = 253;
const LONGEST_LINE_START = 80;

/**
 * `named`: the text points at it; `origin`: what the named one before it was sent to at first; `mentioned`: it merely occurs;
 * `other`: a sender, or somebody to ask.
 */
export type AddressRole = 'named' | 'origin' | 'mentioned' | 'other';

export interface FoundAddress {
  readonly address: string;
  /** Where it begins in the text, and where its line does. */
  readonly at: number;
  readonly lineAt: number;
  readonly role: AddressRole;
}

/** Local parts in ASCII: atext of RFC 5322 section 3.2.3 and the dot, without what rather encloses an address. */
const LOCAL = new Uint8Array(128);
for (const c of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-/=?^_`{|}~.") {
  LOCAL[c.charCodeAt(0)] = 1;
}
/** What stands before an address and is none of it. */
const LEADING = "'*`{|/-=.~!#";

/** Every address in `text`, in order. */
export function findAddresses(text: string): readonly FoundAddress[] {
  const found: FoundAddress[] = [];
  let from = 0;
  let lineAt = 0;
  // Kept from sign to sign: looking for it anew at each would make a long line cost its square.
  let lineEnd = endOfLine(text, 0);
  for (let sign = text.indexOf('@'); sign >= 0 && found.length < MOST_FOUND; sign = text.indexOf('@', sign + 1)) {
    while (lineEnd < sign) {
      lineAt = lineEnd + 1;
      lineEnd = endOfLine(text, lineAt);
    }
    const read = addressAround(text, sign, Math.max(from, lineAt));
    if (read === null) continue;
    from = read.end;
    found.push({ address: read.address, at: read.at, lineAt, role: weigh(text, read.address, read.at, lineAt) });
  }
  return found;
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

interface ReadAddress {
  readonly address: string;
  readonly at: number;
  readonly end: number;
}

function addressAround(text: string, sign: number, from: number): ReadAddress | null {
  const start = localStart(text, sign, from);
  if (start >= sign) return null;
  let end = sign + 1;
  const most = Math.min(text.length, end + LONGEST_DOMAIN);
  while (end < most && isHostCharacter(text.charCodeAt(end))) end += 1;
  const plain = withoutDots(text.slice(start, end));
  if (parseAddress(plain) !== null) return { address: plain, at: start, end };
  // A domain in other letters (RFC 6531), which no space need part from the words around it.
  while (end < most && (isHostCharacter(text.charCodeAt(end)) || isLetter(text.charCodeAt(end)))) end += 1;
  const wide = withoutDots(text.slice(start, end));
  return parseAddress(wide) === null ? null : { address: wide, at: start, end };
}

function localStart(text: string, sign: number, from: number): number {
  const least = Math.max(from, sign - LONGEST_LOCAL);
  if (text.charAt(sign - 1) === '"') {
    // Quoted local part (RFC 5321 section 4.1.2), where its opening quote is near.
    const quote = text.slice(least, Math.max(least, sign - 1)).lastIndexOf('"');
    return quote >= 0 ? least + quote : sign;
  }
  let start = sign;
  while (start > least && LOCAL[text.charCodeAt(start - 1)] === 1) start -= 1;
  if (start === sign) while (start > least && isLetter(text.charCodeAt(start - 1))) start -= 1;
  while (start < sign && LEADING.includes(text.charAt(start))) start += 1;
  // `to=a@b.example` of logs; a return path in which another one is written keeps its equals sign.
  const local = text.slice(start, sign);
  const equals = local.lastIndexOf('=');
  return equals > 0 && LOGGED.includes(local.slice(0, equals).toLowerCase()) ? start + equals + 1 : start;
}

const LOGGED: readonly string[] = [
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

/** Letters beyond ASCII, general punctuation, full-width forms and CJK punctuation aside. */
function isLetter(c: number): boolean {
  return c >= 0xc0 && !(c >= 0x2000 && c <= 0x206f) && !(c >= 0x3000 && c <= 0x303f) && c < 0xff00;
}

function withoutDots(text: string): string {
  let end = text.length;
  while (end > 0 && (text.charAt(end - 1) === '.' || text.charAt(end - 1) === '-')) end -= 1;
  return text.slice(0, end);
}

function weigh(text: string, address: string, at: number, lineAt: number): AddressRole {
  if (CONTACT_LOCAL_PARTS.includes(address.slice(0, address.lastIndexOf('@')).toLowerCase())) return 'other';
  const before = text.slice(Math.max(lineAt, at - LONGEST_LINE_START), at).toLowerCase();
  const first = isOnlyMarks(before);
  const previous = first ? lineBefore(text, lineAt) : '';
  const words = withoutBrackets(`${previous} ${before}`);
  if (ORIGINAL_RECIPIENT_PREFIXES.some((word) => endsIn(words, word))) return 'origin';
  if (SENDER_PREFIXES.some((word) => endsIn(words, word))) return 'other';
  // `To:` by itself is the quoted header's, where anything else is named.
  if (QUOTED_TO_PREFIXES.includes(withoutBrackets(before))) return 'mentioned';
  if (RECIPIENT_PREFIXES.some((word) => endsIn(words, word))) return 'named';
  if (CONTACT_PHRASES.some((word) => words.includes(word))) return 'other';
  if (!first) return 'mentioned';
  // The middle of a sentence that was broken there, unless a list of addresses goes on.
  const marked = before.trim() !== '';
  const flush = before.length === indentOf(previous);
  return marked || !flush || isListLine(previous) || !isBrokenSentence(previous) ? 'named' : 'mentioned';
}

/** The line before, from its end, in lower case. */
function lineBefore(text: string, lineAt: number): string {
  if (lineAt < 2) return '';
  const ending = text.slice(Math.max(0, lineAt - 1 - LONGEST_LINE_START), lineAt - 1);
  return ending.slice(ending.lastIndexOf('\n') + 1).toLowerCase();
}

function withoutBrackets(text: string): string {
  return text.replaceAll('<', ' ').replaceAll('"', ' ').trim();
}

/** An address and hardly more. */
function isListLine(line: string): boolean {
  return line.includes('@') && line.trim().split(' ').length <= 3;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Ends in a letter or a comma: whoever announces a list ends with a colon, or leaves a line blank. */
function isBrokenSentence(line: string): boolean {
  const last = line.trimEnd().charCodeAt(line.trimEnd().length - 1);
  return last === 0x2c || (last >= 0x61 && last <= 0x7a);
}

/** Whether the text ends in the phrase, as words of its own. */
function endsIn(text: string, phrase: string): boolean {
  if (!text.endsWith(phrase)) return false;
  const before = text.charCodeAt(text.length - phrase.length - 1);
  return !(before >= 0x61 && before <= 0x7a) && !(isLetter(before) && before < 0x3000);
}

/** Bullets, quotes and brackets before an address that begins its line. */
function isOnlyMarks(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    const word = (c >= 0x61 && c <= 0x7a) || (c >= 0x30 && c <= 0x39) || isLetter(c);
    if (word) return false;
  }
  return true;
}
