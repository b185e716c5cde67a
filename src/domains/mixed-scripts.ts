/**
 * UTS 39 section 5.2, level "highly restrictive". A label in one script that looks like a label in another is not
 * detected.
 */

const SCRIPT_PATTERNS: readonly (readonly [string, RegExp])[] = [
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

/** Digits, hyphens and marks, which are allowed in any script. */
const NEUTRAL_CHARACTER = /\p{Script=Common}|\p{Script=Inherited}/u;
const OTHER_SCRIPT = 'other';

/** Latin with the scripts of Japanese, of Chinese or of Korean. */
const COMBINABLE_SCRIPTS: readonly (readonly string[])[] = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
];

export function findMixedScripts(label: string): readonly string[] | null {
  const scripts = new Set<string>();
  for (const character of label) {
    if (NEUTRAL_CHARACTER.test(character)) continue;
    scripts.add(SCRIPT_PATTERNS.find(([, pattern]) => pattern.test(character))?.[0] ?? OTHER_SCRIPT);
  }
  if (scripts.size < 2) return null;
  const foundScripts = [...scripts];
  return COMBINABLE_SCRIPTS.some((combination) => foundScripts.every((script) => combination.includes(script)))
    ? null
    : foundScripts;
}
