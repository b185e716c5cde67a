/** Entries are separated by commas and line ends. */
export function parsePhrases(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/** Lower case, single spaces, plain apostrophes. Each address becomes `@`, so that no phrase matches within one. */
export function normalizeText(text: string): string {
  const lowerCaseText = text
    .normalize('NFC')
    .toLowerCase()
    .replaceAll('’', "'")
    .replaceAll('‘', "'")
    .replaceAll('`', "'")
    .replace(QUOTED_ADDRESS, '<@>');
  return lowerCaseText
    .split(/[\s\u2028\u2029]/)
    .filter((word) => word !== '')
    .map((word) => (word.includes('@') && !word.startsWith('#') ? removeAddresses(word) : word))
    .join(' ');
}

/** Its quoted local part can contain spaces (RFC 5321 section 4.1.2). */
const QUOTED_ADDRESS = /<"[^"<>]{0,64}"@[^\s<>]{0,255}>/g;

/** `<someone@host.example>...` becomes `<@>...`. */
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
 * A phrase that begins with a letter matches only at the beginning of a word. Its end may be within a word, because
 * endings vary and some scripts have no word boundaries, unless it ends with `$`.
 */
export function containsPhrase(text: string, phrases: readonly string[]): boolean {
  return phrases.some((phrase) => matchesPhrase(text, phrase));
}

function matchesPhrase(text: string, phrase: string): boolean {
  const isWhole = phrase.endsWith('$');
  const words = isWhole ? phrase.slice(0, -1) : phrase;
  for (let index = text.indexOf(words); index >= 0; index = text.indexOf(words, index + words.length)) {
    if (isAsciiLetter(words.charCodeAt(0)) && isAsciiLetter(text.charCodeAt(index - 1))) continue;
    if (!isWhole || !isAsciiLetter(text.charCodeAt(index + words.length))) return true;
  }
  return false;
}

function isAsciiLetter(charCode: number): boolean {
  return charCode >= 0x61 && charCode <= 0x7a;
}
