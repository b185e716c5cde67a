/**
 * Records the events of changes that are not part of a message's path. Nothing is written for a type to which no endpoint
 * subscribes. On PostgreSQL a transaction that reads the subscriptions keeps a lock on their table until its end, for
 * which a change of the subscriptions waits (`waitForEarlierTransactions`).
 */
import type { Suppression } from '../model/suppression.ts';
import { getEventBit, type ResourceEventType } from '../model/webhook.ts';
import { buildSuppressionData } from '../model/webhook-payload.ts';
import * as rows from './rules/rows.ts';
import type { Transaction } from './transaction.ts';

/** Records an event about an object that is not a message. The endpoint `excludedWebhookId` does not receive it. */
export async function recordResourceEvent(
  tx: Transaction,
  type: ResourceEventType,
  accountId: number,
  at: number,
  data: object,
  excludedWebhookId: number | null = null,
): Promise<void> {
  await tx.query(
    `INSERT INTO outbox (type, account_id, at, data, webhook_id)
     SELECT $1, $2::int, $3::bigint, $4, $5::int FROM webhook_subscription WHERE events & $6 <> 0`,
    [type, accountId, at, JSON.stringify(data), excludedWebhookId, getEventBit(type)],
  );
}

/** Records that entries were added to, or removed from, the suppression list of an account or of the service. */
export async function recordSuppressionEvents(
  tx: Transaction,
  type: 'suppression.added' | 'suppression.removed',
  accountId: number,
  entries: readonly (Suppression & { readonly eventAt: number })[],
): Promise<void> {
  if (entries.length === 0) return;
  const [row] = await tx.query(
    `SELECT coalesce(a.name, '*') AS list FROM webhook_subscription LEFT JOIN account a ON a.id = $1 WHERE events & $2 <> 0`,
    [accountId, getEventBit(type)],
  );
  if (row === undefined) return;
  const list = rows.readText(row, 'list');
  const events = entries.map((entry) => ({
    at: entry.eventAt,
    data: JSON.stringify(buildSuppressionData(list, entry)),
  }));
  await tx.query(
    `INSERT INTO outbox (type, account_id, at, data) SELECT $1, $2::int, (e.value->>'at')::bigint, e.value->>'data'
     FROM json_array_elements($3::json) AS e(value)`,
    [type, accountId, JSON.stringify(events)],
  );
}

/** Writes the event types to which the endpoints subscribe. The caller has locked the row of the subscriptions. */
export async function writeSubscribedTypes(tx: Transaction): Promise<void> {
  const subscriptions = await tx.query('SELECT DISTINCT events FROM webhook WHERE NOT removed');
  const types = subscriptions.reduce((mask, row) => mask | rows.readInteger(row, 'events'), 0);
  await tx.query('UPDATE webhook_subscription SET events = $1', [types]);
}
