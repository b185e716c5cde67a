/**
 * Limits of the feedback listener per peer and in total: messages per second, counted at DATA, and bytes of messages
 * that are being received. Memory is bounded. A peer is an IPv4 address or an IPv6 /64 network, because the owner of
 * one address of a /64 owns the whole network. The limits are high, because a relay or a large provider sends all its
 * reports from few addresses.
 */
import { toPeerNetwork } from '../model/address.ts';

interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** Rate limit for all messages of one peer. */
export const PEER_MESSAGE_RATE: Rate = { burst: 500, perSecond: 50 };
/**
 * Rate limits for messages to `postmaster` and `abuse`, from one peer and in total. Any client can send such messages,
 * and each message is stored.
 */
export const PEER_ROLE_MESSAGE_RATE: Rate = { burst: 60, perSecond: 1 };
export const TOTAL_ROLE_MESSAGE_RATE: Rate = { burst: 300, perSecond: 5 };
/** Maximum number of bytes of messages that are being received or recorded, per peer and in total. */
export const MAX_BUFFERED_BYTES = { perPeer: 16 * 1_048_576, total: 64 * 1_048_576 } as const;
/** Maximum number of peers with a bucket. At this number, peers with full buckets are removed first. */
const MAX_PEERS = 10_000;

/** The kind of recipient: a return path of this installation, or a role mailbox, to which any client can send. */
export type RecipientKind = 'return-path' | 'role';

export interface PeerLimits {
  /**
   * Returns true if this address may send one more message at `now`, in milliseconds since the epoch. Consumes no
   * token.
   */
  allowsMessage(address: string, kind: RecipientKind, now: number): boolean;
  /** Returns the result of `allowsMessage`. If the result is true, also consumes the tokens of the message. */
  consumeMessageTokens(address: string, kind: RecipientKind, now: number): boolean;
  /** Reserves bytes for a message. Returns false if a limit prevents this. The caller must release reserved bytes. */
  reserveBytes(address: string, bytes: number): boolean;
  releaseBytes(address: string, bytes: number): void;
}

/** Creates the limits of one listener. */
export function createPeerLimits(): PeerLimits {
  const peerBuckets = createBuckets(PEER_MESSAGE_RATE);
  const peerRoleBuckets = createBuckets(PEER_ROLE_MESSAGE_RATE);
  const totalRoleBuckets = createBuckets(TOTAL_ROLE_MESSAGE_RATE);
  const bufferedBytes = new Map<string, number>();
  let totalBufferedBytes = 0;

  const isAllowed = (peer: string, kind: RecipientKind, now: number): boolean =>
    peerBuckets.countTokens(peer, now) >= 1 &&
    (kind === 'return-path' ||
      (peerRoleBuckets.countTokens(peer, now) >= 1 && totalRoleBuckets.countTokens('', now) >= 1));

  return {
    allowsMessage: (address, kind, now) => isAllowed(toPeerNetwork(address), kind, now),
    consumeMessageTokens(address, kind, now) {
      const peer = toPeerNetwork(address);
      if (!isAllowed(peer, kind, now)) return false;
      peerBuckets.consumeToken(peer, now);
      if (kind === 'role') {
        peerRoleBuckets.consumeToken(peer, now);
        totalRoleBuckets.consumeToken('', now);
      }
      return true;
    },
    reserveBytes(address, bytes) {
      const peer = toPeerNetwork(address);
      const peerBufferedBytes = bufferedBytes.get(peer) ?? 0;
      if (
        peerBufferedBytes + bytes > MAX_BUFFERED_BYTES.perPeer ||
        totalBufferedBytes + bytes > MAX_BUFFERED_BYTES.total
      )
        return false;
      bufferedBytes.set(peer, peerBufferedBytes + bytes);
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

interface PeerBuckets {
  /** Returns the number of available tokens. */
  countTokens(peer: string, now: number): number;
  consumeToken(peer: string, now: number): void;
}

/** Creates one token bucket per peer. */
function createBuckets({ burst, perSecond }: Rate): PeerBuckets {
  const buckets = new Map<string, { readonly tokens: number; readonly at: number }>();

  const countTokens = (peer: string, now: number): number => {
    const bucket = buckets.get(peer);
    if (bucket === undefined) return burst;
    return Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) * perSecond) / 1000);
  };

  function evictBuckets(now: number): void {
    for (const peer of buckets.keys()) if (countTokens(peer, now) >= burst) buckets.delete(peer);
    // If no bucket is full, the oldest bucket is removed. The next message of its peer creates a full bucket.
    for (const peer of buckets.keys()) {
      if (buckets.size < MAX_PEERS) return;
      buckets.delete(peer);
    }
  }

  return {
    countTokens,
    consumeToken(peer, now) {
      if (!buckets.has(peer) && buckets.size >= MAX_PEERS) evictBuckets(now);
      buckets.set(peer, { tokens: countTokens(peer, now) - 1, at: now });
    },
  };
}
