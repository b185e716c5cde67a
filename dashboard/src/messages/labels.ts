/** Formats the states and the failure categories of the operator API as labels. */
import type { FoundMessage } from '../../../src/operations/message-details.ts';

/** Returns `Mailbox unknown` for `mailbox-unknown`. */
export function formatLabel(value: string): string {
  const words = value.replaceAll('-', ' ');
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

/**
 * Returns the text that a list shows below the failure category: what the message waits for, or else the last reply.
 * Returns null if neither is known.
 */
export function findReasonText({ reason, waitReason }: FoundMessage): string | null {
  if (waitReason !== undefined && waitReason !== null) return `Waits for ${waitReason}`;
  return reason?.text ?? null;
}
