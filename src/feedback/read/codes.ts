/** Finds SMTP reply codes and enhanced status codes in untrusted text. Each function makes one pass and never throws. */

/** Maximum number of characters that are searched. Later text is about another server or another message. */
const MAX_LENGTH = 8_000;
const DOT = 0x2e;
const HYPHEN = 0x2d;

/**
 * Parses the status code (RFC 3463 section 2) at the beginning of `value` and removes leading zeros. Returns null if there is
 * no status code.
 */
export function parseEnhancedStatus(value: string): string | null {
  const text = value.trimStart();
  return parseStatusAt(text, text.startsWith('#') ? 1 : 0)?.status ?? null;
}

/**
 * Finds the first status code of class 4 or 5 in `text`, or null. A part of an address, a version or a number is not a status
 * code.
 */
export function findEnhancedStatus(text: string): string | null {
  const end = Math.min(text.length, MAX_LENGTH);
  for (let at = 0; at < end; at += 1) {
    const c = text.charCodeAt(at);
    if (c !== 0x34 && c !== 0x35) continue;
    const before = at === 0 ? 0x20 : text.charCodeAt(at - 1);
    if (isAlphanumeric(before) || before === DOT || (before === HYPHEN && !isDigit(text.charCodeAt(at - 2)))) continue;
    const found = parseStatusAt(text, at);
    if (found !== null) return found.status;
  }
  return null;
}

function parseStatusAt(text: string, from: number): { readonly status: string } | null {
  const kind = text.charAt(from);
  if ((kind !== '2' && kind !== '4' && kind !== '5') || text.charCodeAt(from + 1) !== DOT) return null;
  const subject = readDigits(text, from + 2);
  if (subject === '' || text.charCodeAt(from + 2 + subject.length) !== DOT) return null;
  const at = from + 3 + subject.length;
  const detail = readDigits(text, at);
  const after = text.charCodeAt(at + detail.length);
  // Four numbers are an IP address.
  if (detail === '' || isDigit(after) || (after === DOT && isDigit(text.charCodeAt(at + detail.length + 1))))
    return null;
  return { status: `${kind}.${Number(subject)}.${Number(detail)}` };
}

function readDigits(text: string, from: number): string {
  let end = from;
  while (end < from + 3 && isDigit(text.charCodeAt(end))) end += 1;
  return text.slice(from, end);
}

export interface FoundCode {
  readonly code: number;
  /** Index of the first digit of the code. */
  readonly at: number;
}

/**
 * Finds the first reply code of class 4 or 5 (RFC 5321 section 4.2) in `text`, or null. A number is a reply code if it is at
 * the beginning of the text, or after a punctuation mark or an introducing word, and if text or a status code follows.
 */
export function findReplyCode(text: string): FoundCode | null {
  const end = Math.min(text.length, MAX_LENGTH);
  for (let at = 0; at < end; at += 1) {
    const c = text.charCodeAt(at);
    if ((c !== 0x34 && c !== 0x35) || (at > 0 && !isCodeStart(text, at))) continue;
    const secondDigit = text.charCodeAt(at + 1);
    if (secondDigit < 0x30 || secondDigit > 0x37 || !isDigit(text.charCodeAt(at + 2)) || !isCodeEnd(text, at + 3))
      continue;
    const code = Number(text.slice(at, at + 3));
    if (code <= 459 || (code >= 500 && code <= 559) || code === 571) return { code, at };
  }
  return null;
}

/** Returns true if `at` follows a punctuation mark, the beginning of a line, or a word that mail servers write before a code. */
function isCodeStart(text: string, at: number): boolean {
  const before = text.charAt(at - 1);
  if (':;("\'[#=>|\n'.includes(before)) return true;
  if (before !== ' ' && before !== '\t') return false;
  const words = text
    .slice(Math.max(0, at - 24), at)
    .trimEnd()
    .toLowerCase();
  const last = words.charAt(words.length - 1);
  return words === '' || ':;>(|-.,<#\n'.includes(last) || WORDS_BEFORE_CODE.some((word) => words.endsWith(word));
}

const WORDS_BEFORE_CODE: readonly string[] = [
  'said',
  'error',
  'code',
  'reply',
  'response',
  'smtp',
  'with',
  'returned',
  'was',
  'status',
  'replied',
  'answer',
  'failed',
  'dsn',
  '550',
  '554',
  '553',
  'reason',
  'command',
  'end of data',
  'is',
  'by',
  'err',
  'antwort',
  'fehler',
  'erreur',
];

/**
 * Returns true if a code can end at `at`: at the end of the text, before punctuation, or before a space or hyphen without a
 * unit.
 */
function isCodeEnd(text: string, at: number): boolean {
  const next = text.charAt(at);
  if (
    next === '' ||
    next === '\n' ||
    next === '\r' ||
    next === ']' ||
    next === ')' ||
    next === '"' ||
    next === "'" ||
    next === '<'
  )
    return true;
  if (next === ':' || next === ',' || next === ';' || next === '.') return !isDigit(text.charCodeAt(at + 1));
  if (next !== ' ' && next !== '-' && next !== '\t') return false;
  const word = text
    .slice(at + 1, at + 14)
    .toLowerCase()
    .trimStart();
  return !UNITS_AFTER_NUMBER.some((unit) => word.startsWith(unit));
}

/** Units. A number before a unit is not a reply code. */
const UNITS_AFTER_NUMBER: readonly string[] = [
  'bytes',
  'byte',
  'kb',
  'mb',
  'k ',
  'hours',
  'hour',
  'days',
  'day',
  'minutes',
  'seconds',
  'lines',
  'attempts',
  'times',
  'messages',
  'recipients',
];

function isDigit(c: number): boolean {
  return c >= 0x30 && c <= 0x39;
}

function isAlphanumeric(c: number): boolean {
  return isDigit(c) || (c >= 0x41 && c <= 0x5a) || (c >= 0x61 && c <= 0x7a);
}
