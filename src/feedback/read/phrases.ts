/** Phrases as data, and how they are looked for in the text of strangers: linear in the text for each phrase. */

/** A list as it is written in the data files: entries parted by commas or line ends. */
export function parsePhrases(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/**
 * Text made ready for `holds`: lower case, white space (line ends too) as single spaces, plain apostrophes, and every word
 * with an at sign in it as a bare `@`, so that nothing is known by a name in an address.
 */
export function normalizeText(text: string): string {
  const lower = text.normalize('NFC').toLowerCase().replaceAll('’', "'").replaceAll('‘', "'").replaceAll('`', "'");
  return lower
    .split(/[\s\u2028\u2029]/)
    .filter((word) => word !== '')
    .map((word) => (word.includes('@') && !word.startsWith('#') ? withoutAddress(word) : word))
    .join(' ');
}

/** `<someone@host.example>...` as `<@>...`: what encloses the address stays. */
function withoutAddress(word: string): string {
  let out = '';
  let from = 0;
  for (let sign = word.indexOf('@'); sign >= 0; sign = word.indexOf('@', from)) {
    let start = sign;
    while (start > from && !ENCLOSING.includes(word.charAt(start - 1))) start -= 1;
    let end = sign + 1;
    while (end < word.length && !ENCLOSING.includes(word.charAt(end))) end += 1;
    out += `${word.slice(from, start)}@`;
    from = end;
  }
  return out + word.slice(from);
}

const ENCLOSING = '<>()[]{}:;,"';

/** Whether the text (of `normalizeText`) has one of the phrases. A phrase that begins or ends with a letter is a word there. */
export function containsPhrase(text: string, phrases: readonly string[]): boolean {
  return phrases.some((phrase) => holdsOne(text, phrase));
}

function holdsOne(text: string, phrase: string): boolean {
  for (let at = text.indexOf(phrase); at >= 0; at = text.indexOf(phrase, at + phrase.length)) {
    // Only the beginning is held to a word: endings are grammar (`bounced`, `disabled`), and some scripts have no words.
    if (!isAsciiLetter(phrase.charCodeAt(0)) || !isAsciiLetter(text.charCodeAt(at - 1))) return true;
  }
  return false;
}

function isAsciiLetter(c: number): boolean {
  return c >= 0x61 && c <= 0x7a;
}
