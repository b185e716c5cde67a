/**
 * Words, as search knows them: the same for what is written in mail and for what an operator asks, on every store. Case, accents
 * and compatibility forms make no difference (`GRÜSSE`, `Grüße` and `gruesse` differ by the last one only).
 */

/** Longer words are told apart by their beginning only. */
const LONGEST_WORD = 40;

const ACCENTS = /[\u0300-\u036f]/g;
const ASCII_WORDS = /[a-z0-9]+/g;
/**
 * Scripts that put no space between words: each of their letters, with its marks, is a word of its own, so that a part of a
 * sentence is found by its letters.
 */
const WORDS =
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]\p{M}*|[[\p{L}\p{N}\p{M}]--[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]]+|\p{So}/gv;

/** The text as it is compared. */
export function fold(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  // Upper case first: it alone tells that ß is SS. A sigma at the end of a word is a sigma.
  const cased = text.normalize('NFKD').replaceAll(ACCENTS, '').toUpperCase().toLowerCase().replaceAll('ς', 'σ');
  return cased.normalize('NFC');
}

/** The words of a folded text, in order. */
export function wordsOf(folded: string): readonly string[] {
  const found = folded.match(isAscii(folded) ? ASCII_WORDS : WORDS) ?? [];
  return found.map((word) => cutTo(LONGEST_WORD, word));
}

/** At most so many units of the text, no character parted. */
export function cutTo(most: number, text: string): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 127) return false;
  return true;
}
