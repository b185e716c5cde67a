/**
 * Rejects control characters in input. No name, address or text needs them, and PostgreSQL cannot store NUL while SQLite can; the check
 * precedes the store so that both behave alike.
 */

/** The fault of a value in one line, or null. */
export function controlCharacterFault(name: string, value: string): string | null {
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return `${name} must not contain control characters`;
  }
  return null;
}
