/** The text form of the UUIDs of messages and of webhook deliveries (RFC 9562 section 4). Pure. */

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Returns true for a UUID in lower case. */
export function isUuid(text: string): boolean {
  return UUID_PATTERN.test(text);
}
