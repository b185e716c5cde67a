/**
 * Accepting: idempotency, exact volume and rate, suppression, and the rows, in the caller's transaction. Within a batch
 * each message sees the effects of those before it.
 */

import type { DatabaseSync } from 'node:sqlite';
import { type LimitUsage, limitUsageOf } from '../../model/account.ts';
import {
  type AcceptResult,
  idempotencyKeysExpiredBefore,
  type NewMessage,
  suppressedEntry,
} from '../../model/message.ts';
import { type AcceptedState, decideAcceptance, type Lookups, seqOf } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { prepareAppend } from './queue.ts';

export function prepareAccept(database: DatabaseSync): (batch: readonly NewMessage[]) => AcceptResult[] {
  const readAccount = database.prepare('SELECT * FROM account WHERE id = ?');
  const writeCounts = database.prepare(
    'UPDATE account SET volume_used = ?, rate_used = ?, rate_window_at = ? WHERE id = ?',
  );
  const readKey = database.prepare(
    'SELECT fingerprint, id FROM idempotency WHERE account_id = ? AND key = ? AND at > ?',
  );
  const writeKey = database.prepare(
    'INSERT OR REPLACE INTO idempotency (account_id, key, fingerprint, id, at) VALUES (?, ?, ?, ?, ?)',
  );
  const readSuppression = database.prepare(
    'SELECT 1 AS found FROM suppression WHERE recipient = ? AND account_id IN (?, 0) LIMIT 1',
  );
  const writeMail = database.prepare(
    `INSERT INTO mail_request (seq, id, account_id, key_id, state, lane, due_at, owner, handing_over, attempts, accepted_at, ended_at,
       "to", recipient, "from", subject) VALUES (?, ?, ?, ?, ?, 0, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const writeBody = database.prepare('INSERT INTO body (seq, message) VALUES (?, ?)');
  const append = prepareAppend(database);

  function readCounts(id: number, known: Map<number, LimitUsage>): LimitUsage | null {
    const held = known.get(id);
    if (held !== undefined) return held;
    const row = readAccount.get(id);
    if (row === undefined) return null;
    const counts = limitUsageOf(rows.account(row));
    known.set(id, counts);
    return counts;
  }

  const lookups: Lookups = {
    findByIdempotencyKey(mail) {
      const row = readKey.get(mail.accountId, mail.idempotency?.key ?? null, idempotencyKeysExpiredBefore(mail));
      return row === undefined ? null : { id: rows.text(row, 'id'), fingerprint: rows.text(row, 'fingerprint') };
    },
    isSuppressed: ({ recipient, accountId }) => readSuppression.get(recipient, accountId) !== undefined,
  };

  function insert(mail: NewMessage, state: AcceptedState): void {
    const seq = seqOf(mail.id);
    const at = mail.acceptedAt;
    const suppressed = state === 'suppressed';
    const recipient = mail.recipient === mail.to ? null : mail.recipient;
    const lease = state === 'sending' ? mail.lease : null;
    const dueAt = suppressed ? null : lease === null ? at : lease.until;
    const endedAt = suppressed ? at : null;
    writeMail.run(
      seq,
      mail.id,
      mail.accountId,
      mail.keyId,
      state,
      dueAt,
      lease?.owner ?? null,
      lease === null ? 0 : 1,
      at,
      endedAt,
      mail.to,
      recipient,
      mail.from,
      mail.subject,
    );
    writeBody.run(seq, mail.message);
    if (suppressed) append(seq, suppressedEntry(at, mail.suppressedBy ?? 'store'));
    if (mail.idempotency !== null)
      writeKey.run(mail.accountId, mail.idempotency.key, mail.idempotency.fingerprint, mail.id, at);
  }

  return function accept(batch) {
    const known = new Map<number, LimitUsage>();
    const answers = batch.map((mail): AcceptResult => {
      const answer = decideAcceptance(mail, readCounts(mail.accountId, known), lookups);
      if (answer.kind === 'accepted') insert(mail, answer.state);
      return answer;
    });
    for (const [id, { volumeUsed, rateUsed, rateWindowAt }] of known)
      writeCounts.run(volumeUsed, rateUsed, rateWindowAt, id);
    return answers;
  };
}
