/** Counted at DATA. The owner of one IPv6 address owns its /64, and large providers report from few addresses. */
import { toPeerNetwork } from '../model/address.ts';
import type { FeedbackRecipient } from './smtp-report.ts';

interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

export const PEER_MESSAGE_RATE: Rate = { burst: 500, perSecond: 50 };
/** Any client can send to `postmaster` and `abuse`. */
export const PEER_ROLE_MESSAGE_RATE: Rate = { burst: 60, perSecond: 1 };
/** Stored for the operator: of all peers, beyond that by network, so nobody is refused for what others send. */
export const STORED_MESSAGE_RATE: Rate = { burst: 300, perSecond: 5 };
export const NETWORK_STORED_MESSAGE_RATE: Rate = { burst: 10, perSecond: 1 / 60 };
/** Everyone who received the message knows its return path, and its servers send a delay notice every few hours. */
export const RETURN_PATH_MESSAGE_RATE: Rate = { burst: 30, perSecond: 1 / 60 };
const MAX_BUCKETS = 10_000;

export type AcceptedRecipient = Exclude<FeedbackRecipient, { readonly kind: 'refused' }>;

export interface PeerLimits {
  allowsMessage(address: string, recipient: AcceptedRecipient | null, now: number): boolean;
  consumeMessageTokens(address: string, recipient: AcceptedRecipient, now: number): boolean;
  /** For a role mailbox: of the message that it names by `id`, or of storing it. False without a token. */
  consumeReportToken(address: string, id: string | null, now: number): boolean;
}

export function createPeerLimits(): PeerLimits {
  const peerBuckets = createBuckets(PEER_MESSAGE_RATE);
  const peerRoleBuckets = createBuckets(PEER_ROLE_MESSAGE_RATE);
  const storedBuckets = createBuckets(STORED_MESSAGE_RATE);
  const networkStoredBuckets = createBuckets(NETWORK_STORED_MESSAGE_RATE);
  const returnPathBuckets = createBuckets(RETURN_PATH_MESSAGE_RATE);

  function listBuckets(peer: string, recipient: AcceptedRecipient | null): readonly (readonly [Buckets, string])[] {
    switch (recipient?.kind) {
      case undefined:
        return [[peerBuckets, peer]];
      case 'return-path':
        return [
          [peerBuckets, peer],
          [returnPathBuckets, recipient.id],
        ];
      case 'role':
        return [
          [peerBuckets, peer],
          [peerRoleBuckets, peer],
        ];
    }
  }

  function consumeFirst(buckets: ReturnType<typeof listBuckets>, now: number): boolean {
    const [bucket, key] = buckets.find(([candidate, name]) => candidate.countTokens(name, now) >= 1) ?? [];
    bucket?.consumeToken(key ?? '', now);
    return bucket !== undefined;
  }

  const hasTokens = (buckets: ReturnType<typeof listBuckets>, now: number): boolean =>
    buckets.every(([bucket, key]) => bucket.countTokens(key, now) >= 1);

  return {
    allowsMessage: (address, recipient, now) => hasTokens(listBuckets(toPeerNetwork(address), recipient), now),
    consumeMessageTokens(address, recipient, now) {
      const buckets = listBuckets(toPeerNetwork(address), recipient);
      if (!hasTokens(buckets, now)) return false;
      for (const [bucket, key] of buckets) bucket.consumeToken(key, now);
      return true;
    },
    consumeReportToken: (address, id, now) =>
      consumeFirst(
        id === null
          ? [
              [storedBuckets, ''],
              [networkStoredBuckets, toWideNetwork(address)],
            ]
          : [[returnPathBuckets, id]],
        now,
      ),
  };
}

/** The /24 network of an IPv4 address, or the /48 network of an IPv6 address: what one site has. */
function toWideNetwork(address: string): string {
  return toPeerNetwork(address).split(/[.:]/, 3).join(' ');
}

interface Buckets {
  countTokens(key: string, now: number): number;
  consumeToken(key: string, now: number): void;
}

function createBuckets({ burst, perSecond }: Rate): Buckets {
  const buckets = new Map<string, { readonly tokens: number; readonly at: number }>();

  const countTokens = (key: string, now: number): number => {
    const bucket = buckets.get(key);
    if (bucket === undefined) return burst;
    return Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) * perSecond) / 1000);
  };

  function evictBuckets(now: number): void {
    for (const key of buckets.keys()) if (countTokens(key, now) >= burst) buckets.delete(key);
    for (const key of buckets.keys()) {
      if (buckets.size < 0.9 * MAX_BUCKETS) return;
      buckets.delete(key);
    }
  }

  return {
    countTokens,
    consumeToken(key, now) {
      const tokens = countTokens(key, now) - 1;
      if (!buckets.delete(key) && buckets.size >= MAX_BUCKETS) evictBuckets(now);
      buckets.set(key, { tokens, at: now });
    },
  };
}
