/**
 * Marks, settles, releases and recovers leases. A settlement is valid only for the owner and the attempt count of the
 * lease.
 */

import type { DatabaseSync } from 'node:sqlite';
import { resolveLostLease, type SettleResult, type State } from '../../model/message.ts';
import type { Store } from '../contract.ts';
import { getLane, getStateAfterChange, type PackedSettlement, requireTransition, toSeq } from '../rules/messages.ts';
import { ReputationDeltas } from '../rules/reputation.ts';
import * as rows from '../rules/rows.ts';
import type { FeedbackReputation } from './feedback.ts';
import { prepareAppend } from './history.ts';
import type { Outbox } from './outbox.ts';

export function prepareLeaseEnds(
  database: DatabaseSync,
  { addToReputation, recordEvidence }: Pick<FeedbackReputation, 'addToReputation' | 'recordEvidence'>,
  outbox: Outbox,
) {
  const LEASE_CONDITION = `WHERE seq = ? AND owner = ? AND attempts = ? AND state = 'sending'`;
  const markLease = database.prepare(`UPDATE mail_request SET handing_over = 1 ${LEASE_CONDITION}`);
  const endLease = database.prepare(
    `UPDATE mail_request SET state = ?, due_at = ?, owner = NULL, handing_over = 0, lane = max(lane, ?), attempts = attempts - ?, ended_at = ? ${LEASE_CONDITION} RETURNING account_id`,
  );
  const updateState = database.prepare('UPDATE mail_request SET state = ?, due_at = ?, ended_at = ? WHERE seq = ?');
  const appendEntry = prepareAppend(database, outbox);
  const suppressRecipient = database.prepare(
    `INSERT OR IGNORE INTO suppression (recipient, account_id, reason, source, at)
     SELECT coalesce(recipient, "to"), account_id, ?, id, ? FROM mail_request WHERE seq = ? RETURNING recipient`,
  );
  const addReference = database.prepare(
    'INSERT OR IGNORE INTO provider_reference (reference, id, at) SELECT ?, id, ? FROM mail_request WHERE seq = ?',
  );
  const selectRecoverable = database.prepare(
    `SELECT seq, id, owner, handing_over FROM mail_request
     WHERE ended_at IS NULL AND state = 'sending' AND (:every
       OR (owner = :by AND due_at <= :own)
       OR (owner <> :by AND (:dead OR due_at <= :now)
         AND NOT EXISTS (SELECT 1 FROM node WHERE name = mail_request.owner AND alive_until > :now)))`,
  );
  const recoverRow = database.prepare(
    `UPDATE mail_request SET state = ?, due_at = ?, owner = NULL, handing_over = 0, attempts = attempts - ? WHERE seq = ?`,
  );
  const QUEUED_STATE = requireTransition('sending', 'queued', 'queue');
  // In the lane of first attempts, messages are due in the order of acceptance. A released message returns to its
  // previous position in this order.
  const releaseLease = database.prepare(
    `UPDATE mail_request SET state = '${QUEUED_STATE}', due_at = CASE lane WHEN 0 THEN min(accepted_at, ?) ELSE ? END, owner = NULL,
       handing_over = 0, attempts = attempts - 1 ${LEASE_CONDITION}`,
  );

  function applySettlement(settlement: PackedSettlement, deltas: ReputationDeltas): SettleResult {
    const seq = toSeq(settlement.id);
    let isFirstChange = true;
    let accountId = 0;
    let from: State = 'sending';
    for (const change of settlement.changes) {
      const { to, isTerminal: terminal, dueAt, at, suppress: reason, reference } = change;
      const endedAt = terminal ? at : null;
      const newState = getStateAfterChange(from, to, isFirstChange);
      if (isFirstChange) {
        const row = endLease.get(
          newState,
          dueAt,
          getLane(change.verb),
          settlement.refundAttempt ? 1 : 0,
          endedAt,
          seq,
          settlement.owner,
          settlement.attempts,
        );
        if (row === undefined) return 'lost';
        accountId = rows.readInteger(row, 'account_id');
        isFirstChange = false;
      } else {
        updateState.run(newState, dueAt, endedAt, seq);
      }
      appendEntry(seq, change, newState, reason !== null);
      if (reference !== null) addReference.run(reference, at, seq);
      // If the address is already suppressed, the bounce does not count in the reputation of the account again.
      const addedSuppression = reason === null ? undefined : suppressRecipient.get(reason, at, seq);
      const address = addedSuppression === undefined ? null : rows.readText(addedSuppression, 'recipient');
      if (reason !== null && address !== null)
        outbox.recordSuppression('suppression.added', accountId, at, { address, reason, source: settlement.id });
      if (!settlement.excludedFromReputation) {
        const kind = to === 'complained' ? 'complaint' : 'bounce';
        const isProven = address !== null && recordEvidence(accountId, kind, address, at);
        deltas.add(accountId, from, to, { isNew: address !== null, isProven }, at);
      }
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
    settle(batch: readonly PackedSettlement[]): SettleResult[] {
      const deltas = new ReputationDeltas();
      const results = batch.map((settlement) => applySettlement(settlement, deltas));
      for (const [accountId, delta, at] of deltas.listByAccount()) addToReputation(accountId, delta, at);
      return results;
    },
    release(...[batch, now]: Parameters<Store['release']>): SettleResult[] {
      return batch.map(({ id, owner, attempts }) =>
        releaseLease.run(now, now, toSeq(id), owner, attempts).changes === 0 ? 'lost' : 'settled',
      );
    },
    recover({
      now,
      includeAllLeases: everyLease,
      includeDeadNodes: deadNodes,
      onUncertain,
      node: by,
      ownLeasesUntil: ownUntil,
      excludedIds = [],
    }: Parameters<Store['recover']>[0]): number {
      const excludedIdSet = new Set(excludedIds);
      const leaseRows = selectRecoverable
        .all({ every: everyLease ? 1 : 0, dead: deadNodes ? 1 : 0, by, now, own: ownUntil ?? now })
        .filter((row) => !excludedIdSet.has(rows.readText(row, 'id')));
      for (const row of leaseRows) {
        const seq = rows.readInteger(row, 'seq');
        const wasMarked = rows.readInteger(row, 'handing_over') === 1;
        const { to, entry, refundAttempt } = resolveLostLease(onUncertain, wasMarked, now, by);
        requireTransition('sending', to, 'queue');
        // The attempt count of a node's own lease is not reduced, so that a late settlement of that lease is rejected.
        const refundsAttempt = refundAttempt && rows.readTextOrNull(row, 'owner') !== by;
        recoverRow.run(to, to === 'uncertain' ? null : now, refundsAttempt ? 1 : 0, seq);
        appendEntry(seq, entry, to);
      }
      return leaseRows.length;
    },
  };
}
