/** Ranges of ids: a UUIDv7 begins with its time (RFC 9562 section 5.7), so a range of time is a range of ids. */
import type { MailSearch } from '../search.ts';
import { seqOf } from '../seq.ts';

/** From `first` to before `past`. */
export interface Window {
  readonly first: string;
  readonly past: string;
}

/** Before every id, and past every id. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const PAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The place of the first. */
export const START = seqOf(FIRST_ID);

export function windowOf({ since, until, before }: Pick<MailSearch, 'since' | 'until' | 'before'>): Window {
  const past = until === null ? PAST_ID : leastIdAt(until);
  return {
    first: since === null ? FIRST_ID : leastIdAt(since),
    past: before !== null && before < past ? before : past,
  };
}

/** Less than every id made at `ms` or later, and greater than all before. */
export function leastIdAt(ms: number): string {
  const time = Math.min(Math.max(0, Math.floor(ms)), 0xffff_ffff_ffff)
    .toString(16)
    .padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}
