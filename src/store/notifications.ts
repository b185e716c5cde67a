/**
 * Stores the states of items that need attention, and the notifications to deliver. A check is recorded only if the
 * round number has not changed since the check began, so that each change is recorded once, although several nodes check.
 */
import { getAttentionKey } from '../model/attention.ts';
import type { AttentionCheck, AttentionState } from '../model/notification.ts';
import { NOTIFICATION_TYPE, type StoredDelivery } from '../model/webhook.ts';
import * as rows from './rules/rows.ts';
import { toStoredDelivery } from './rules/webhooks.ts';
import type { Transaction } from './transaction.ts';

/** The record of one check. */
export interface AttentionRecord {
  /** The round that `readAttentionCheck` returned. */
  readonly round: number;
  readonly now: number;
  readonly changedStates: readonly AttentionState[];
  /** The keys of the states that are removed. */
  readonly removedKeys: readonly string[];
  /** The notification of this check, with the member `data` of its payload for each target. `id` is a UUIDv7. */
  readonly notification: {
    readonly id: string;
    readonly deliveries: readonly { readonly target: string; readonly data: string }[];
  } | null;
}

/**
 * Starts a check. Resolves to null if a check by any node was recorded within the last `intervalMs`. A recorded time in the
 * future, from before the clock was set back, is ignored.
 */
export async function readAttentionCheck(
  tx: Transaction,
  now: number,
  intervalMs: number,
): Promise<AttentionCheck | null> {
  // The round is read before the states, so the check is stale if another one is recorded between the two reads.
  const [row] = await tx.query(
    'SELECT round, sequence, notified_at FROM attention_check WHERE abs($1::bigint - checked_at) >= $2::bigint',
    [now, intervalMs],
  );
  if (row === undefined) return null;
  const states = await tx.query('SELECT state FROM attention ORDER BY key');
  return {
    round: rows.readInteger(row, 'round'),
    sequence: rows.readInteger(row, 'sequence'),
    notifiedAt: rows.readIntegerOrNull(row, 'notified_at'),
    states: states.map((stateRow) => JSON.parse(rows.readText(stateRow, 'state')) as AttentionState),
  };
}

export async function recordAttention(
  tx: Transaction,
  { round, now, changedStates, removedKeys, notification }: AttentionRecord,
): Promise<'recorded' | 'stale'> {
  const advanced = await tx.query(
    `UPDATE attention_check SET round = round + 1, checked_at = $2::bigint,
       sequence = sequence + CASE WHEN $3 THEN 1 ELSE 0 END, notified_at = CASE WHEN $3 THEN $2::bigint ELSE notified_at END
     WHERE round = $1 RETURNING round`,
    [round, now, notification !== null],
  );
  if (advanced.length === 0) return 'stale';
  await Promise.all([
    ...changedStates.map((state) =>
      tx.query(
        'INSERT INTO attention (key, state) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET state = excluded.state',
        [getAttentionKey(state.item), JSON.stringify(state)],
      ),
    ),
    ...removedKeys.map((key) => tx.query('DELETE FROM attention WHERE key = $1', [key])),
  ]);
  for (const { target, data } of notification?.deliveries ?? []) {
    await tx.query(
      `INSERT INTO webhook (id, url, sealed_url, events, sealed, created_at)
       SELECT coalesce((SELECT min(id) FROM webhook WHERE id < 0), 0) - 1, '', $1, 0, '', $2::bigint
       WHERE NOT EXISTS (SELECT 1 FROM webhook WHERE id < 0 AND sealed_url = $1)`,
      [target, now],
    );
    await tx.query(
      `INSERT INTO webhook_delivery (webhook_id, id, type, at, data, status, due_at, created_at)
       SELECT id, $2::uuid, '${NOTIFICATION_TYPE}', $3::bigint, $4, 'pending', $3::bigint, $3::bigint
       FROM webhook WHERE id < 0 AND sealed_url = $1`,
      [target, notification?.id ?? '', now, data],
    );
  }
  return 'recorded';
}

/** Newest first. */
export async function listNotifications(
  tx: Transaction,
  target: string,
  limit: number,
): Promise<readonly StoredDelivery[]> {
  const found = await tx.query(
    `SELECT * FROM webhook_delivery WHERE webhook_id = (SELECT id FROM webhook WHERE id < 0 AND sealed_url = $1)
     ORDER BY id DESC LIMIT $2`,
    [target, limit],
  );
  return found.map(toStoredDelivery);
}
