/**
 * No name, address or text needs control characters. PostgreSQL cannot store NUL, but SQLite can, so the input is
 * checked.
 */

/** A text of several lines may contain tabs and line ends. */
export function findControlCharacterFault(name: string, value: string, isMultiline = false): string | null {
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index);
    if (isMultiline && (code === 0x09 || code === 0x0a || code === 0x0d)) continue;
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return `${name} must not contain control characters`;
  }
  return null;
}
