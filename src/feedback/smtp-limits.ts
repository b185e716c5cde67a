/**
 * Rate limits of the feedback listener per peer and in total: messages per second, charged at DATA, and bytes of messages that
 * are being received. Memory is bounded. A peer is an IPv4 address or an IPv6 /64 network, because the owner of one address of
 * a /64 owns all of them. The limits are high: a relay or a large provider sends all its reports from few addresses.
 */
import { toPeerNetwork } from '../model/address.ts';

interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** Rate limit for all messages of one peer. */
export const PEER_MESSAGE_RATE: Rate = { burst: 500, perSecond: 50 };
/**
 * Rate limits for messages to `postmaster` and `abuse`, from one peer and in total. Any client can send them, and each one is
 * stored.
 */
export const PEER_ROLE_MESSAGE_RATE: Rate = { burst: 60, perSecond: 1 };
export const TOTAL_ROLE_MESSAGE_RATE: Rate = { burst: 300, perSecond: 5 };
/** Maximum number of bytes of messages that are being received or recorded, per peer and in total. */
export const MAX_BUFFERED_BYTES = { perPeer: 16 * 1_048_576, total: 64 * 1_048_576 } as const;
/** Maximum number of peers with a bucket. Above this number, peers with full buckets are removed first. */
const MAX_PEERS = 10_000;

/** The kind of recipient: a return path of this installation, or a role mailbox, to which any client can send. */
export type RecipientKind = 'return-path' | 'role';

export interface PeerLimits {
  /** Returns true if this address may send one more message at `now` (ms). Consumes no token. */
  allows(address: string, kind: RecipientKind, now: number): boolean;
  /** Returns the result of `allows`. If the result is true, consumes the tokens. */
  charge(address: string, kind: RecipientKind, now: number): boolean;
  /** Reserves bytes for a message. If the result is true, the caller must release the bytes. */
  reserveBytes(address: string, bytes: number): boolean;
  releaseBytes(address: string, bytes: number): void;
}

export function createPeerLimits(): PeerLimits {
  const messages = createBuckets(PEER_MESSAGE_RATE);
  const role = createBuckets(PEER_ROLE_MESSAGE_RATE);
  const allRole = createBuckets(TOTAL_ROLE_MESSAGE_RATE);
  const bufferedBytes = new Map<string, number>();
  let totalBufferedBytes = 0;

  const isAllowed = (peer: string, kind: RecipientKind, now: number): boolean =>
    messages.available(peer, now) >= 1 &&
    (kind === 'return-path' || (role.available(peer, now) >= 1 && allRole.available('', now) >= 1));

  return {
    allows: (address, kind, now) => isAllowed(toPeerNetwork(address), kind, now),
    charge(address, kind, now) {
      const peer = toPeerNetwork(address);
      if (!isAllowed(peer, kind, now)) return false;
      messages.consume(peer, now);
      if (kind === 'role') {
        role.consume(peer, now);
        allRole.consume('', now);
      }
      return true;
    },
    reserveBytes(address, bytes) {
      const peer = toPeerNetwork(address);
      const peerBytes = bufferedBytes.get(peer) ?? 0;
      if (peerBytes + bytes > MAX_BUFFERED_BYTES.perPeer || totalBufferedBytes + bytes > MAX_BUFFERED_BYTES.total)
        return false;
      bufferedBytes.set(peer, peerBytes + bytes);
      totalBufferedBytes += bytes;
      return true;
    },
    releaseBytes(address, bytes) {
      const peer = toPeerNetwork(address);
      const remainingBytes = (bufferedBytes.get(peer) ?? 0) - bytes;
      totalBufferedBytes -= bytes;
      if (remainingBytes > 0) bufferedBytes.set(peer, remainingBytes);
      else bufferedBytes.delete(peer);
    },
  };
}

interface Buckets {
  /** Returns the available tokens. */
  available(peer: string, now: number): number;
  consume(peer: string, now: number): void;
}

/** Creates one token bucket per peer. */
function createBuckets({ burst, perSecond }: Rate): Buckets {
  const buckets = new Map<string, { readonly tokens: number; readonly at: number }>();

  const available = (peer: string, now: number): number => {
    const bucket = buckets.get(peer);
    if (bucket === undefined) return burst;
    return Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) * perSecond) / 1000);
  };

  function evictBuckets(now: number): void {
    for (const peer of buckets.keys()) if (available(peer, now) >= burst) buckets.delete(peer);
    // All buckets are in use, so the oldest one is removed. Its peer starts again with a full bucket.
    for (const peer of buckets.keys()) {
      if (buckets.size < MAX_PEERS) return;
      buckets.delete(peer);
    }
  }

  return {
    available,
    consume(peer, now) {
      if (!buckets.has(peer) && buckets.size >= MAX_PEERS) evictBuckets(now);
      buckets.set(peer, { tokens: available(peer, now) - 1, at: now });
    },
  };
}
