import type { DatabaseSync } from 'node:sqlite';
import type { AcceptResult, NewMessage } from '../../model/message.ts';
import type { MessageTransaction } from '../messages.ts';
import { getMinIdOfSeq, toSeq } from '../rules/messages.ts';
import type { Transaction } from '../transaction.ts';
import { prepareAppend } from './history.ts';
import type { Outbox } from './outbox.ts';

/** `accept` accepts messages in the current transaction. */
export function createMessageTransaction(
  database: DatabaseSync,
  transaction: Transaction,
  accept: (batch: readonly NewMessage[]) => readonly AcceptResult[],
  recordReports: MessageTransaction['recordReports'],
  outbox: Outbox,
): MessageTransaction {
  const selectSeq = database.prepare('SELECT 1 AS one FROM mail_request WHERE seq = ?');
  const endMessage = database.prepare('UPDATE mail_request SET state = ?, due_at = NULL, ended_at = ? WHERE seq = ?');
  const appendEntry = prepareAppend(database, outbox);
  return {
    ...transaction,
    accept: async (batch) => accept(batch),
    // The transaction holds the write lock of the database, so no other transaction can use the number.
    async toUnusedId(newId) {
      let seq = toSeq(newId);
      while (selectSeq.get(seq) !== undefined) seq -= 1;
      return getMinIdOfSeq(seq).slice(0, 18) + newId.slice(18);
    },
    lockMessages: async () => undefined,
    async endMessages(messages) {
      for (const { id, state, endedAt } of messages) endMessage.run(state, endedAt, toSeq(id));
    },
    async appendEntries(entries) {
      for (const entry of entries) appendEntry(toSeq(entry.id), entry, entry.state);
    },
    recordReports,
    getStoreTime: (now) => now,
  };
}
