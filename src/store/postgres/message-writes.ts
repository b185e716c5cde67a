import type { Work } from '../bind.ts';
import { isRead, type MethodKind } from '../contract.ts';
import type { ServerTimeOverride } from '../environment.ts';
import type { MessageTransaction } from '../messages.ts';
import { acceptInTransaction } from './accept.ts';
import { appendEvents, endMessages } from './history.ts';
import { lockMessages } from './message-locks.ts';
import { recordBatch } from './report-batch.ts';
import type { Database, Session, Transaction } from './session.ts';

const SELECT_STORED = 'SELECT 1 AS one FROM mail_request WHERE id = ANY($1::uuid[])';

/**
 * Runs the methods of the shared modules: a read on any connection, a change in a transaction. If the response to its
 * commit is lost, the messages that it has accepted must be stored. `requireStandby` rejects if a synchronous standby is
 * required and not configured.
 */
export function createMessageWork(
  database: Database,
  requireStandby: (session: Session) => Promise<void>,
  serverTime: ServerTimeOverride,
): (kind: MethodKind, work: Work) => Promise<unknown> {
  const addMessageWrites = (transaction: Transaction, acceptedIds: string[]): MessageTransaction => ({
    ...transaction,
    async accept(batch) {
      const [, results] = await Promise.all([
        requireStandby(transaction),
        acceptInTransaction(transaction, batch, false),
      ]);
      acceptedIds.push(...batch.filter((_, index) => results[index]?.kind === 'accepted').map(({ id }) => id));
      return results;
    },
    toUnusedId: async (newId) => newId,
    lockMessages: (ids) => lockMessages(transaction, ids),
    endMessages: (messages) => endMessages(transaction, messages),
    appendEntries: (entries) => appendEvents(transaction, entries),
    recordReports: (batch) => recordBatch(transaction, batch),
    getStoreTime: serverTime,
  });
  return async (kind, work) => {
    if (isRead(kind)) return work(addMessageWrites(database, []));
    let acceptedIds: string[] = [];
    return database.transaction(
      (transaction) => {
        acceptedIds = [];
        return work(addMessageWrites(transaction, acceptedIds));
      },
      async (session) =>
        acceptedIds.length === 0 || (await session.query(SELECT_STORED, [acceptedIds])).length === acceptedIds.length,
    );
  };
}
