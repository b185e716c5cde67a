/**
 * The bounds on what one node holds in memory: leases promised to mail requests being accepted, leased ones that wait, and
 * those under way until their end is recorded. By number, so that a dead node's share is soon redone; by size, so that
 * memory stays flat whatever the messages are like. One message larger than the bound is held alone.
 */
import type { ClaimRoom } from '../store/store.ts';

/** Leases held at once. */
export const HELD_MAILS = 1_024;
/** Message text held at once, in bytes of memory. */
export const HELD_BYTES = 32 * 1024 * 1024;
/** Message text of one claim, which is in memory twice while it crosses from the store's thread. */
const CLAIM_BYTES = 16 * 1024 * 1024;

/** Bytes of memory a message's text takes at most: two for each UTF-16 code unit. */
export function sizeOf({ message }: { readonly message: string }): number {
  return 2 * message.length;
}

export interface Held {
  readonly mails: number;
  /** True where one more of `size` bytes may be held. */
  fits(size: number): boolean;
  take(size: number): void;
  free(size: number): void;
  /** What a claim may add, or null where that is too little to be worth one. `waiting` leases wait for their attempt. */
  room(waiting: number): ClaimRoom | null;
}

export function createHeld(): Held {
  let mails = 0;
  let bytes = 0;

  return {
    get mails() {
      return mails;
    },
    fits: (size) => mails < HELD_MAILS && (mails === 0 || bytes + size <= HELD_BYTES),
    take(size) {
      mails += 1;
      bytes += size;
    },
    free(size) {
      mails -= 1;
      bytes -= size;
    },
    room(waiting) {
      if (mails >= HELD_MAILS || (mails > 0 && bytes >= HELD_BYTES)) return null;
      // A few large ones at a time would be a claim for each.
      if (waiting > HELD_MAILS / 4 || (waiting > 0 && bytes > (HELD_BYTES * 3) / 4)) return null;
      // The store counts UTF-8: at least one byte for each code unit, which takes two bytes here.
      const left = Math.max(0, Math.floor((HELD_BYTES - bytes) / 2));
      return { mails: HELD_MAILS - mails, bytes: Math.min(CLAIM_BYTES, left) };
    },
  };
}
