/**
 * The time zone in which the dashboard shows times: UTC, or the zone of the browser. UTC is the default, because
 * commands and log lines contain times in UTC. The browser stores the choice for this origin, and all tabs share the
 * choice.
 */
export type TimeZone = 'utc' | 'local';

const STORAGE_KEY = 'postrider-time-zone';
/** The chosen zone if the browser forbids storage. In this case, the choice is lost when the page is closed. */
let zoneInMemory: TimeZone = 'utc';
const listeners = new Set<() => void>();

export function readTimeZone(): TimeZone {
  try {
    return localStorage.getItem(STORAGE_KEY) === 'local' ? 'local' : 'utc';
  } catch {
    return zoneInMemory;
  }
}

export function storeTimeZone(zone: TimeZone): void {
  zoneInMemory = zone;
  try {
    localStorage.setItem(STORAGE_KEY, zone);
  } catch {
    // If the browser forbids storage, the copy in memory is used.
  }
  for (const listener of listeners) listener();
}

/** Calls `listener` after each choice of a time zone in this tab. The returned function removes the listener. */
export function observeTimeZone(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns the offset of local time from UTC, in minutes, at the time `ms`; 0 if the dashboard shows UTC. */
export function getOffsetMinutes(ms: number): number {
  return readTimeZone() === 'utc' ? 0 : -new Date(ms).getTimezoneOffset();
}
