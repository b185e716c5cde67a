/** Stores the states of items that need attention, and the notifications to deliver. */
import type { DatabaseSync } from 'node:sqlite';
import { getAttentionKey } from '../../model/attention.ts';
import type {
  AttentionCheck,
  LeasedNotification,
  NotificationSettlement,
  StoredNotification,
} from '../../model/notification.ts';
import type { AttentionRecord } from '../notification-store.ts';
import {
  formatAttentionState,
  toAttentionCheck,
  toLeasedNotification,
  toSettledColumns,
  toStoredNotification,
} from '../rules/notifications.ts';

export function prepareNotifications(database: DatabaseSync) {
  const selectCheck = database.prepare(
    'SELECT round, sequence, notified_at FROM attention_check WHERE abs(:now - checked_at) >= :interval',
  );
  const selectStates = database.prepare('SELECT state FROM attention ORDER BY key');
  const advanceRound = database.prepare(
    `UPDATE attention_check SET round = round + 1, checked_at = :now,
       sequence = sequence + :notified, notified_at = CASE :notified WHEN 1 THEN :now ELSE notified_at END
     WHERE round = :round`,
  );
  const upsertState = database.prepare(
    'INSERT INTO attention (key, state) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET state = excluded.state',
  );
  const deleteState = database.prepare('DELETE FROM attention WHERE key = ?');
  const insertNotification = database.prepare(
    `INSERT INTO notification (id, target, payload, status, created_at, due_at) VALUES (?, ?, ?, 'pending', ?, ?)`,
  );
  const leaseNotification = database.prepare(
    `UPDATE notification SET owner = :owner, due_at = :until, attempt = attempt + 1
     WHERE rowid = (SELECT rowid FROM notification WHERE target = :target AND status = 'pending' AND due_at <= :now
       ORDER BY due_at LIMIT 1)
     RETURNING id, target, payload, created_at, owner, attempt`,
  );
  const settleAttempt = database.prepare(
    `UPDATE notification SET status = ?, due_at = ?, owner = NULL, attempted_at = ?, error = ?, message_id = ?
     WHERE id = ? AND target = ? AND status = 'pending' AND owner = ? AND attempt = ?`,
  );
  const selectNewest = database.prepare(
    `SELECT id, target, status, created_at, attempt, attempted_at, error, message_id FROM notification
     WHERE target = ? ORDER BY created_at DESC, id DESC LIMIT ?`,
  );
  const deleteOldNotifications = database.prepare(
    'DELETE FROM notification WHERE rowid IN (SELECT rowid FROM notification WHERE created_at <= ? LIMIT ?)',
  );

  return {
    readAttentionCheck(now: number, intervalMs: number): AttentionCheck | null {
      const row = selectCheck.get({ now, interval: intervalMs });
      return row === undefined ? null : toAttentionCheck(row, selectStates.all());
    },
    recordAttention({ round, now, changedStates, removedKeys, notification }: AttentionRecord): 'recorded' | 'stale' {
      const notificationCount = notification === null ? 0 : 1;
      if (advanceRound.run({ now, notified: notificationCount, round }).changes === 0) return 'stale';
      for (const state of changedStates) upsertState.run(getAttentionKey(state.item), formatAttentionState(state));
      for (const key of removedKeys) deleteState.run(key);
      for (const { target, payload } of notification?.deliveries ?? [])
        insertNotification.run(notification?.id ?? '', target, payload, now, now);
      return 'recorded';
    },
    claimNotifications: (
      targets: readonly string[],
      owner: string,
      leaseUntil: number,
      now: number,
    ): LeasedNotification[] =>
      targets.flatMap((target) =>
        leaseNotification.all({ owner, until: leaseUntil, target, now }).map(toLeasedNotification),
      ),
    settleNotification(settlement: NotificationSettlement): 'settled' | 'lost' {
      const { id, target, owner, attempt } = settlement;
      const { status, dueAt, attemptedAt, error, messageId } = toSettledColumns(settlement);
      const values = [status, dueAt, attemptedAt, error, messageId, id, target, owner, attempt] as const;
      return settleAttempt.run(...values).changes === 0 ? 'lost' : 'settled';
    },
    listNotifications: (target: string, limit: number): StoredNotification[] =>
      selectNewest.all(target, limit).map(toStoredNotification),
    purgeNotifications: (createdBefore: number, limit: number): number =>
      Number(deleteOldNotifications.run(createdBefore, limit).changes),
  };
}
