/** Defines the role of the store for the deliverability series and for the mailbox providers of recipient domains. */
import type { DeliverabilityRow, Series, SpanMs, StoredDeliverabilityRow } from '../model/deliverability.ts';
import type { StoredMailboxProvider } from '../model/mailbox-provider.ts';

/** The operations on the deliverability series and on the mailbox providers of domains. A crash may lose the most recent writes. */
export interface DeliverabilityStore {
  /** Writes rows of this node. Replaces the node's rows for the same series and spans. */
  writeDeliverability(node: string, rows: readonly DeliverabilityRow[]): Promise<void>;
  /**
   * Returns the rows of one series from all nodes, in order of their start. The start of each row is from `since`
   * (inclusive) to `until` (exclusive).
   */
  readDeliverability(
    series: Series,
    spanMs: SpanMs,
    since: number,
    until: number,
  ): Promise<readonly StoredDeliverabilityRow[]>;
  /**
   * Stores the mailbox providers of domains. A stored mailbox provider is not replaced if it was looked up later. Each
   * domain occurs at most once in a batch.
   */
  writeMailboxProviders(batch: readonly StoredMailboxProvider[]): Promise<void>;
  /** Returns the stored mailbox providers of these domains. Domains without an entry are omitted. */
  findMailboxProviders(domains: readonly string[]): Promise<readonly StoredMailboxProvider[]>;
  /** Returns up to `limit` domains of a mailbox provider, the most recently looked up first. */
  listMailboxProviderDomains(provider: string, limit: number): Promise<readonly string[]>;
}
