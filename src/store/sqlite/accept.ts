/**
 * Accepting: idempotency, exact volume and rate, suppression, the rows, all in the transaction of the caller.
 * Within a batch each mail request sees what those before it did.
 */

import type { DatabaseSync } from 'node:sqlite';
import { type Counts, countOne, countsOf, keysOverAt, limitsLeft, refusal } from '../../model/limits.ts';
import type { AcceptAnswer, NewMail } from '../../model/message.ts';
import { suppressedEntry } from '../../model/stored-entries.ts';
import { seqOf } from '../seq.ts';
import { prepareAppend } from './event.ts';
import * as rows from './rows.ts';
import { transition } from './transition.ts';

export function prepareAccept(database: DatabaseSync): (batch: readonly NewMail[]) => AcceptAnswer[] {
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

  const queued = transition(null, 'queued', 'accept');
  const sending = transition(null, 'sending', 'accept');
  const ended = transition(null, 'suppressed', 'accept');

  function readCounts(id: number, known: Map<number, Counts>): Counts | null {
    const held = known.get(id);
    if (held !== undefined) return held;
    const row = readAccount.get(id);
    if (row === undefined) return null;
    const counts = countsOf(rows.account(row));
    known.set(id, counts);
    return counts;
  }

  function replay(mail: NewMail): AcceptAnswer | null {
    if (mail.idempotency === null) return null;
    const { key, fingerprint } = mail.idempotency;
    const row = readKey.get(mail.accountId, key, keysOverAt(mail));
    if (row === undefined) return null;
    return rows.text(row, 'fingerprint') === fingerprint
      ? { kind: 'replayed', id: rows.text(row, 'id') }
      : { kind: 'idempotency-conflict' };
  }

  function insert(mail: NewMail): 'queued' | 'sending' | 'suppressed' {
    const seq = seqOf(mail.id);
    const at = mail.acceptedAt;
    const suppressed = mail.suppressed || readSuppression.get(mail.recipient, mail.accountId) !== undefined;
    const state = suppressed ? ended : mail.lease === null ? queued : sending;
    const recipient = mail.recipient === mail.to ? null : mail.recipient;
    const lease = state === sending ? mail.lease : null;
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
    if (suppressed) append(seq, suppressedEntry(at, mail.suppressed ? 'simulator' : 'store'));
    if (mail.idempotency !== null)
      writeKey.run(mail.accountId, mail.idempotency.key, mail.idempotency.fingerprint, mail.id, at);
    return state;
  }

  return function accept(batch) {
    const known = new Map<number, Counts>();
    const answers = batch.map((mail): AcceptAnswer => {
      const counts = readCounts(mail.accountId, known);
      if (counts === null || counts.account.locked !== null) return { kind: 'locked' };
      const replayed = replay(mail);
      if (replayed !== null) return replayed;
      const reason = refusal(counts, mail.acceptedAt);
      if (reason !== null) return { kind: 'refused', reason, limits: limitsLeft(counts, mail.acceptedAt) };
      countOne(counts);
      const state = insert(mail);
      return { kind: 'accepted', state, limits: limitsLeft(counts, mail.acceptedAt) };
    });
    for (const [id, { volumeUsed, rateUsed, rateWindowAt }] of known)
      writeCounts.run(volumeUsed, rateUsed, rateWindowAt, id);
    return answers;
  };
}
