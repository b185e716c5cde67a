/** Parses JSON of unknown origin. */

/**
 * The members of a JSON value. Every value except null has this type, because reading a member of a text or a number
 * causes no error.
 */
export type JsonMembers = Readonly<Record<string, unknown>>;

/** Parses a JSON text. Returns null, and never throws, if the text is not JSON. */
export function parseJson(text: string): JsonMembers | null {
  try {
    return JSON.parse(text) as JsonMembers | null;
  } catch {
    return null;
  }
}
