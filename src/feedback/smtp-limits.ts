/**
 * What the feedback listener lets one peer and all of them do: connections at once, messages a second. Bounded memory. A peer
 * is an IPv4 address or an IPv6 network of 64 bits: whoever has one such address has them all.
 */
import { peerOf } from '../record/peer.ts';

/** Connections of one address, and of all. */
export const CONNECTIONS = { each: 20, all: 200 } as const;
/** Messages of one address: so many at once, and so many a second after that. A relay brings all its bounces alone. */
export const MESSAGES = { burst: 500, perSecond: 50 } as const;
/** Messages to `postmaster` and `abuse` from all peers: anybody may write there, and each is kept. */
export const ROLE_MESSAGES = { burst: 30, perSecond: 1 } as const;
/** Addresses that are remembered; beyond that the ones with full buckets are forgotten. */
const MOST_ADDRESSES = 10_000;

interface Bucket {
  tokens: number;
  at: number;
}

export interface PeerLimits {
  /** True where one more connection of this address may stay; `leave` must follow then. */
  enter(address: string): boolean;
  leave(address: string): void;
  /** True where this address may send one more message at `now` (ms). */
  message(address: string, now: number): boolean;
  /** True where one more message to a role mailbox is taken from anybody at `now` (ms). */
  roleMessage(now: number): boolean;
}

export function createPeerLimits(): PeerLimits {
  const connections = new Map<string, number>();
  const buckets = new Map<string, Bucket>();
  let all = 0;
  let role: Bucket = { tokens: ROLE_MESSAGES.burst, at: 0 };

  function forget(now: number): void {
    for (const [address, bucket] of buckets) {
      if (levelOf(bucket, now) >= MESSAGES.burst) buckets.delete(address);
    }
    // Every one of them busy: the oldest goes, and begins anew.
    for (const address of buckets.keys()) {
      if (buckets.size < MOST_ADDRESSES) return;
      buckets.delete(address);
    }
  }

  return {
    enter(full) {
      const address = peerOf(full);
      const own = connections.get(address) ?? 0;
      if (own >= CONNECTIONS.each || all >= CONNECTIONS.all) return false;
      connections.set(address, own + 1);
      all += 1;
      return true;
    },
    leave(full) {
      const address = peerOf(full);
      const own = connections.get(address) ?? 0;
      if (own === 0) return;
      all -= 1;
      if (own === 1) connections.delete(address);
      else connections.set(address, own - 1);
    },
    message(full, now) {
      const address = peerOf(full);
      const bucket = buckets.get(address);
      if (bucket === undefined && buckets.size >= MOST_ADDRESSES) forget(now);
      const level = bucket === undefined ? MESSAGES.burst : levelOf(bucket, now);
      if (level < 1) return false;
      buckets.set(address, { tokens: level - 1, at: now });
      return true;
    },
    roleMessage(now) {
      const level = levelOf(role, now, ROLE_MESSAGES);
      if (level < 1) return false;
      role = { tokens: level - 1, at: now };
      return true;
    },
  };
}

function levelOf({ tokens, at }: Bucket, now: number, { burst, perSecond } = MESSAGES as Rate): number {
  return Math.min(burst, tokens + (Math.max(0, now - at) * perSecond) / 1000);
}

interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}
