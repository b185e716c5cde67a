/** Stores holds. Every change increments the revision of the directory, so that each node knows it within a second. */
import type { Actor } from '../model/audit.ts';
import { getHoldState, type Hold, isHoldListed, MAX_ACTIVE_HOLDS, type NewHold, toAuditedHold } from '../model/hold.ts';
import { MAILBOX_PROVIDER_CODES } from '../model/mailbox-provider.ts';
import { writeAudit } from './audit.ts';
import * as rows from './rules/rows.ts';
import { incrementRevision, type Transaction } from './transaction.ts';

export async function addHold(
  tx: Transaction,
  { accountId, from, to, mailboxProvider, reason, until }: NewHold,
  now: number,
  actor?: Actor,
): Promise<{ readonly kind: 'added'; readonly hold: Hold } | { readonly kind: 'full' }> {
  // The lock on the revision serializes concurrent additions, so that the number of holds cannot exceed the maximum.
  const revision = await incrementRevision(tx);
  const holds = await listHolds(tx);
  if (holds.filter((hold) => getHoldState(hold, now) === 'active').length >= MAX_ACTIVE_HOLDS) return { kind: 'full' };
  const purgedIds = holds.filter((hold) => !isHoldListed(hold, now)).map(({ id }) => id);
  await tx.query('DELETE FROM hold WHERE id = ANY($1::integer[])', [purgedIds]);
  const [row = {}] = await tx.query(
    `INSERT INTO hold (account_id, sender, recipient, mailbox_provider, reason, created_by, created_at, until, revision)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING *`,
    [accountId, from, to, mailboxProvider, reason, actor?.name ?? 'store', now, until, revision],
  );
  const hold = toHold(row);
  await writeAudit(tx, actor, 'hold.add', String(hold.id), null, toAuditedHold(hold));
  return { kind: 'added', hold };
}

/** With released and ended holds, newest first. */
export async function listHolds(tx: Transaction): Promise<readonly Hold[]> {
  return (await tx.query('SELECT * FROM hold ORDER BY id DESC')).map(toHold);
}

/** Releases all, or none if one of them is not active. */
export async function releaseHolds(
  tx: Transaction,
  ids: readonly number[],
  now: number,
  actor?: Actor,
): Promise<
  | { readonly kind: 'released'; readonly holds: readonly Hold[] }
  | { readonly kind: 'missing'; readonly id: number }
  | { readonly kind: 'not-active'; readonly hold: Hold }
> {
  const revision = await incrementRevision(tx);
  const found = (await tx.query('SELECT * FROM hold WHERE id = ANY($1::integer[]) ORDER BY id', [ids])).map(toHold);
  const missingId = ids.find((id) => !found.some((hold) => hold.id === id));
  const inactive = found.find((hold) => getHoldState(hold, now) !== 'active');
  if (missingId !== undefined) return { kind: 'missing', id: missingId };
  if (inactive !== undefined) return { kind: 'not-active', hold: inactive };
  const released = await tx.query(
    'UPDATE hold SET released_at = $2, revision = $3 WHERE id = ANY($1::integer[]) RETURNING *',
    [ids, now, revision],
  );
  const holds = released.map(toHold).sort((one, other) => one.id - other.id);
  for (const [index, hold] of holds.entries())
    await writeAudit(
      tx,
      actor,
      'hold.release',
      String(hold.id),
      toAuditedHold(found[index] ?? hold),
      toAuditedHold(hold),
    );
  return { kind: 'released', holds };
}

/** Returns all holds if one of them has changed after `revision`, otherwise null. */
export async function readHoldsSince(tx: Transaction, revision: number): Promise<readonly Hold[] | null> {
  const found = await tx.query('SELECT * FROM hold WHERE (SELECT max(revision) FROM hold) > $1 ORDER BY id', [
    revision,
  ]);
  return found.length === 0 ? null : found.map(toHold);
}

function toHold(row: rows.Row): Hold {
  const provider = rows.readTextOrNull(row, 'mailbox_provider');
  return {
    id: rows.readInteger(row, 'id'),
    accountId: rows.readIntegerOrNull(row, 'account_id'),
    from: rows.readTextOrNull(row, 'sender'),
    to: rows.readTextOrNull(row, 'recipient'),
    mailboxProvider: provider === null ? null : rows.readOneOf(row, 'mailbox_provider', MAILBOX_PROVIDER_CODES),
    reason: rows.readText(row, 'reason'),
    by: rows.readText(row, 'created_by'),
    createdAt: rows.readInteger(row, 'created_at'),
    until: rows.readIntegerOrNull(row, 'until'),
    releasedAt: rows.readIntegerOrNull(row, 'released_at'),
  };
}
