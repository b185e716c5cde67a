/**
 * The last look before a message is handed over: is its recipient suppressed by now? What waited in memory was looked up
 * when it was accepted or leased. What this node itself has just suppressed it knows at once; what anybody else may have
 * suppressed since is asked of the store, in batches, once the last look is a second old.
 */

import type { Clock } from '../clock.ts';
import { canonicalAddress, parseAddress } from '../model/address.ts';
import type { Change, LeasedMail } from '../model/message.ts';
import { LEASE_MS } from './dispatcher.ts';

const FRESH_MS = 1_000;
/** So long this node goes by its own knowledge; by then the store has it, and knows whether it was taken back. */
const REMEMBER_MS = 5_000;
/** Recipients remembered at most. */
const REMEMBERED = 10_000;

export interface Screening {
  /** False where it must not be sent. */
  wanted(mail: LeasedMail): boolean | Promise<boolean>;
  /** A change that is on its way into the store. */
  note(mail: LeasedMail, change: Change): void;
}

/** `screen` asks the store. */
export function createScreening(clock: Clock, screen: (mail: LeasedMail) => Promise<boolean>): Screening {
  /** When each was suppressed, by account and recipient; the latest is the last. */
  const suppressed = new Map<string, number>();
  return {
    wanted(mail) {
      const now = clock.now();
      const at = suppressed.size === 0 ? undefined : suppressed.get(keyOf(mail));
      if (at !== undefined && now - at < REMEMBER_MS) return false;
      return now - (mail.lease.until - LEASE_MS) < FRESH_MS || screen(mail);
    },
    note(mail, { suppress }) {
      if (suppress === null) return;
      const now = clock.now();
      for (const [key, at] of suppressed) {
        if (now - at < REMEMBER_MS) break;
        suppressed.delete(key);
      }
      if (suppressed.size >= REMEMBERED) suppressed.clear();
      const key = keyOf(mail);
      suppressed.delete(key);
      suppressed.set(key, now);
    },
  };
}

/** Account and recipient as suppression lists have it; accepted mail has no other recipients than valid ones. */
function keyOf({ accountId, to }: LeasedMail): string {
  const address = parseAddress(to);
  return `${accountId} ${address === null ? to : canonicalAddress(address)}`;
}
