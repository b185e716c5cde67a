/** Ranges of ids: a UUIDv7 begins with its time in milliseconds (RFC 9562 section 5.7), so a range of time is a range of ids. */

/** The least id that can be made at `ms`. */
export function firstIdAt(ms: number): string {
  return idOf(ms, '0000-0000-000000000000');
}

/** The greatest id that can be made at `ms`. */
export function lastIdAt(ms: number): string {
  return idOf(ms, 'ffff-ffff-ffffffffffff');
}

function idOf(ms: number, rest: string): string {
  const time = Math.max(0, Math.floor(ms)).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-${rest}`;
}
