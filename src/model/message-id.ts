/**
 * Identifiers of mail requests: lower-case UUIDv7 (RFC 9562 section 5.7), strictly increasing within one process and
 * after a restart, also when the clock goes back. The first 60 bits (48 of time, 12 of a counter, section 6.2
 * method 1) order them; the last 62 are random, so an id cannot be guessed.
 */

const COUNTER_END = 4096;

export interface MailIds {
  /** The next id for `now` (milliseconds since the epoch). */
  next(now: number): string;
}

/**
 * Makes ids after `last` (the greatest id the store has seen, or null). `randomUuid` gives a version 4 UUID, whose
 * variant and random bits become the tail.
 */
export function mailIds(last: string | null, randomUuid: () => string): MailIds {
  let lastMs = last === null ? 0 : timeOf(last);
  let counter = last === null ? 0 : counterOf(last) + 1;
  let head = '';
  return {
    next(now) {
      if (now > lastMs) {
        lastMs = now;
        counter = 0;
        head = '';
      } else if (counter >= COUNTER_END) {
        lastMs += 1;
        counter = 0;
        head = '';
      }
      if (head === '') {
        const hex = lastMs.toString(16).padStart(12, '0');
        head = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
      }
      const id = head + counter.toString(16).padStart(3, '0') + randomUuid().slice(18);
      counter += 1;
      return id;
    },
  };
}

/** Milliseconds since the epoch held by a UUIDv7. */
export function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The 12 bits after the version. */
export function counterOf(id: string): number {
  return Number.parseInt(id.slice(15, 18), 16);
}

/** True for a lower-case UUIDv7; linear, 36 characters at most. */
export function isMailId(text: string): boolean {
  return text.length === 36 && /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(text);
}
