/** Phrase lists, and the search for phrases in untrusted text. The cost is linear in the text per phrase. */

/** Parses a phrase list; commas and line ends separate the entries. */
export function parsePhrases(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/**
 * Normalizes text for the phrase search: lower case, single spaces, plain apostrophes. Every address becomes a bare `@`, so that
 * no phrase matches within an address.
 */
export function normalizeText(text: string): string {
  const lower = text.normalize('NFC').toLowerCase().replaceAll('’', "'").replaceAll('‘', "'").replaceAll('`', "'");
  return lower
    .split(/[\s\u2028\u2029]/)
    .filter((word) => word !== '')
    .map((word) => (word.includes('@') && !word.startsWith('#') ? removeAddresses(word) : word))
    .join(' ');
}

/** Replaces each address by `@`: `<someone@host.example>...` becomes `<@>...`. The enclosing characters remain. */
function removeAddresses(word: string): string {
  let out = '';
  let from = 0;
  for (let atSign = word.indexOf('@'); atSign >= 0; atSign = word.indexOf('@', from)) {
    let start = atSign;
    while (start > from && !ENCLOSING_CHARACTERS.includes(word.charAt(start - 1))) start -= 1;
    let end = atSign + 1;
    while (end < word.length && !ENCLOSING_CHARACTERS.includes(word.charAt(end))) end += 1;
    out += `${word.slice(from, start)}@`;
    from = end;
  }
  return out + word.slice(from);
}

const ENCLOSING_CHARACTERS = '<>()[]{}:;,"';

/**
 * Returns true when the normalized text contains one of the phrases. A phrase that begins with a letter matches only at the
 * beginning of a word.
 */
export function containsPhrase(text: string, phrases: readonly string[]): boolean {
  return phrases.some((phrase) => matchesPhrase(text, phrase));
}

function matchesPhrase(text: string, phrase: string): boolean {
  for (let at = text.indexOf(phrase); at >= 0; at = text.indexOf(phrase, at + phrase.length)) {
    // Only the beginning must be a word boundary: endings vary (`bounced`, `disabled`), and some scripts have no word boundaries.
    if (!isAsciiLetter(phrase.charCodeAt(0)) || !isAsciiLetter(text.charCodeAt(at - 1))) return true;
  }
  return false;
}

function isAsciiLetter(c: number): boolean {
  return c >= 0x61 && c <= 0x7a;
}
