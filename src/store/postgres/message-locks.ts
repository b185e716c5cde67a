/**
 * Locks messages in order of id, so that transactions that change several messages do not deadlock.
 */

import type { ReportedMessage } from '../rules/feedback.ts';
import * as rows from '../rules/rows.ts';
import type { Transaction } from './session.ts';

// Rows in `queue` are locked before rows in `mail_request`. A settlement uses the same order.
const LOCK_QUEUE_ROWS = 'SELECT id, state, attempts FROM queue WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE';
// The server selects the partition of each id. With a condition on the array, it would read all partitions, because the
// plan is generic.
const LOCK_MESSAGES = `SELECT m.* FROM (SELECT u.id FROM unnest($1::uuid[]) AS u(id) ORDER BY u.id) r
    CROSS JOIN LATERAL (
      SELECT id, account_id, key_id, state, "to", "from", coalesce(recipient, "to") AS recipient, route, facts, reports
      FROM mail_request WHERE id = r.id FOR UPDATE) m`;

/** A message whose rows are locked. */
export interface LockedMessage {
  readonly row: rows.Row;
  /** The row in `queue`, or undefined if the message has ended. */
  readonly queueRow: rows.Row | undefined;
  readonly message: ReportedMessage;
}

/** Locks the rows of the messages. Resolves to the stored messages by id. */
export async function lockMessages(
  transaction: Transaction,
  ids: readonly string[],
): Promise<ReadonlyMap<string, LockedMessage>> {
  if (ids.length === 0) return new Map();
  const queueRows = new Map(
    (await transaction.query(LOCK_QUEUE_ROWS, [ids])).map((row) => [rows.readText(row, 'id'), row]),
  );
  const messageRows = await transaction.query(LOCK_MESSAGES, [ids]);
  return new Map(
    messageRows.map((row) => {
      const id = rows.readText(row, 'id');
      const queueRow = queueRows.get(id);
      return [id, { row, queueRow, message: rows.toReportedMessage(row, queueRow) }];
    }),
  );
}
