/**
 * Characters that act on a terminal or on a reader's eye, made visible: C0 and C1 controls and DEL, line and paragraph
 * separators, controls of the Unicode bidirectional algorithm (UAX 9), lone surrogates. Linear in the text; never throws.
 *
 * `escapeJson` keeps the value: what parses it gets the same characters. `printable` is for people and shows each as U+FFFD.
 */

/** True for a UTF-16 code unit that is never printed as it is. Surrogates are looked at in pairs, by the callers. */
export function isUnprintable(unit: number): boolean {
  if (unit < 0x7f) return unit < 0x20;
  if (unit <= 0x9f) return true;
  if (unit < 0x061c) return false;
  return (
    unit === 0x061c ||
    unit === 0x200e ||
    unit === 0x200f ||
    (unit >= 0x2028 && unit <= 0x202e) ||
    (unit >= 0x2066 && unit <= 0x2069)
  );
}

/**
 * JSON text with each such character as `\\uXXXX`. Equal to its input for whatever parses it: outside of strings JSON has no
 * character beyond ASCII, and inside them JSON.stringify has escaped C0 controls and lone surrogates already (RFC 8259
 * section 7). Line feeds and other white space between values are kept.
 */
export function escapeJson(json: string): string {
  return replaceUnits(
    json,
    (unit) => unit >= 0x7f && isUnprintable(unit),
    (unit) => `\\u${unit.toString(16).padStart(4, '0')}`,
  );
}

/** One line: each such character, line breaks too, becomes U+FFFD. */
export function printable(text: string): string {
  return replaceUnits(text.toWellFormed(), isUnprintable, () => '\uFFFD');
}

/** Lines for people: as `printable`, but line feeds, tabs and the escapes of the program's own colours are kept. */
export function printableLines(text: string): string {
  return replaceUnits(
    text.toWellFormed(),
    (unit) => isUnprintable(unit) && unit !== 0x0a && unit !== 0x09 && unit !== 0x1b,
    () => '\uFFFD',
  );
}

function replaceUnits(text: string, isWanted: (unit: number) => boolean, by: (unit: number) => string): string {
  let replaced = '';
  let from = 0;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (!isWanted(unit)) continue;
    replaced += text.slice(from, index) + by(unit);
    from = index + 1;
  }
  return from === 0 ? text : replaced + text.slice(from);
}
