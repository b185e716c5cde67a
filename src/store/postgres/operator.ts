/** Stores the audit log, operator tokens and ended sessions. */

import { getTokenScope } from '../../model/credentials.ts';
import type { AccessStore } from '../contract.ts';
import * as rows from '../rules/rows.ts';
import { writeChange } from './audit.ts';
import { type Database, forceDurableCommit, type Statement } from './session.ts';

const LIST_AUDIT: Statement = {
  name: 'audit_list',
  text: 'SELECT * FROM audit WHERE $1::bigint IS NULL OR id < $1 ORDER BY id DESC LIMIT $2',
};
// A unique index ensures that only one of two concurrent requests for the same name succeeds.
const INSERT_TOKEN: Statement = {
  name: 'token_insert',
  text: `INSERT INTO operator_token (name, prefix, hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING RETURNING *`,
};
const SELECT_ALL: Statement = { name: 'token_all', text: 'SELECT * FROM operator_token ORDER BY id' };
const SELECT_BY_HASH: Statement = {
  name: 'token_by_hash',
  text: 'SELECT * FROM operator_token WHERE hash = ANY($1::text[])',
};
const REVOKE_TOKEN: Statement = {
  name: 'token_revoke',
  text: 'UPDATE operator_token SET revoked_at = coalesce(revoked_at, $1) WHERE id = $2 RETURNING *',
};
const UPDATE_LAST_USED: Statement = {
  name: 'token_update_last_used',
  text: 'UPDATE operator_token SET last_used_at = greatest(last_used_at, $1) WHERE id = $2',
};
const PURGE_SESSIONS: Statement = { name: 'session_purge', text: 'DELETE FROM ended_session WHERE until <= $1' };
const INSERT_ENDED_SESSION: Statement = {
  name: 'session_end',
  text: 'INSERT INTO ended_session (hash, until) VALUES ($1, $2) ON CONFLICT DO NOTHING',
};
const SELECT_ENDED_SESSION: Statement = {
  name: 'session_ended',
  text: 'SELECT 1 AS one FROM ended_session WHERE hash = $1',
};

export function prepareOperator(database: Database): AccessStore {
  return {
    async listAudit(before, limit) {
      return (await database.query(LIST_AUDIT, [before, limit])).map(rows.toAuditEntry);
    },
    createToken({ name, prefix, hash, expiresAt }, now, actor) {
      return database.transaction(async (transaction) => {
        const [row] = await transaction.query(INSERT_TOKEN, [name, prefix, hash, now, expiresAt]);
        if (row === undefined) {
          await forceDurableCommit(transaction);
          return { kind: 'exists' };
        }
        await writeChange(transaction, actor, 'token.create', name, null, { scope: getTokenScope(prefix), expiresAt });
        return { kind: 'done', value: rows.toCredential(row) };
      });
    },
    async listTokens() {
      return (await database.query(SELECT_ALL, [])).map(rows.toCredential);
    },
    async findTokens(hashes) {
      return (await database.query(SELECT_BY_HASH, [hashes])).map(rows.toCredential);
    },
    revokeToken(id, now, actor) {
      return database.transaction(async (transaction) => {
        const [row] = await transaction.query(REVOKE_TOKEN, [now, id]);
        if (row === undefined) return { kind: 'missing' };
        const value = rows.toCredential(row);
        await writeChange(transaction, actor, 'token.revoke', value.name, null, null);
        return { kind: 'done', value };
      });
    },
    async updateTokenLastUsed(id, at) {
      await database.query(UPDATE_LAST_USED, [at, id]);
    },
    endSession: (hash, expiresAt, now) =>
      database.transaction(async (transaction) => {
        await transaction.query(PURGE_SESSIONS, [now]);
        await transaction.query(INSERT_ENDED_SESSION, [hash, expiresAt]);
        // If the session has already ended, the transaction writes no row and must therefore force a durable commit.
        await forceDurableCommit(transaction);
      }),
    async isSessionEnded(hash) {
      return (await database.query(SELECT_ENDED_SESSION, [hash])).length > 0;
    },
  };
}
