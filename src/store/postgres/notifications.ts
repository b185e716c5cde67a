/**
 * Stores the states of items that need attention, and the notifications to deliver. A check is recorded only if the
 * round number has not changed since the check began. Therefore each change is recorded only once, although several
 * nodes run checks.
 */
import { getAttentionKey } from '../../model/attention.ts';
import type { NotificationStore } from '../notification-store.ts';
import {
  formatAttentionState,
  toAttentionCheck,
  toLeasedNotification,
  toSettledColumns,
  toStoredNotification,
} from '../rules/notifications.ts';
import { type Database, forceDurableCommit, type Statement } from './session.ts';

const SELECT_CHECK: Statement = {
  name: 'attention_check',
  text: 'SELECT round, sequence, notified_at FROM attention_check WHERE abs($1::bigint - checked_at) >= $2::bigint',
};
const SELECT_STATES: Statement = { name: 'attention_states', text: 'SELECT state FROM attention ORDER BY key' };
const ADVANCE_ROUND: Statement = {
  name: 'attention_advance',
  text: `UPDATE attention_check SET round = round + 1, checked_at = $2::bigint,
      sequence = sequence + CASE WHEN $3 THEN 1 ELSE 0 END, notified_at = CASE WHEN $3 THEN $2::bigint ELSE notified_at END
    WHERE round = $1 RETURNING round`,
};
const WRITE_STATES: Statement = {
  name: 'attention_write',
  text: `INSERT INTO attention (key, state) SELECT * FROM unnest($1::text[], $2::text[])
    ON CONFLICT (key) DO UPDATE SET state = excluded.state`,
};
const DELETE_STATES: Statement = {
  name: 'attention_delete',
  text: 'DELETE FROM attention WHERE key = ANY($1::text[])',
};
const INSERT_NOTIFICATION: Statement = {
  name: 'notification_insert',
  text: `INSERT INTO notification (id, target, payload, status, created_at, due_at)
    SELECT $1, target, payload, 'pending', $2, $2 FROM unnest($3::text[], $4::text[]) AS d(target, payload)`,
};
const CLAIM_NOTIFICATIONS: Statement = {
  name: 'notification_claim',
  text: `WITH due AS MATERIALIZED (
      SELECT d.id, d.target FROM unnest($1::text[]) AS t(target) CROSS JOIN LATERAL (
        SELECT n.id, n.target FROM notification n WHERE n.target = t.target AND n.status = 'pending' AND n.due_at <= $4
        ORDER BY n.due_at LIMIT 1 FOR UPDATE SKIP LOCKED) d
    )
    UPDATE notification n SET owner = $2, due_at = $3, attempt = n.attempt + 1 FROM due
    WHERE n.id = due.id AND n.target = due.target
    RETURNING n.id, n.target, n.payload, n.created_at, n.owner, n.attempt`,
};
const SETTLE_NOTIFICATION: Statement = {
  name: 'notification_settle',
  text: `UPDATE notification SET status = $1, due_at = $2, owner = NULL, attempted_at = $3, error = $4, message_id = $5
    WHERE id = $6 AND target = $7 AND status = 'pending' AND owner = $8 AND attempt = $9 RETURNING id`,
};
const SELECT_NEWEST_NOTIFICATIONS: Statement = {
  name: 'notification_list',
  text: `SELECT id, target, status, created_at, attempt, attempted_at, error, message_id FROM notification
    WHERE target = $1 ORDER BY created_at DESC, id DESC LIMIT $2`,
};
const PURGE_NOTIFICATIONS: Statement = {
  name: 'notification_purge',
  text: `DELETE FROM notification n USING (SELECT id, target FROM notification WHERE created_at <= $1 LIMIT $2) o
    WHERE n.id = o.id AND n.target = o.target RETURNING n.id`,
};

export function prepareNotifications(database: Database): NotificationStore {
  return {
    readAttentionCheck: (now, intervalMs) =>
      database.transaction(async (transaction) => {
        // The round is read before the states, so the current check is stale if another check is
        // recorded between the two reads.
        const [row] = await transaction.query(SELECT_CHECK, [now, intervalMs]);
        return row === undefined ? null : toAttentionCheck(row, await transaction.query(SELECT_STATES, []));
      }),
    recordAttention: ({ round, now, changedStates, removedKeys, notification }) =>
      database.transaction(async (transaction) => {
        const advancedRows = await transaction.query(ADVANCE_ROUND, [round, now, notification !== null]);
        if (advancedRows.length === 0) return 'stale';
        const deliveries = notification?.deliveries ?? [];
        await Promise.all([
          changedStates.length === 0
            ? undefined
            : transaction.query(WRITE_STATES, [
                changedStates.map(({ item }) => getAttentionKey(item)),
                changedStates.map(formatAttentionState),
              ]),
          removedKeys.length === 0 ? undefined : transaction.query(DELETE_STATES, [removedKeys]),
          deliveries.length === 0
            ? undefined
            : transaction.query(INSERT_NOTIFICATION, [
                notification?.id ?? '',
                now,
                deliveries.map(({ target }) => target),
                deliveries.map(({ payload }) => payload),
              ]),
        ]);
        return 'recorded';
      }),
    claimNotifications: (targets, owner, leaseUntil, now) =>
      database.transaction(async (transaction) =>
        (await transaction.query(CLAIM_NOTIFICATIONS, [targets, owner, leaseUntil, now])).map(toLeasedNotification),
      ),
    settleNotification: (settlement) =>
      database.transaction(async (transaction) => {
        const { id, target, owner, attempt } = settlement;
        const { status, dueAt, attemptedAt, error, messageId } = toSettledColumns(settlement);
        const values = [status, dueAt, attemptedAt, error, messageId, id, target, owner, attempt];
        const settledRows = await transaction.query(SETTLE_NOTIFICATION, values);
        if (settledRows.length === 0) await forceDurableCommit(transaction);
        return settledRows.length === 0 ? 'lost' : 'settled';
      }),
    async listNotifications(target, limit) {
      return (await database.query(SELECT_NEWEST_NOTIFICATIONS, [target, limit])).map(toStoredNotification);
    },
    async purgeNotifications(createdBefore, limit) {
      return (await database.query(PURGE_NOTIFICATIONS, [createdBefore, limit])).length;
    },
  };
}
