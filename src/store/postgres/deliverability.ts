/**
 * Stores the deliverability series: the rows of each node, and the mailbox providers of recipient domains.
 */
import { isMailboxProvider } from '../../model/mailbox-provider.ts';
import type { RetentionStore } from '../contract.ts';
import type { DeliverabilityStore } from '../deliverability-store.ts';
import * as rows from '../rules/rows.ts';
import type { Database, Statement } from './session.ts';

const WRITE_ROWS: Statement = {
  name: 'deliverability_write',
  text: `INSERT INTO deliverability (node, span, at, series, counts)
    SELECT $1, * FROM unnest($2::int[], $3::bigint[], $4::text[], $5::text[])
    ON CONFLICT (span, series, at, node) DO UPDATE SET counts = excluded.counts`,
};
const SELECT_ROWS: Statement = {
  name: 'deliverability_read',
  text: `SELECT at, counts FROM deliverability WHERE span = $1 AND series = $2 AND at >= $3 AND at < $4 ORDER BY at`,
};
const PURGE_ROWS: Statement = {
  name: 'deliverability_purge',
  text: `DELETE FROM deliverability WHERE (span, series, at, node) IN (
    SELECT span, series, at, node FROM deliverability WHERE span = $1 AND at < $2 LIMIT $3 FOR UPDATE SKIP LOCKED)
    RETURNING 1 AS one`,
};
const WRITE_PROVIDERS: Statement = {
  name: 'mailbox_provider_write',
  text: `INSERT INTO mailbox_provider AS stored (domain, provider, looked_up_at)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS added (domain, provider, looked_up_at) ORDER BY domain
    ON CONFLICT (domain) DO UPDATE SET provider = excluded.provider, looked_up_at = excluded.looked_up_at
    WHERE excluded.looked_up_at >= stored.looked_up_at`,
};
const SELECT_PROVIDERS: Statement = {
  name: 'mailbox_provider_find',
  text: `SELECT domain, provider, looked_up_at FROM mailbox_provider WHERE domain = ANY ($1::text[])`,
};
const SELECT_DOMAINS: Statement = {
  name: 'mailbox_provider_domains',
  text: `SELECT domain FROM mailbox_provider WHERE provider = $1 ORDER BY looked_up_at DESC LIMIT $2`,
};
const PURGE_OLD_PROVIDERS: Statement = {
  name: 'mailbox_provider_purge_old',
  text: `DELETE FROM mailbox_provider WHERE domain IN (SELECT domain FROM mailbox_provider
    WHERE looked_up_at < $1 ORDER BY looked_up_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING 1 AS one`,
};
const PURGE_EXCESS_PROVIDERS: Statement = {
  name: 'mailbox_provider_purge_excess',
  text: `DELETE FROM mailbox_provider WHERE domain IN (SELECT domain FROM mailbox_provider
    ORDER BY looked_up_at DESC LIMIT $1 OFFSET $2) RETURNING 1 AS one`,
};
/** The commit does not wait for the sync of the WAL, because the loss of recent counts in a crash is acceptable. */
const DISABLE_SYNC: Statement = {
  name: 'deliverability_without_sync',
  text: `SELECT set_config('synchronous_commit', 'off', true)`,
};

export function prepareDeliverability(
  database: Database,
): DeliverabilityStore & Pick<RetentionStore, 'purgeDeliverability' | 'purgeMailboxProviders'> {
  async function writeWithoutSync(statement: Statement, values: readonly unknown[]): Promise<void> {
    await database.transaction(async (transaction) => {
      await Promise.all([transaction.query(DISABLE_SYNC, []), transaction.query(statement, values)]);
    });
  }

  return {
    async writeDeliverability(node, batch) {
      if (batch.length === 0) return;
      await writeWithoutSync(WRITE_ROWS, [
        node,
        batch.map(({ spanMs }) => spanMs),
        batch.map(({ at }) => at),
        batch.map(({ series }) => series),
        batch.map(({ counts }) => counts),
      ]);
    },
    async readDeliverability(series, spanMs, since, until) {
      return (await database.query(SELECT_ROWS, [spanMs, series, since, until])).map((row) => ({
        at: rows.readInteger(row, 'at'),
        counts: rows.readText(row, 'counts'),
      }));
    },
    async purgeDeliverability(spanMs, before, limit) {
      return (await database.query(PURGE_ROWS, [spanMs, before, limit])).length;
    },
    async writeMailboxProviders(batch) {
      if (batch.length === 0) return;
      await writeWithoutSync(WRITE_PROVIDERS, [
        batch.map(({ domain }) => domain),
        batch.map(({ provider }) => provider),
        batch.map(({ lookedUpAt }) => lookedUpAt),
      ]);
    },
    async findMailboxProviders(domains) {
      return (await database.query(SELECT_PROVIDERS, [domains])).flatMap((row) => {
        const provider = rows.readText(row, 'provider');
        const lookedUpAt = rows.readInteger(row, 'looked_up_at');
        // A provider that a newer version has stored and that this version does not recognize is omitted.
        return isMailboxProvider(provider) ? [{ domain: rows.readText(row, 'domain'), provider, lookedUpAt }] : [];
      });
    },
    async listMailboxProviderDomains(provider, limit) {
      return (await database.query(SELECT_DOMAINS, [provider, limit])).map((row) => rows.readText(row, 'domain'));
    },
    async purgeMailboxProviders(before, maxStored, limit) {
      const purgedOldRows = await database.query(PURGE_OLD_PROVIDERS, [before, limit]);
      const purgedExcessRows = await database.query(PURGE_EXCESS_PROVIDERS, [limit, maxStored]);
      return Math.max(purgedOldRows.length, purgedExcessRows.length);
    },
  };
}
