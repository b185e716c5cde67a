/** Reads JSON objects. A text of another form is null, never an exception. */

/** A JSON object whose members are not checked. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Returns true if a value is an object or an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null;
}

/** Parses a text. Returns null if the text is not JSON or not an object. */
export function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
