/**
 * Parses phrase lists, and searches untrusted text for phrases. The cost per phrase is linear in the length of the
 * text.
 */

/** Parses a phrase list, whose entries are separated by commas and line ends. */
export function parsePhrases(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/**
 * Normalizes text for the phrase search: lower case, single spaces, plain apostrophes. Every address is replaced by
 * `@`, so that no phrase matches within an address.
 */
export function normalizeText(text: string): string {
  const lowerCaseText = text
    .normalize('NFC')
    .toLowerCase()
    .replaceAll('’', "'")
    .replaceAll('‘', "'")
    .replaceAll('`', "'");
  return lowerCaseText
    .split(/[\s\u2028\u2029]/)
    .filter((word) => word !== '')
    .map((word) => (word.includes('@') && !word.startsWith('#') ? removeAddresses(word) : word))
    .join(' ');
}

/** Replaces each address by `@`: `<someone@host.example>...` becomes `<@>...`. The enclosing characters remain. */
function removeAddresses(word: string): string {
  let resultText = '';
  let copiedEnd = 0;
  for (let atSignIndex = word.indexOf('@'); atSignIndex >= 0; atSignIndex = word.indexOf('@', copiedEnd)) {
    let addressStart = atSignIndex;
    while (addressStart > copiedEnd && !ENCLOSING_CHARACTERS.includes(word.charAt(addressStart - 1))) addressStart -= 1;
    let addressEnd = atSignIndex + 1;
    while (addressEnd < word.length && !ENCLOSING_CHARACTERS.includes(word.charAt(addressEnd))) addressEnd += 1;
    resultText += `${word.slice(copiedEnd, addressStart)}@`;
    copiedEnd = addressEnd;
  }
  return resultText + word.slice(copiedEnd);
}

const ENCLOSING_CHARACTERS = '<>()[]{}:;,"';

/**
 * Returns true if the normalized text contains one of the phrases. A phrase that begins with a letter matches only at
 * the beginning of a word.
 */
export function containsPhrase(text: string, phrases: readonly string[]): boolean {
  return phrases.some((phrase) => matchesPhrase(text, phrase));
}

function matchesPhrase(text: string, phrase: string): boolean {
  for (let index = text.indexOf(phrase); index >= 0; index = text.indexOf(phrase, index + phrase.length)) {
    // Only the beginning of a match must be a word boundary, because endings vary (`bounced`, `disabled`) and some
    // scripts have no word boundaries.
    if (!isAsciiLetter(phrase.charCodeAt(0)) || !isAsciiLetter(text.charCodeAt(index - 1))) return true;
  }
  return false;
}

function isAsciiLetter(charCode: number): boolean {
  return charCode >= 0x61 && charCode <= 0x7a;
}
