import type { DatabaseSync } from 'node:sqlite';
import { createExpiredEntry } from '../../model/message.ts';
import { getMaxSeqAt, requireTransition } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { prepareAppend } from './history.ts';
import type { Outbox } from './outbox.ts';

export function prepareRetention(database: DatabaseSync, outbox: Outbox) {
  // The order of `seq` is the order of acceptance. The oldest queued messages are therefore a range of an index on
  // `seq`, regardless of their due times.
  const selectExpired = database.prepare(
    `SELECT seq, id FROM mail_request INDEXED BY mail_request_open WHERE ended_at IS NULL AND state = 'queued' AND seq <= ? ORDER BY seq LIMIT ?`,
  );
  const EXPIRED_STATE = requireTransition('queued', 'expired', 'queue');
  const endMessage = database.prepare(
    `UPDATE mail_request SET state = '${EXPIRED_STATE}', due_at = NULL, ended_at = ? WHERE seq = ?`,
  );
  const appendEntry = prepareAppend(database, outbox);
  // A message cannot end before it is accepted, so only messages that were accepted before `endedBefore` are read.
  const selectEnded = database.prepare(
    `SELECT b.seq FROM body b JOIN mail_request m ON m.seq = b.seq WHERE b.seq <= ? AND m.ended_at <= ? ORDER BY b.seq LIMIT ?`,
  );
  const deleteBody = database.prepare('DELETE FROM body WHERE seq = ?');
  const deleteKeys = database.prepare(
    'DELETE FROM idempotency WHERE (account_id, key) IN (SELECT account_id, key FROM idempotency WHERE at <= ? LIMIT ?)',
  );

  // Finding the latest due row of each account and lane takes one index lookup. The cost therefore depends on the
  // number of accounts and not on the length of the queue.
  const selectNextAccount = database.prepare(
    `SELECT lane, account_id FROM mail_request INDEXED BY mail_request_due
     WHERE state = 'queued' AND (lane, account_id) > (?, ?) ORDER BY lane, account_id LIMIT 1`,
  );
  const selectExcessiveDueTimes = database.prepare(
    `SELECT seq FROM mail_request INDEXED BY mail_request_due
     WHERE state = 'queued' AND lane = ? AND account_id = ? AND due_at > ? ORDER BY due_at DESC LIMIT ?`,
  );
  const setDueTime = database.prepare('UPDATE mail_request SET due_at = ? WHERE seq = ?');

  return {
    resetExcessiveDueTimes(latestDueAt: number, now: number, limit: number): number {
      let changedCount = 0;
      let position = selectNextAccount.get(-1, 0);
      while (position !== undefined && changedCount < limit) {
        const [lane, account] = [rows.readInteger(position, 'lane'), rows.readInteger(position, 'account_id')];
        const dueRows = selectExcessiveDueTimes.all(lane, account, latestDueAt, limit - changedCount);
        for (const row of dueRows) setDueTime.run(now, rows.readInteger(row, 'seq'));
        changedCount += dueRows.length;
        position = selectNextAccount.get(lane, account);
      }
      return changedCount;
    },
    expire(acceptedBefore: number, now: number, limit: number, by: string): string[] {
      return selectExpired.all(getMaxSeqAt(acceptedBefore), limit).map((row) => {
        const seq = rows.readInteger(row, 'seq');
        endMessage.run(now, seq);
        appendEntry(seq, createExpiredEntry(now, by), EXPIRED_STATE);
        return rows.readText(row, 'id');
      });
    },
    purgeBodiesAndKeys(endedBefore: number, keysBefore: number, limit: number): number {
      const bodyRows = selectEnded.all(getMaxSeqAt(endedBefore), endedBefore, limit);
      for (const row of bodyRows) deleteBody.run(rows.readInteger(row, 'seq'));
      const { changes } = deleteKeys.run(keysBefore, limit);
      return Math.max(bodyRows.length, Number(changes));
    },
  };
}
