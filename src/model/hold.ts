/**
 * A hold stops messages without losing them: a message that an active hold matches stays queued, is not attempted and does
 * not expire. Pure.
 */
import { parseAddress, toCanonicalAddress } from './address.ts';
import { matchesPattern } from './address-pattern.ts';
import type { MailboxProvider } from './mailbox-provider.ts';

/** The filters, of which null matches every message, are joined by and. */
export interface NewHold {
  readonly accountId: number | null;
  /** Patterns of addresses (address-pattern.ts). */
  readonly from: string | null;
  readonly to: string | null;
  readonly mailboxProvider: MailboxProvider | null;
  readonly reason: string;
  /** The hold ends then by itself. Null: it ends with its release. */
  readonly until: number | null;
}

export interface Hold extends NewHold {
  readonly id: number;
  readonly createdAt: number;
  /** The actor in the audit log. */
  readonly by: string;
  readonly releasedAt: number | null;
}

export const HOLD_STATES = ['active', 'released', 'ended'] as const;
export type HoldState = (typeof HOLD_STATES)[number];

export const MAX_ACTIVE_HOLDS = 100;
/** How long a released or ended hold stays listed. */
export const ENDED_HOLD_RETENTION_MS = 7 * 24 * 3_600_000;

/** `ended`: its time has passed. */
export function getHoldState({ until, releasedAt }: Hold, now: number): HoldState {
  if (releasedAt !== null) return 'released';
  return until !== null && until <= now ? 'ended' : 'active';
}

export function getHoldEnd(hold: Hold, now: number): number | null {
  return getHoldState(hold, now) === 'active' ? null : (hold.releasedAt ?? hold.until);
}

export function isHoldListed(hold: Hold, now: number): boolean {
  const endedAt = getHoldEnd(hold, now);
  return endedAt === null || now - endedAt < ENDED_HOLD_RETENTION_MS;
}

export function toAuditedHold({ accountId, from, to, mailboxProvider, reason, until, releasedAt }: Hold) {
  return { accountId, from, to, mailboxProvider, reason, untilAt: until, releasedAt };
}

export interface HoldableMessage {
  readonly accountId: number;
  readonly from: string;
  readonly to: string;
}

/** By domain. Null: the answer is not known yet. */
export type FindMailboxProvider = (domain: string) => MailboxProvider | null;

/** Returns the first hold that matches. A mailbox provider that is not known yet matches, so that no message escapes. */
export function findHold(
  activeHolds: readonly Hold[],
  message: HoldableMessage,
  findMailboxProvider: FindMailboxProvider,
): Hold | null {
  return activeHolds.find((hold) => matchesHold(hold, message, findMailboxProvider)) ?? null;
}

export function matchesHold(
  { accountId, from, to, mailboxProvider }: NewHold,
  message: HoldableMessage,
  findMailboxProvider: FindMailboxProvider,
): boolean {
  if (accountId !== null && accountId !== message.accountId) return false;
  if (from !== null && !matchesAddress(from, message.from)) return false;
  if (to !== null && !matchesAddress(to, message.to)) return false;
  if (mailboxProvider === null) return true;
  const provider = findMailboxProvider(parseAddress(message.to)?.domain ?? '');
  return provider === null || provider === mailboxProvider;
}

function matchesAddress(pattern: string, text: string): boolean {
  const address = parseAddress(text);
  return address !== null && matchesPattern(pattern, toCanonicalAddress(address));
}
