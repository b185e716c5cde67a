/** Ends leases without an outcome. */
import { resolveLostLease, type State } from '../model/message.ts';
import type { MessageTransaction } from './messages.ts';
import { requireTransition, toSeq } from './rules/messages.ts';
import * as rows from './rules/rows.ts';
import { formatStoreTime, type Transaction } from './transaction.ts';

export interface Recovery {
  readonly now: number;
  readonly includeAllLeases: boolean;
  readonly includeDeadNodes: boolean;
  readonly onUncertain: 'resend' | 'hold';
  readonly node: string;
  /**
   * Default: `now`. With all known leases in `excludedIds`, a later time also recovers leases whose claim was
   * committed although its response was lost.
   */
  readonly ownLeasesUntil?: number;
  readonly excludedIds?: readonly string[];
}

/** Of one transaction on PostgreSQL. */
export const MAX_RECOVERED_LEASES = 2_000;

const DIALECTS = {
  sqlite: { key: 'seq', table: 'mail_request', isOpen: 'q.ended_at IS NULL AND', limit: '' },
  postgres: { key: 'id', table: 'queue', isOpen: '', limit: `LIMIT ${MAX_RECOVERED_LEASES}` },
} as const;

/**
 * Recovers expired leases of this node (`node`) and of nodes that are not alive. `includeDeadNodes` adds unexpired leases
 * of other nodes that are not alive (see `recordHeartbeat`). `includeAllLeases` adds all leases and is used when the
 * embedded store starts. Leases of messages in `excludedIds`, whose outcome this node has not stored yet, are not
 * recovered. Under `hold` a message that `markTransmitting` has marked becomes `uncertain`. An unmarked message becomes
 * `queued`, and its attempt is not counted. Under `resend` every message becomes `queued`, and its attempt stays counted,
 * because the attempt may have been made. Resolves to the number of recovered leases.
 */
export async function recover(
  tx: MessageTransaction,
  { now, includeAllLeases, includeDeadNodes, onUncertain, node, ownLeasesUntil = now, excludedIds = [] }: Recovery,
): Promise<number> {
  const { key, table, isOpen, limit } = DIALECTS[tx.dialect];
  const leases = await tx.query(
    `SELECT q.id, q.account_id, q.owner, q.handing_over FROM ${table} q
     WHERE ${isOpen} q.state = 'sending' AND NOT q.id = ANY($1::uuid[]) AND ($2
       OR (q.owner = $3 AND q.due_at <= $6)
       OR (q.owner <> $3 AND ($5 OR q.due_at <= $4) AND NOT EXISTS (
         SELECT 1 FROM node n WHERE n.name = q.owner AND n.alive_until > ${formatStoreTime(tx, '$7')})))
     ORDER BY q.${key} ${limit} FOR UPDATE OF q SKIP LOCKED`,
    [excludedIds, includeAllLeases, node, now, includeDeadNodes, ownLeasesUntil, tx.getStoreTime(now)],
  );
  if (leases.length === 0) return 0;
  const recovered = leases.map((row) => {
    const { to, entry, refundAttempt } = resolveLostLease(
      onUncertain,
      rows.readBoolean(row, 'handing_over'),
      now,
      node,
    );
    requireTransition('sending', to, 'queue');
    // The attempt count of a node's own lease is not reduced, so that a late settlement of that lease is rejected.
    const refund = refundAttempt && row.owner !== node ? 1 : 0;
    return { id: rows.readText(row, 'id'), accountId: rows.readInteger(row, 'account_id'), to, entry, refund };
  });
  await Promise.all([
    requeue(tx, recovered, now),
    tx.appendEntries(recovered.map(({ id, accountId, to, entry }) => ({ ...entry, id, accountId, state: to }))),
  ]);
  return leases.length;
}

async function requeue(
  tx: Transaction,
  recovered: readonly { readonly id: string; readonly to: State; readonly refund: number }[],
  now: number,
): Promise<void> {
  if (tx.dialect === 'postgres') {
    // With the condition on the array the planner uses the index.
    await tx.query(
      `UPDATE queue q SET state = s.state, due_at = CASE s.state WHEN 'queued' THEN $4::bigint END, owner = NULL,
         handing_over = false, attempts = q.attempts - s.refund
       FROM unnest($1::uuid[], $2::text[], $3::int[]) AS s(id, state, refund) WHERE q.id = s.id AND q.id = ANY($1::uuid[])`,
      [recovered.map(({ id }) => id), recovered.map(({ to }) => to), recovered.map(({ refund }) => refund), now],
    );
    return;
  }
  for (const { id, to, refund } of recovered)
    await tx.query(
      `UPDATE mail_request SET state = $2, due_at = $3, owner = NULL, handing_over = 0, attempts = attempts - $4
       WHERE seq = $1`,
      [toSeq(id), to, to === 'queued' ? now : null, refund],
    );
}
