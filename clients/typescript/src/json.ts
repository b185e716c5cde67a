/** Parses JSON of unknown origin. */

/**
 * The members of a JSON value. A string, a number and a boolean also have this type, because reading a member of these
 * values causes no error.
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
