/**
 * Control characters in what a request gives: no name, address or text of ours holds any, and one of them (NUL) PostgreSQL cannot
 * store and SQLite can. So they are refused before either store is asked.
 */

/** One line on what is wrong with a value, or null. */
export function controlCharacterFault(name: string, value: string): string | null {
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return `${name} must not hold control characters`;
  }
  return null;
}
