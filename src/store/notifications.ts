/**
 * Stores the states of items that need attention, and the notifications to deliver. A check is recorded only if the
 * round number has not changed since the check began, so that each change is recorded once, although several nodes check.
 */
import { getAttentionKey } from '../model/attention.ts';
import type {
  AttentionCheck,
  AttentionState,
  LeasedNotification,
  NotificationSettlement,
  StoredNotification,
} from '../model/notification.ts';
import {
  formatAttentionState,
  toAttentionCheck,
  toLeasedNotification,
  toSettledColumns,
  toStoredNotification,
} from './rules/notifications.ts';
import { forceDurableCommit, type Transaction } from './transaction.ts';

/** The record of one check. */
export interface AttentionRecord {
  /** The round that `readAttentionCheck` returned. */
  readonly round: number;
  readonly now: number;
  readonly changedStates: readonly AttentionState[];
  /** The keys of the states that are removed. */
  readonly removedKeys: readonly string[];
  /** The notification of this check with one payload for each target, or null. */
  readonly notification: {
    readonly id: string;
    readonly deliveries: readonly { readonly target: string; readonly payload: string }[];
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
  return row === undefined ? null : toAttentionCheck(row, await tx.query('SELECT state FROM attention ORDER BY key'));
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
        [getAttentionKey(state.item), formatAttentionState(state)],
      ),
    ),
    ...removedKeys.map((key) => tx.query('DELETE FROM attention WHERE key = $1', [key])),
    ...(notification?.deliveries ?? []).map(({ target, payload }) =>
      tx.query(
        `INSERT INTO notification (id, target, payload, status, created_at, due_at) VALUES ($1, $2, $3, 'pending', $4, $4)`,
        [notification?.id ?? '', target, payload, now],
      ),
    ),
  ]);
  return 'recorded';
}

export async function claimNotifications(
  tx: Transaction,
  targets: readonly string[],
  owner: string,
  leaseUntil: number,
  now: number,
): Promise<readonly LeasedNotification[]> {
  const leased = await Promise.all(
    targets.map((target) =>
      tx.query(
        `UPDATE notification SET owner = $1, due_at = $2, attempt = attempt + 1 WHERE target = $3 AND id IN (
           SELECT id FROM notification WHERE target = $3 AND status = 'pending' AND due_at <= $4
           ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
         RETURNING id, target, payload, created_at, owner, attempt`,
        [owner, leaseUntil, target, now],
      ),
    ),
  );
  return leased.flat().map(toLeasedNotification);
}

export async function settleNotification(
  tx: Transaction,
  settlement: NotificationSettlement,
): Promise<'settled' | 'lost'> {
  const { id, target, owner, attempt } = settlement;
  const { status, dueAt, attemptedAt, error, messageId } = toSettledColumns(settlement);
  const settled = await tx.query(
    `UPDATE notification SET status = $1, due_at = $2, owner = NULL, attempted_at = $3, error = $4, message_id = $5
     WHERE id = $6 AND target = $7 AND status = 'pending' AND owner = $8 AND attempt = $9 RETURNING id`,
    [status, dueAt, attemptedAt, error, messageId, id, target, owner, attempt],
  );
  if (settled.length > 0) return 'settled';
  await forceDurableCommit(tx);
  return 'lost';
}

export async function listNotifications(
  tx: Transaction,
  target: string,
  limit: number,
): Promise<readonly StoredNotification[]> {
  const found = await tx.query(
    `SELECT id, target, status, created_at, attempt, attempted_at, error, message_id FROM notification
     WHERE target = $1 ORDER BY created_at DESC, id DESC LIMIT $2`,
    [target, limit],
  );
  return found.map(toStoredNotification);
}

export async function purgeNotifications(tx: Transaction, createdBefore: number, limit: number): Promise<number> {
  const purged = await tx.query(
    `DELETE FROM notification WHERE (id, target) IN (
       SELECT id, target FROM notification WHERE created_at <= $1 LIMIT $2) RETURNING id`,
    [createdBefore, limit],
  );
  return purged.length;
}
