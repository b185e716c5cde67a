/**
 * Accepts a batch in the transaction of the caller. The check of a message includes the earlier messages of its batch.
 */

import type { DatabaseSync } from 'node:sqlite';
import { type LimitUsage, toLimitUsage } from '../../model/account.ts';
import { listMatchingPatterns } from '../../model/address-pattern.ts';
import {
  type AcceptResult,
  createResendOfEntry,
  createSuppressedEntry,
  getIdempotencyExpiryCutoff,
  type NewMessage,
  toParkedDueTime,
} from '../../model/message.ts';
import { type Acceptance, type AcceptanceLookups, decideAcceptance, toSeq } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { prepareAppend } from './history.ts';
import type { Outbox } from './outbox.ts';

export function prepareSuppressionCheck(
  database: DatabaseSync,
): () => (accountId: number, recipient: string, now: number) => boolean {
  const select = database.prepare(
    `SELECT 1 AS found FROM suppression WHERE recipient = ? AND account_id IN (?, 0)
       AND (expires_at IS NULL OR expires_at > ?) LIMIT 1`,
  );
  // Patterns of domains begin with @, which no address does. Most lists have none, so one lookup for each address is enough.
  const selectPattern = database.prepare(
    `SELECT 1 AS found FROM suppression WHERE recipient >= '@' AND recipient < 'A' LIMIT 1`,
  );
  return () => {
    const hasPatterns = selectPattern.get() !== undefined;
    return (accountId, recipient, now) =>
      (hasPatterns ? listMatchingPatterns(recipient) : [recipient]).some(
        (address) => select.get(address, accountId, now) !== undefined,
      );
  };
}

export function prepareAccept(
  database: DatabaseSync,
  outbox: Outbox,
): (batch: readonly NewMessage[]) => AcceptResult[] {
  const readAccount = database.prepare('SELECT * FROM account WHERE id = ?');
  const updateUsage = database.prepare(
    'UPDATE account SET volume_used = ?, rate_used = ?, rate_window_at = ? WHERE id = ?',
  );
  const readKey = database.prepare(
    'SELECT fingerprint, id FROM idempotency WHERE account_id = ? AND key = ? AND at > ?',
  );
  const insertKey = database.prepare(
    'INSERT OR REPLACE INTO idempotency (account_id, key, fingerprint, id, at) VALUES (?, ?, ?, ?, ?)',
  );
  const openSuppressionCheck = prepareSuppressionCheck(database);
  let isSuppressed = openSuppressionCheck();
  const insertMessage = database.prepare(
    `INSERT INTO mail_request (seq, id, account_id, key_id, state, lane, due_at, owner, handing_over, attempts, accepted_at, ended_at,
       expires_at, sender, "to", recipient, "from", subject) VALUES (?, ?, ?, ?, ?, 0, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertBody = database.prepare('INSERT INTO body (seq, message) VALUES (?, ?)');
  const appendEntry = prepareAppend(database, outbox);

  function readUsage(id: number, usageByAccount: Map<number, LimitUsage>): LimitUsage | null {
    const cachedUsage = usageByAccount.get(id);
    if (cachedUsage !== undefined) return cachedUsage;
    const row = readAccount.get(id);
    if (row === undefined) return null;
    const usage = toLimitUsage(rows.toAccount(row));
    usageByAccount.set(id, usage);
    return usage;
  }

  const lookups: AcceptanceLookups = {
    findByIdempotencyKey(message) {
      const row = readKey.get(message.accountId, message.idempotency?.key ?? null, getIdempotencyExpiryCutoff(message));
      return row === undefined
        ? null
        : { id: rows.readText(row, 'id'), fingerprint: rows.readText(row, 'fingerprint') };
    },
    isSuppressed: ({ recipient, accountId, acceptedAt }) => isSuppressed(accountId, recipient, acceptedAt),
  };

  function insertAcceptedMessage(message: NewMessage, { state, suppressedBy, expiresAt, sender }: Acceptance): void {
    const seq = toSeq(message.id);
    const at = message.acceptedAt;
    const isSuppressed = suppressedBy !== undefined;
    const recipient = message.recipient === message.to ? null : message.recipient;
    const lease = state === 'sending' ? message.lease : null;
    const queuedDueAt = message.isHeld === true ? toParkedDueTime('hold', at) : at;
    const dueAt = isSuppressed ? null : (lease?.until ?? queuedDueAt);
    const endedAt = isSuppressed ? at : null;
    insertMessage.run(
      seq,
      message.id,
      message.accountId,
      message.keyId,
      state,
      dueAt,
      lease?.owner ?? null,
      lease === null ? 0 : 1,
      at,
      endedAt,
      expiresAt ?? null,
      rows.toSenderColumn(sender),
      message.to,
      recipient,
      message.from,
      message.subject,
    );
    insertBody.run(seq, message.message);
    outbox.recordAcceptance(message.id, message.accountId, state);
    const resendOf = message.resendOf ?? null;
    if (resendOf !== null) appendEntry(seq, createResendOfEntry(resendOf, at), state);
    if (isSuppressed) appendEntry(seq, createSuppressedEntry(at, suppressedBy), state);
    if (message.idempotency !== null)
      insertKey.run(message.accountId, message.idempotency.key, message.idempotency.fingerprint, message.id, at);
  }

  return function accept(batch) {
    isSuppressed = openSuppressionCheck();
    const usageByAccount = new Map<number, LimitUsage>();
    const results = batch.map((message): AcceptResult => {
      const result = decideAcceptance(message, readUsage(message.accountId, usageByAccount), lookups);
      if (result.kind === 'accepted') insertAcceptedMessage(message, result);
      return result;
    });
    for (const [id, { volumeUsed, rateUsed, rateWindowAt }] of usageByAccount)
      updateUsage.run(volumeUsed, rateUsed, rateWindowAt, id);
    return results;
  };
}
