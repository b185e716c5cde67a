/**
 * The bounds on what one node holds in memory: leases promised to mail requests being accepted, leased ones that wait, and
 * those under way until their end is recorded. By number, so that a dead node's share is soon redone and an operator can
 * still withdraw what waits for a slow next hop; by size, so that memory stays flat whatever the messages are like. One
 * message larger than the bound is held alone.
 */
import type { ClaimRoom } from '../store/contract.ts';

/** Leases held at once: what is attempted in about `HELD_SECONDS` at the rate of the last while, within these bounds. */
export const HELD_MAILS = 1_024;
const HELD_MAILS_MOST = 8_192;
const HELD_SECONDS = 4;
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
  /** So many attempts ended in the last second: the faster the next hop, the more may wait in memory for it. */
  pace(perSecond: number): void;
  /** What a claim may add, or null where that is too little to be worth one. `waiting` leases wait for their attempt. */
  room(waiting: number): ClaimRoom | null;
}

export function createHeld(): Held {
  let mails = 0;
  let bytes = 0;
  let most = HELD_MAILS;

  return {
    get mails() {
      return mails;
    },
    fits: (size) => mails < most && (mails === 0 || bytes + size <= HELD_BYTES),
    take(size) {
      mails += 1;
      bytes += size;
    },
    free(size) {
      mails -= 1;
      bytes -= size;
    },
    pace(perSecond) {
      most = Math.min(HELD_MAILS_MOST, Math.max(HELD_MAILS, perSecond * HELD_SECONDS));
    },
    room(waiting) {
      if (mails >= most || (mails > 0 && bytes >= HELD_BYTES)) return null;
      // A few large ones at a time would be a claim for each.
      if (waiting > most / 4 || (waiting > 0 && bytes > (HELD_BYTES * 3) / 4)) return null;
      // The store counts UTF-8: at least one byte for each code unit, which takes two bytes here.
      const left = Math.max(0, Math.floor((HELD_BYTES - bytes) / 2));
      return { mails: most - mails, bytes: Math.min(CLAIM_BYTES, left) };
    },
  };
}
