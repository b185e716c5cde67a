/**
 * The types of suppression lists. A suppression list contains addresses to which an account, or the whole installation,
 * sends no messages.
 */

/**
 * `unsubscribed`: the recipient unsubscribed through a provider. `provider`: the address is on the suppression list of
 * a provider.
 */
export const SUPPRESSION_REASONS = ['bounce', 'complaint', 'manual', 'unsubscribed', 'provider'] as const;
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number];

export interface Suppression {
  /** The canonical address of the recipient. */
  readonly address: string;
  readonly reason: SuppressionReason;
  /** The id of the message that caused the suppression, or null. */
  readonly source: string | null;
  readonly at: number;
}

/**
 * The removal of an address from the suppression list of a provider. It takes place before the removal of the address
 * from a suppression list of Postrider.
 */
export interface ProviderRemoval {
  readonly provider: 'ses';
  /** False if the address was not on the list of the provider. */
  readonly removed: boolean;
}

/** The owner of a list: the name of an account, or `*` for the whole installation. */
export type ListName = string;

/** A search by a prefix of the address, or of its domain (the part after the last `@`). */
export interface SuppressionSearch {
  readonly of: 'address' | 'domain';
  /** The prefix, which must not be empty and must have the form of canonical addresses. */
  readonly prefix: string;
}

/** A suppression and the suppression list that contains it. */
export interface ListedSuppression extends Suppression {
  readonly list: ListName;
}
