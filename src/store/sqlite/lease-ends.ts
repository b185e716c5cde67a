/** Marks, settles and releases leases. A settlement is valid only for the owner and the attempt count of the lease. */

import type { DatabaseSync } from 'node:sqlite';
import { ATTEMPT_OWED, type SettleResult, type State, toParkedDueTime } from '../../model/message.ts';
import type { Store } from '../contract.ts';
import { countChanges } from '../reputation.ts';
import { getLane, getStateAfterChange, type PackedSettlement, requireTransition, toSeq } from '../rules/messages.ts';
import { type CountedChange, getAttemptEvidence } from '../rules/reputation.ts';
import * as rows from '../rules/rows.ts';
import { ON_LISTED } from '../suppressions.ts';
import type { Transaction } from '../transaction.ts';
import { prepareAppend } from './history.ts';
import type { Outbox } from './outbox.ts';

export function prepareLeaseEnds(database: DatabaseSync, transaction: Transaction, outbox: Outbox) {
  const LEASE_CONDITION = `WHERE seq = ? AND owner = ? AND attempts = ? AND state = 'sending'`;
  const markLease = database.prepare(`UPDATE mail_request SET handing_over = 1 ${LEASE_CONDITION}`);
  const endLease = database.prepare(
    `UPDATE mail_request SET state = ?, due_at = ?, owner = NULL, handing_over = 0, lane = max(lane, ?), held_ms = held_ms % ${ATTEMPT_OWED}, attempts = attempts - ?, ended_at = ?, route = ? ${LEASE_CONDITION} RETURNING account_id`,
  );
  const updateState = database.prepare('UPDATE mail_request SET state = ?, due_at = ?, ended_at = ? WHERE seq = ?');
  const appendEntry = prepareAppend(database, outbox);
  const selectRecipient = database.prepare(
    'SELECT coalesce(recipient, "to") AS recipient FROM mail_request WHERE seq = ?',
  );
  const suppressRecipient = database.prepare(
    `INSERT INTO suppression (recipient, account_id, reason, source, at) VALUES (?, ?, ?, ?, ?) ${ON_LISTED}`,
  );
  const addReference = database.prepare(
    'INSERT OR IGNORE INTO provider_reference (reference, id, at) SELECT ?, id, ? FROM mail_request WHERE seq = ?',
  );
  const QUEUED_STATE = requireTransition('sending', 'queued', 'queue');
  // In the lane of first attempts, messages are due in the order of acceptance. A released message returns to its
  // previous position in this order.
  const releaseLease = database.prepare(
    `UPDATE mail_request SET state = '${QUEUED_STATE}', due_at = CASE lane WHEN 0 THEN min(accepted_at, ?) ELSE ? END, owner = NULL,
       handing_over = 0, attempts = attempts - 1 ${LEASE_CONDITION}`,
  );
  const parkLease = database.prepare(
    `UPDATE mail_request SET state = '${QUEUED_STATE}', due_at = ?, owner = NULL, handing_over = 0, attempts = attempts - 1,
       route = coalesce(?, route) ${LEASE_CONDITION}`,
  );

  function applySettlement(settlement: PackedSettlement, countedChanges: CountedChange[]): SettleResult {
    const { id, owner, attempts, refundAttempt, excludedFromReputation } = settlement;
    const seq = toSeq(id);
    let isFirstChange = true;
    let accountId = 0;
    let from: State = 'sending';
    for (const change of settlement.changes) {
      const { to, dueAt, at, verb, suppress, reference } = change;
      const endedAt = change.isTerminal ? at : null;
      const newState = getStateAfterChange(from, to, isFirstChange);
      if (isFirstChange) {
        const refund = refundAttempt ? 1 : 0;
        const row = endLease.get(
          newState,
          dueAt,
          getLane(verb),
          refund,
          endedAt,
          settlement.route,
          seq,
          owner,
          attempts,
        );
        if (row === undefined) return 'lost';
        accountId = rows.readInteger(row, 'account_id');
        isFirstChange = false;
      } else {
        updateState.run(newState, dueAt, endedAt, seq);
      }
      appendEntry(seq, change, newState, suppress !== null);
      if (reference !== null) addReference.run(reference, at, seq);
      const recipient = suppress === null ? null : rows.readText(selectRecipient.get(seq) ?? {}, 'recipient');
      const isNew = recipient !== null && suppressRecipient.run(recipient, accountId, suppress, id, at).changes > 0;
      if (suppress !== null && recipient !== null && isNew)
        outbox.recordSuppression('suppression.added', accountId, at, {
          address: recipient,
          reason: suppress,
          source: id,
        });
      if (!excludedFromReputation)
        countedChanges.push({
          ...{ accountId, from, to, at, isNew, isCounted: true },
          evidence: getAttemptEvidence(to, recipient),
        });
      from = newState;
    }
    return 'settled';
  }

  return {
    markTransmitting(batch: Parameters<Store['markTransmitting']>[0]): SettleResult[] {
      return batch.map(({ id, owner, attempts }) =>
        markLease.run(toSeq(id), owner, attempts).changes === 0 ? 'lost' : 'settled',
      );
    },
    async settle(batch: readonly PackedSettlement[]): Promise<readonly SettleResult[]> {
      const countedChanges: CountedChange[] = [];
      const results = batch.map((settlement) => applySettlement(settlement, countedChanges));
      await countChanges(transaction, countedChanges);
      return results;
    },
    release(...[batch, now]: Parameters<Store['release']>): SettleResult[] {
      return batch.map(({ id, owner, attempts }) =>
        releaseLease.run(now, now, toSeq(id), owner, attempts).changes === 0 ? 'lost' : 'settled',
      );
    },
    park(...[batch, reason, now]: Parameters<Store['park']>): SettleResult[] {
      const dueAt = toParkedDueTime(reason, now);
      return batch.map(({ id, owner, attempts, route = null }) =>
        parkLease.run(dueAt, route, toSeq(id), owner, attempts).changes === 0 ? 'lost' : 'settled',
      );
    },
  };
}
