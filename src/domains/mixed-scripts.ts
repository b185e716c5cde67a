/**
 * Which scripts a label of a domain is written in, and whether they belong together (UTS 39 section 5.2, the level
 * "highly restrictive"). Pure. It finds mixtures, not words of one script that look like another's.
 */

const SCRIPTS: readonly (readonly [string, RegExp])[] = [
  ['Latin', /\p{Script=Latin}/u],
  ['Greek', /\p{Script=Greek}/u],
  ['Cyrillic', /\p{Script=Cyrillic}/u],
  ['Armenian', /\p{Script=Armenian}/u],
  ['Georgian', /\p{Script=Georgian}/u],
  ['Hebrew', /\p{Script=Hebrew}/u],
  ['Arabic', /\p{Script=Arabic}/u],
  ['Devanagari', /\p{Script=Devanagari}/u],
  ['Thai', /\p{Script=Thai}/u],
  ['Cherokee', /\p{Script=Cherokee}/u],
  ['Han', /\p{Script=Han}/u],
  ['Hiragana', /\p{Script=Hiragana}/u],
  ['Katakana', /\p{Script=Katakana}/u],
  ['Bopomofo', /\p{Script=Bopomofo}/u],
  ['Hangul', /\p{Script=Hangul}/u],
];

/** Digits, hyphens and marks, which go with any script. */
const NEUTRAL = /\p{Script=Common}|\p{Script=Inherited}/u;
const OTHER = 'other';

/** How Japanese, Chinese and Korean are written, with Latin among them. */
const COMBINABLE_SCRIPTS: readonly (readonly string[])[] = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
];

/** The scripts of the label where they are not written together, else null. */
export function findMixedScripts(label: string): readonly string[] | null {
  const scripts = new Set<string>();
  for (const character of label) {
    if (NEUTRAL.test(character)) continue;
    scripts.add(SCRIPTS.find(([, pattern]) => pattern.test(character))?.[0] ?? OTHER);
  }
  if (scripts.size < 2) return null;
  const found = [...scripts];
  return COMBINABLE_SCRIPTS.some((combination) => found.every((script) => combination.includes(script))) ? null : found;
}
