/** Stores the rows of the deliverability series of each node, and the mailbox providers of recipient domains. */
import type { DatabaseSync } from 'node:sqlite';
import type { DeliverabilityRow, Series, SpanMs, StoredDeliverabilityRow } from '../../model/deliverability.ts';
import { isMailboxProvider, type StoredMailboxProvider } from '../../model/mailbox-provider.ts';
import * as rows from '../rules/rows.ts';

export function prepareDeliverability(database: DatabaseSync) {
  const writeRow = database.prepare(
    'INSERT OR REPLACE INTO deliverability (span, at, series, node, counts) VALUES (?, ?, ?, ?, ?)',
  );
  const selectRows = database.prepare(
    'SELECT at, counts FROM deliverability WHERE span = ? AND series = ? AND at >= ? AND at < ? ORDER BY at',
  );
  const purgeRows = database.prepare(
    `DELETE FROM deliverability WHERE rowid IN (SELECT rowid FROM deliverability WHERE span = ? AND at < ? LIMIT ?)`,
  );
  const writeProvider = database.prepare(
    `INSERT INTO mailbox_provider (domain, provider, looked_up_at) VALUES (?, ?, ?)
     ON CONFLICT (domain) DO UPDATE SET provider = excluded.provider, looked_up_at = excluded.looked_up_at
     WHERE excluded.looked_up_at >= looked_up_at`,
  );
  const selectProviders = database.prepare(
    `SELECT domain, provider, looked_up_at FROM mailbox_provider WHERE domain IN (SELECT value FROM json_each(?))`,
  );
  const selectDomains = database.prepare(
    `SELECT domain FROM mailbox_provider WHERE provider = ? ORDER BY looked_up_at DESC LIMIT ?`,
  );
  const purgeOldProviders = database.prepare(
    `DELETE FROM mailbox_provider WHERE domain IN
       (SELECT domain FROM mailbox_provider WHERE looked_up_at < ? ORDER BY looked_up_at LIMIT ?)`,
  );
  const purgeExcessProviders = database.prepare(
    `DELETE FROM mailbox_provider WHERE domain IN
       (SELECT domain FROM mailbox_provider ORDER BY looked_up_at DESC LIMIT ? OFFSET ?)`,
  );

  return {
    writeDeliverability(node: string, batch: readonly DeliverabilityRow[]): void {
      for (const { spanMs, at, series, counts } of batch) writeRow.run(spanMs, at, series, node, counts);
    },
    readDeliverability: (series: Series, spanMs: SpanMs, since: number, until: number): StoredDeliverabilityRow[] =>
      selectRows.all(spanMs, series, since, until).map((row) => ({
        at: rows.readInteger(row, 'at'),
        counts: rows.readText(row, 'counts'),
      })),
    purgeDeliverability(spanMs: SpanMs, before: number, limit: number): number {
      return Number(purgeRows.run(spanMs, before, limit).changes);
    },
    writeMailboxProviders(batch: readonly StoredMailboxProvider[]): void {
      for (const { domain, provider, lookedUpAt } of batch) writeProvider.run(domain, provider, lookedUpAt);
    },
    findMailboxProviders: (domains: readonly string[]): StoredMailboxProvider[] =>
      selectProviders.all(JSON.stringify(domains)).flatMap((row) => {
        const provider = rows.readText(row, 'provider');
        const lookedUpAt = rows.readInteger(row, 'looked_up_at');
        // A provider that a newer version of Postrider has stored and that this version does not define is omitted.
        return isMailboxProvider(provider) ? [{ domain: rows.readText(row, 'domain'), provider, lookedUpAt }] : [];
      }),
    listMailboxProviderDomains: (provider: string, limit: number): string[] =>
      selectDomains.all(provider, limit).map((row) => rows.readText(row, 'domain')),
    purgeMailboxProviders(before: number, maxStored: number, limit: number): number {
      const purgedOldCount = Number(purgeOldProviders.run(before, limit).changes);
      return Math.max(purgedOldCount, Number(purgeExcessProviders.run(limit, maxStored).changes));
    },
  };
}
