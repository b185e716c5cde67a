/** Stores the data of operators: the audit log, tokens and ended sessions. */
import type { DatabaseSync } from 'node:sqlite';
import type { ChangeResult, OperatorToken } from '../../model/account.ts';
import type { Actor, AuditEntry } from '../../model/audit.ts';
import { getTokenScope } from '../../model/credentials.ts';
import * as rows from '../rules/rows.ts';
import type { Audit } from './audit.ts';

export function prepareOperator(database: DatabaseSync, audit: Audit) {
  const selectAuditEntries = database.prepare('SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?');
  const selectActiveByName = database.prepare(
    'SELECT 1 AS one FROM operator_token WHERE name = ? AND revoked_at IS NULL',
  );
  const insertToken = database.prepare(
    'INSERT INTO operator_token (name, prefix, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?) RETURNING *',
  );
  const selectAll = database.prepare('SELECT * FROM operator_token ORDER BY id');
  const selectByHash = database.prepare('SELECT * FROM operator_token WHERE hash IN (SELECT value FROM json_each(?))');
  const revokeById = database.prepare(
    'UPDATE operator_token SET revoked_at = coalesce(revoked_at, ?) WHERE id = ? RETURNING *',
  );
  const updateLastUsed = database.prepare(
    'UPDATE operator_token SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?',
  );
  const endSession = database.prepare('INSERT OR IGNORE INTO ended_session (hash, until) VALUES (?, ?)');
  const purgeSessions = database.prepare('DELETE FROM ended_session WHERE until <= ?');
  const selectEndedSession = database.prepare('SELECT 1 AS one FROM ended_session WHERE hash = ?');

  return {
    listAudit: (before: number | null, limit: number): AuditEntry[] =>
      selectAuditEntries.all(before ?? Number.MAX_SAFE_INTEGER, limit).map(rows.toAuditEntry),
    createToken(
      { name, prefix, hash, expiresAt }: Pick<OperatorToken, 'name' | 'prefix' | 'hash' | 'expiresAt'>,
      now: number,
      actor?: Actor,
    ): ChangeResult<OperatorToken> {
      if (selectActiveByName.get(name) !== undefined) return { kind: 'exists' };
      const value = rows.toCredential(insertToken.get(name, prefix, hash, now, expiresAt) ?? {});
      audit.writeChange(actor, 'token.create', name, null, { scope: getTokenScope(prefix), expiresAt });
      return { kind: 'done', value };
    },
    listTokens: (): OperatorToken[] => selectAll.all().map(rows.toCredential),
    findTokens: (hashes: readonly string[]): OperatorToken[] =>
      selectByHash.all(JSON.stringify(hashes)).map(rows.toCredential),
    revokeToken(id: number, now: number, actor?: Actor): ChangeResult<OperatorToken> {
      const row = revokeById.get(now, id);
      if (row === undefined) return { kind: 'missing' };
      const value = rows.toCredential(row);
      audit.writeChange(actor, 'token.revoke', value.name, null, null);
      return { kind: 'done', value };
    },
    updateTokenLastUsed(id: number, at: number): void {
      updateLastUsed.run(at, id);
    },
    endSession(hash: string, until: number, now: number): void {
      purgeSessions.run(now);
      endSession.run(hash, until);
    },
    isSessionEnded: (hash: string): boolean => selectEndedSession.get(hash) !== undefined,
  };
}
