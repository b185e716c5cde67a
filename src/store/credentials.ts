/** Stores operator tokens and ended sessions. */
import type { ChangeResult, OperatorToken } from '../model/account.ts';
import type { Actor } from '../model/audit.ts';
import { getTokenScope } from '../model/credentials.ts';
import { writeAudit } from './audit.ts';
import * as rows from './rules/rows.ts';
import { forceDurableCommit, type Transaction } from './transaction.ts';

export async function createToken(
  tx: Transaction,
  { name, prefix, hash, expiresAt }: Pick<OperatorToken, 'name' | 'prefix' | 'hash' | 'expiresAt'>,
  now: number,
  actor?: Actor,
): Promise<ChangeResult<OperatorToken>> {
  // A unique index ensures that only one of two concurrent requests for the same name succeeds.
  const [row] = await tx.query(
    `INSERT INTO operator_token (name, prefix, hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING RETURNING *`,
    [name, prefix, hash, now, expiresAt],
  );
  if (row === undefined) {
    await forceDurableCommit(tx);
    return { kind: 'exists' };
  }
  await writeAudit(tx, actor, 'token.create', name, null, { scope: getTokenScope(prefix), expiresAt });
  return { kind: 'done', value: rows.toCredential(row) };
}

export async function listTokens(tx: Transaction): Promise<readonly OperatorToken[]> {
  return (await tx.query('SELECT * FROM operator_token ORDER BY id')).map(rows.toCredential);
}

export async function findTokens(tx: Transaction, hashes: readonly string[]): Promise<readonly OperatorToken[]> {
  return (await tx.query('SELECT * FROM operator_token WHERE hash = ANY($1::text[])', [hashes])).map(rows.toCredential);
}

export async function revokeToken(
  tx: Transaction,
  id: number,
  now: number,
  actor?: Actor,
): Promise<ChangeResult<OperatorToken>> {
  const [row] = await tx.query(
    'UPDATE operator_token SET revoked_at = coalesce(revoked_at, $1) WHERE id = $2 RETURNING *',
    [now, id],
  );
  if (row === undefined) return { kind: 'missing' };
  const value = rows.toCredential(row);
  await writeAudit(tx, actor, 'token.revoke', value.name, null, null);
  return { kind: 'done', value };
}

export async function updateTokenLastUsed(tx: Transaction, id: number, at: number): Promise<void> {
  await tx.query('UPDATE operator_token SET last_used_at = greatest(coalesce(last_used_at, 0), $1) WHERE id = $2', [
    at,
    id,
  ]);
}

export async function endSession(tx: Transaction, hash: string, expiresAt: number, now: number): Promise<void> {
  await tx.query('DELETE FROM ended_session WHERE until <= $1', [now]);
  await tx.query('INSERT INTO ended_session (hash, until) VALUES ($1, $2) ON CONFLICT DO NOTHING', [hash, expiresAt]);
  // If the session has already ended, no row is written.
  await forceDurableCommit(tx);
}

export async function isSessionEnded(tx: Transaction, hash: string): Promise<boolean> {
  return (await tx.query('SELECT 1 AS one FROM ended_session WHERE hash = $1', [hash])).length > 0;
}
