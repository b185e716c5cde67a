/** Defines the role of the store for the deliverability series and for the mailbox providers of recipient domains. */
import type { DeliverabilityRow, Series, SpanMs, StoredDeliverabilityRow } from '../model/deliverability.ts';
import type { StoredMailboxProvider } from '../model/mailbox-provider.ts';

/**
 * The operations on the deliverability series and on the mailbox providers of domains. A crash may lose the most recent
 * writes.
 */
export interface DeliverabilityStore {
  /** Writes rows of this node. Replaces the node's rows for the same series and spans. */
  writeDeliverability(node: string, rows: readonly DeliverabilityRow[]): Promise<void>;
  /**
   * Returns the rows of one series from all nodes, in order of their start. Each row starts at or after `since` and
   * before `until`.
   */
  readDeliverability(
    series: Series,
    spanMs: SpanMs,
    since: number,
    until: number,
  ): Promise<readonly StoredDeliverabilityRow[]>;
  /**
   * Stores the mailbox providers of domains. A stored mailbox provider is replaced only if the new one was not looked
   * up earlier than the stored one. Each domain occurs at most once in a batch.
   */
  writeMailboxProviders(batch: readonly StoredMailboxProvider[]): Promise<void>;
  /** Returns the stored mailbox providers of these domains. Domains without an entry are omitted. */
  findMailboxProviders(domains: readonly string[]): Promise<readonly StoredMailboxProvider[]>;
  /** Returns up to `limit` domains of a mailbox provider, in descending order of lookup time. */
  listMailboxProviderDomains(provider: string, limit: number): Promise<readonly string[]>;
}
