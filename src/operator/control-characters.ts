/**
 * Rejects control characters in input. No name, address or text needs them, and PostgreSQL cannot store NUL while SQLite can; the check
 * precedes the store so that both behave alike.
 */

/** The fault of a value in one line, or null. */
export function controlCharacterFault(name: string, value: string): string | null {
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index);
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return `${name} must not contain control characters`;
  }
  return null;
}
