/**
 * Finds SMTP reply codes and enhanced status codes in untrusted text. Each function makes one pass and never throws.
 */

import { parsePhrases } from '../../classify/text.ts';

/**
 * Maximum number of characters that are searched. The text beyond this length concerns another server or another
 * message.
 */
const MAX_LENGTH = 8_000;
const DOT = 0x2e;
const HYPHEN = 0x2d;

/**
 * Parses the status code (RFC 3463 section 2) at the beginning of `value` and removes leading zeros. Returns null if
 * `value` does not begin with a status code.
 */
export function parseEnhancedStatus(value: string): string | null {
  const text = value.trimStart();
  return parseStatusAt(text, text.startsWith('#') ? 1 : 0)?.status ?? null;
}

/**
 * Returns the first status code of class 4 or 5 in `text`, or null. Digits in an address, a version or a longer number
 * are not a status code.
 */
export function findEnhancedStatus(text: string): string | null {
  const searchEnd = Math.min(text.length, MAX_LENGTH);
  for (let index = 0; index < searchEnd; index += 1) {
    const charCode = text.charCodeAt(index);
    if (charCode !== 0x34 && charCode !== 0x35) continue;
    const precedingCharCode = index === 0 ? 0x20 : text.charCodeAt(index - 1);
    if (
      isAlphanumeric(precedingCharCode) ||
      precedingCharCode === DOT ||
      (precedingCharCode === HYPHEN && !isDigit(text.charCodeAt(index - 2)))
    )
      continue;
    const parsedStatus = parseStatusAt(text, index);
    if (parsedStatus !== null) return parsedStatus.status;
  }
  return null;
}

function parseStatusAt(text: string, startIndex: number): { readonly status: string } | null {
  const classDigit = text.charAt(startIndex);
  if ((classDigit !== '2' && classDigit !== '4' && classDigit !== '5') || text.charCodeAt(startIndex + 1) !== DOT)
    return null;
  const subjectDigits = readDigits(text, startIndex + 2);
  if (subjectDigits === '' || text.charCodeAt(startIndex + 2 + subjectDigits.length) !== DOT) return null;
  const detailStart = startIndex + 3 + subjectDigits.length;
  const detailDigits = readDigits(text, detailStart);
  const followingCharCode = text.charCodeAt(detailStart + detailDigits.length);
  // Four numbers that are separated by dots are an IP address.
  if (
    detailDigits === '' ||
    isDigit(followingCharCode) ||
    (followingCharCode === DOT && isDigit(text.charCodeAt(detailStart + detailDigits.length + 1)))
  )
    return null;
  return { status: `${classDigit}.${Number(subjectDigits)}.${Number(detailDigits)}` };
}

function readDigits(text: string, startIndex: number): string {
  let digitsEnd = startIndex;
  while (digitsEnd < startIndex + 3 && isDigit(text.charCodeAt(digitsEnd))) digitsEnd += 1;
  return text.slice(startIndex, digitsEnd);
}

export interface FoundCode {
  readonly code: number;
  /** Index of the first digit of the code in the text. */
  readonly index: number;
}

/**
 * Returns the first reply code of class 4 or 5 (RFC 5321 section 4.2) in `text`, or null. A reply code is at the
 * beginning of the text, or follows a punctuation mark or a word such as `error`. A number before a unit such as `MB`
 * is not a reply code.
 */
export function findReplyCode(text: string): FoundCode | null {
  const searchEnd = Math.min(text.length, MAX_LENGTH);
  for (let index = 0; index < searchEnd; index += 1) {
    const charCode = text.charCodeAt(index);
    if ((charCode !== 0x34 && charCode !== 0x35) || (index > 0 && !isCodeStart(text, index))) continue;
    const secondDigit = text.charCodeAt(index + 1);
    if (secondDigit < 0x30 || secondDigit > 0x37 || !isDigit(text.charCodeAt(index + 2)) || !isCodeEnd(text, index + 3))
      continue;
    const code = Number(text.slice(index, index + 3));
    if (code <= 459 || (code >= 500 && code <= 559) || code === 571) return { code, index };
  }
  return null;
}

/**
 * Returns true if a code can begin at `index`: after a punctuation mark, at the beginning of a line, or after a word
 * that mail servers write before a code.
 */
function isCodeStart(text: string, index: number): boolean {
  const precedingCharacter = text.charAt(index - 1);
  if (':;("\'[#=>|\n'.includes(precedingCharacter)) return true;
  if (precedingCharacter !== ' ' && precedingCharacter !== '\t') return false;
  const precedingText = text
    .slice(Math.max(0, index - 24), index)
    .trimEnd()
    .toLowerCase();
  const lastCharacter = precedingText.charAt(precedingText.length - 1);
  return (
    precedingText === '' ||
    ':;>(|-.,<#\n'.includes(lastCharacter) ||
    WORDS_BEFORE_CODE.some((word) => precedingText.endsWith(word))
  );
}

const WORDS_BEFORE_CODE: readonly string[] = parsePhrases(`
  said, error, code, reply, response, smtp, with, returned, was, status, replied, answer, failed, dsn, 550, 554, 553
  reason, command, end of data, is, by, err, antwort, fehler, erreur
`);

/**
 * Returns true if a code can end at `index`: at the end of the text, before punctuation, or before a space, tab or
 * hyphen that is not followed by a unit such as `MB`.
 */
function isCodeEnd(text: string, index: number): boolean {
  const nextCharacter = text.charAt(index);
  if (nextCharacter === '' || '\n\r])"\'<'.includes(nextCharacter)) return true;
  if (':,;.'.includes(nextCharacter)) return !isDigit(text.charCodeAt(index + 1));
  if (!' -\t'.includes(nextCharacter)) return false;
  const word = text
    .slice(index + 1, index + 14)
    .toLowerCase()
    .trimStart();
  return !UNITS_AFTER_NUMBER.some((unit) => word.startsWith(unit));
}

/** Units of quantities. A number before a unit is not a reply code. */
const UNITS_AFTER_NUMBER: readonly string[] = [
  'k ',
  ...parsePhrases('byte, kb, mb, hour, day, minutes, seconds, lines, attempts, times, messages, recipients'),
];

function isDigit(charCode: number): boolean {
  return charCode >= 0x30 && charCode <= 0x39;
}

function isAlphanumeric(charCode: number): boolean {
  return isDigit(charCode) || (charCode >= 0x41 && charCode <= 0x5a) || (charCode >= 0x61 && charCode <= 0x7a);
}
