/**
 * Refuses control characters in input, because no name, address or text needs them. PostgreSQL cannot store NUL, but
 * SQLite can. The input is checked before it reaches the store, so the result is the same for both databases.
 */

/**
 * Returns an error message of one line for a value with control characters, or null. A text of several lines may
 * contain tabs, line feeds and carriage returns.
 */
export function findControlCharacterFault(name: string, value: string, isMultiline = false): string | null {
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index);
    if (isMultiline && (code === 0x09 || code === 0x0a || code === 0x0d)) continue;
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return `${name} must not contain control characters`;
  }
  return null;
}
