/**
 * Counts the messages of the history by mailbox provider, recipient domain, account and sending domain, like
 * statistics/deliverability.ts, but with the time of each event in place of the current time. The demo has few
 * domains and accounts, so each row contains all of them.
 */
import {
  createKeyCounts,
  type DeliverabilityRow,
  formatKeyCounts,
  type MutableKeyCounts,
  REMAINDER_KEY,
  type Series,
  SPAN_RETENTIONS,
} from '../src/model/deliverability.ts';
import type { MailboxProvider, StoredMailboxProvider } from '../src/model/mailbox-provider.ts';
import type { LeasedMessage } from '../src/model/message.ts';

/** The mailbox providers by recipient domain. Any other domain has the mailbox provider `other`. */
const PROVIDERS: Readonly<Record<string, MailboxProvider>> = {
  'bigmail.example': 'google',
  'outpost.example': 'microsoft',
  'webpost.example.net': 'yahoo',
};

/**
 * Returns the mailbox providers of the recipient domains in the form in which the service stores the result of a
 * lookup.
 */
export function listStoredProviders(domains: readonly string[], lookedUpAt: number): readonly StoredMailboxProvider[] {
  return domains.map((domain) => ({ domain, provider: PROVIDERS[domain] ?? 'other', lookedUpAt }));
}

type CountedMessage = Pick<LeasedMessage, 'accountId' | 'from' | 'to'>;
type RowSums = Pick<DeliverabilityRow, 'spanMs' | 'at' | 'series'> & { readonly keys: Map<string, MutableKeyCounts> };

export class HistoryDeliverability {
  readonly #now: number;
  readonly #rows = new Map<string, RowSums>();
  readonly #changed = new Set<RowSums>();

  /** `now` is the end of the history. Rows that the service would have purged by this time are not written. */
  constructor(now: number) {
    this.#now = now;
  }

  /** Counts an event of a message. `at` is the time of the event. */
  count({ accountId, from, to }: CountedMessage, at: number, addCount: (counts: MutableKeyCounts) => void): void {
    const [sendingDomain, recipientDomain] = [getDomain(from), getDomain(to)];
    const provider = PROVIDERS[recipientDomain] ?? 'other';
    const keys: Readonly<Record<Exclude<Series, 'route'>, string>> = {
      provider,
      'recipient-domain': recipientDomain,
      account: String(accountId),
      'sending-domain': `${accountId}/${sendingDomain}`,
      'account/provider': `${accountId}/${provider}`,
      'account/recipient-domain': `${accountId}/${recipientDomain}`,
      'sending-domain/provider': `${accountId}/${sendingDomain}/${provider}`,
    };
    for (const { spanMs, retentionMs } of SPAN_RETENTIONS) {
      if (at < this.#now - retentionMs) continue;
      for (const [series, key] of Object.entries(keys)) {
        const row = this.#getRow(spanMs, at - (at % spanMs), series as Series);
        const counts = row.keys.get(key) ?? createKeyCounts();
        row.keys.set(key, counts);
        addCount(counts);
        this.#changed.add(row);
      }
    }
  }

  /** Returns the rows that have changed since the previous call. */
  collectChangedRows(): readonly DeliverabilityRow[] {
    const rows = [...this.#changed].map(({ keys, ...row }) => ({
      ...row,
      counts: formatKeyCounts([...keys, [REMAINDER_KEY, createKeyCounts()]]),
    }));
    this.#changed.clear();
    return rows;
  }

  #getRow(spanMs: RowSums['spanMs'], at: number, series: Series): RowSums {
    const rowKey = `${spanMs} ${at} ${series}`;
    const row = this.#rows.get(rowKey) ?? { spanMs, at, series, keys: new Map<string, MutableKeyCounts>() };
    this.#rows.set(rowKey, row);
    return row;
  }
}

function getDomain(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase();
}
