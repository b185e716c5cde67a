/**
 * What the feedback listener takes from one peer and from all of them: messages per second, charged at DATA, and bytes of
 * messages that are being received. Bounded memory. A peer is an IPv4 address or an IPv6 network of 64 bits: the owner of
 * one such address has them all. Budgets are generous: a relay or a large provider brings all its reports from few addresses.
 */
import { peerNetworkOf } from '../model/address.ts';

interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** Messages of one peer, to whomever. */
export const PEER_MESSAGE_RATE: Rate = { burst: 500, perSecond: 50 };
/** Messages to `postmaster` and `abuse` from one peer, and from all: anybody may write there, and each is kept. */
export const PEER_ROLE_MESSAGE_RATE: Rate = { burst: 60, perSecond: 1 };
export const TOTAL_ROLE_MESSAGE_RATE: Rate = { burst: 300, perSecond: 5 };
/** Bytes of messages that are being received or recorded, of one peer and of all. */
export const MAX_BUFFERED_BYTES = { perPeer: 16 * 1_048_576, total: 64 * 1_048_576 } as const;
/** Peers that are remembered; beyond that the ones with full buckets are forgotten. */
const MAX_PEERS = 10_000;

/** Whom a message is for: a return path of this installation, or a role mailbox, which anybody can write to. */
export type RecipientKind = 'return-path' | 'role';

export interface PeerLimits {
  /** True where this address may send one more message at `now` (ms). Charges nothing. */
  allows(address: string, kind: RecipientKind, now: number): boolean;
  /** The same, and charges the message where it is true. */
  charge(address: string, kind: RecipientKind, now: number): boolean;
  /** True where so many more bytes may be kept; `release` must follow then. */
  reserveBytes(address: string, bytes: number): boolean;
  releaseBytes(address: string, bytes: number): void;
}

export function createPeerLimits(): PeerLimits {
  const messages = createBuckets(PEER_MESSAGE_RATE);
  const role = createBuckets(PEER_ROLE_MESSAGE_RATE);
  const allRole = createBuckets(TOTAL_ROLE_MESSAGE_RATE);
  const held = new Map<string, number>();
  let allHeld = 0;

  const may = (peer: string, kind: RecipientKind, now: number): boolean =>
    messages.level(peer, now) >= 1 &&
    (kind === 'return-path' || (role.level(peer, now) >= 1 && allRole.level('', now) >= 1));

  return {
    allows: (address, kind, now) => may(peerNetworkOf(address), kind, now),
    charge(address, kind, now) {
      const peer = peerNetworkOf(address);
      if (!may(peer, kind, now)) return false;
      messages.take(peer, now);
      if (kind === 'role') {
        role.take(peer, now);
        allRole.take('', now);
      }
      return true;
    },
    reserveBytes(address, bytes) {
      const peer = peerNetworkOf(address);
      const own = held.get(peer) ?? 0;
      if (own + bytes > MAX_BUFFERED_BYTES.perPeer || allHeld + bytes > MAX_BUFFERED_BYTES.total) return false;
      held.set(peer, own + bytes);
      allHeld += bytes;
      return true;
    },
    releaseBytes(address, bytes) {
      const peer = peerNetworkOf(address);
      const left = (held.get(peer) ?? 0) - bytes;
      allHeld -= bytes;
      if (left > 0) held.set(peer, left);
      else held.delete(peer);
    },
  };
}

interface Buckets {
  /** Tokens that are left. */
  level(peer: string, now: number): number;
  take(peer: string, now: number): void;
}

/** A token bucket for each peer. */
function createBuckets({ burst, perSecond }: Rate): Buckets {
  const buckets = new Map<string, { readonly tokens: number; readonly at: number }>();

  const level = (peer: string, now: number): number => {
    const bucket = buckets.get(peer);
    if (bucket === undefined) return burst;
    return Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) * perSecond) / 1000);
  };

  function forget(now: number): void {
    for (const peer of buckets.keys()) if (level(peer, now) >= burst) buckets.delete(peer);
    // Every one of them busy: the oldest goes, and begins anew.
    for (const peer of buckets.keys()) {
      if (buckets.size < MAX_PEERS) return;
      buckets.delete(peer);
    }
  }

  return {
    level,
    take(peer, now) {
      if (!buckets.has(peer) && buckets.size >= MAX_PEERS) forget(now);
      buckets.set(peer, { tokens: level(peer, now) - 1, at: now });
    },
  };
}
