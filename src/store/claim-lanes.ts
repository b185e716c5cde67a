import type { ClaimLimits } from './contract.ts';

export interface RemainingLimits {
  messageCount: number;
  bytes: number;
  isNothingLeased: boolean;
}

/** The first message is leased regardless of its size. */
export function isExhausted({ messageCount, bytes, isNothingLeased }: RemainingLimits): boolean {
  return messageCount <= 0 || (bytes <= 0 && !isNothingLeased);
}

/**
 * Claims from both lanes. The first gets half of the limits, the other the rest, and then the first one what the second
 * did not use. `claimLane` returns true if more messages of the lane may be due; so does this function.
 */
export async function claimLanes<Lane>(
  [firstLane, secondLane]: readonly [Lane, Lane],
  { maxMessages, maxBytes }: ClaimLimits,
  claimLane: (lane: Lane, remaining: RemainingLimits) => boolean | Promise<boolean>,
): Promise<boolean> {
  const [messageShare, byteShare] = [Math.ceil(maxMessages / 2), Math.ceil(maxBytes / 2)];
  const share: RemainingLimits = { messageCount: messageShare, bytes: byteShare, isNothingLeased: true };
  const firstLaneHasMore = await claimLane(firstLane, share);
  const remaining: RemainingLimits = {
    messageCount: maxMessages - messageShare + share.messageCount,
    bytes: maxBytes - byteShare + share.bytes,
    isNothingLeased: share.isNothingLeased,
  };
  const secondLaneHasMore = await claimLane(secondLane, remaining);
  return (firstLaneHasMore && (await claimLane(firstLane, remaining))) || secondLaneHasMore;
}
