/** The names of senders, and the addresses that receive replies. Pure. */
import { parseAddress, toCanonicalAddress } from './address.ts';
import { listMatchingPatterns } from './address-pattern.ts';

export interface SenderName {
  readonly name: string | null;
  /** An address without characters outside ASCII. */
  readonly replyTo: string | null;
}

export interface SenderEntry extends SenderName {
  readonly pattern: string;
}

/** Of an account. Acceptance reads them with the account. */
export const MAX_SENDERS = 500;

/** The more specific entry wins, member by member. Null: no entry matches. */
export function findSenderName(entries: readonly SenderEntry[], from: string): SenderName | null {
  const address = entries.length === 0 ? null : parseAddress(from);
  if (address === null) return null;
  const matching = listMatchingPatterns(toCanonicalAddress(address)).flatMap((pattern) =>
    entries.filter((entry) => entry.pattern === pattern),
  );
  if (matching.length === 0) return null;
  return {
    name: matching.find(({ name }) => name !== null)?.name ?? null,
    replyTo: matching.find(({ replyTo }) => replyTo !== null)?.replyTo ?? null,
  };
}
