/** Suppression lists: the addresses to which an account, or the whole installation, sends no messages. */

/** `unsubscribed`: through a provider. `provider`: the address is on the suppression list of a provider. */
export const SUPPRESSION_REASONS = ['bounce', 'complaint', 'manual', 'unsubscribed', 'provider'] as const;
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number];

export interface Suppression {
  /** Canonical, or the pattern of a domain (address-pattern.ts). */
  readonly address: string;
  readonly reason: SuppressionReason;
  readonly source: string | null;
  readonly at: number;
  /** Absent: the entry does not expire. */
  readonly expiresAt?: number;
}

export function isCurrent({ expiresAt }: Pick<Suppression, 'expiresAt'>, now: number): boolean {
  return expiresAt === undefined || expiresAt > now;
}

export interface ProviderRemoval {
  readonly provider: 'ses';
  /** False if the address was not on the list of the provider. */
  readonly removed: boolean;
}

/** The name of an account, or `*` for the whole installation. */
export type ListName = string;

/** The domain is the part after the last `@`. */
export interface SuppressionSearch {
  readonly of: 'address' | 'domain';
  /** Not empty, in the form of canonical addresses. */
  readonly prefix: string;
}

export interface ListedSuppression extends Suppression {
  readonly list: ListName;
}
