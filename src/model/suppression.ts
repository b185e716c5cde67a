/** Suppression lists: addresses to which an account, or the whole service, sends nothing. */

export type SuppressionReason = 'bounce' | 'complaint' | 'manual';

export interface Suppression {
  /** The canonical address. */
  readonly address: string;
  readonly reason: SuppressionReason;
  /** The mail request that caused it, or null. */
  readonly source: string | null;
  readonly at: number;
}

/** Whose list: an account's name, or `*` for the one of the whole service. */
export type ListName = string;

/** What a list is searched for: the beginning of addresses, or of what stands behind their last `@`. */
export interface SuppressionSearch {
  readonly of: 'address' | 'domain';
  /** Not empty; as canonical addresses have it. */
  readonly prefix: string;
}

/** An entry with the list that it is on. */
export interface ListedSuppression extends Suppression {
  readonly list: ListName;
}
