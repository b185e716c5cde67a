/**
 * Stores accounts and API keys. Every change increments the revision of the directory. The lock on the row of the
 * revision serializes the changes of all nodes. A change of an account first locks the account, then its counts, then
 * the revision, like a batch that changes the status of accounts (reputation.ts).
 */

import type { Account, ApiKey, ChangeResult, GuardedChangeResult } from '../../model/account.ts';
import { type Actor, toAuditedAccount, toAuditedKey } from '../../model/audit.ts';
import { buildAccountData } from '../../model/webhook-payload.ts';
import type { Store } from '../contract.ts';
import { decideRotatedExpiry, findChangeConflict, NO_LIMITS, toLimitColumns } from '../rules/directory.ts';
import * as rows from '../rules/rows.ts';
import { writeChange } from './audit.ts';
import { incrementRevision, SELECT_ACCOUNTS } from './directory.ts';
import { recordResourceEvent } from './outbox.ts';
import { readAllWindows, readWindow, resetReputation } from './reputation.ts';
import type { Database, Session, Statement } from './session.ts';

const SELECT_BY_NAME: Statement = { name: 'account_by_name', text: `${SELECT_ACCOUNTS} WHERE a.name = $1` };
const LOCK_BY_NAME: Statement = {
  name: 'account_lock_by_name',
  text: 'SELECT id FROM account WHERE name = $1 FOR NO KEY UPDATE',
};
const SELECT_ALL: Statement = { name: 'account_all', text: `${SELECT_ACCOUNTS} ORDER BY a.name COLLATE "C"` };
const SELECT_ANY: Statement = { name: 'account_any', text: 'SELECT 1 AS one FROM account LIMIT 1' };
const INSERT_ACCOUNT: Statement = {
  name: 'account_insert',
  text: `INSERT INTO account (name, created_at, volume, volume_expires_at, rate_limit, rate_period_ms, throttle_per_s, throttle_burst, revision)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (name) DO NOTHING RETURNING id`,
};
const UPDATE_LIMITS: Statement = {
  name: 'account_update',
  text: `UPDATE account SET volume = $1, volume_expires_at = $2, rate_limit = $3, rate_period_ms = $4, throttle_per_s = $5, throttle_burst = $6,
      volume_used = CASE WHEN $7 THEN 0 ELSE volume_used END, rate_used = CASE WHEN $8 THEN 0 ELSE rate_used END,
      rate_window_at = CASE WHEN $8 THEN NULL ELSE rate_window_at END, bounce_rate = coalesce($9, bounce_rate),
      complaint_rate = coalesce($10, complaint_rate), on_reputation = coalesce($11, on_reputation),
      ses_configuration_set = $12, revision = $13 WHERE id = $14`,
};
const DELETE_USAGE: Statement = {
  name: 'account_usage_delete',
  text: 'DELETE FROM account_usage WHERE account_id = $1',
};
/** Adds the usage that is counted per slot to the row of the account, so that only this row contains the count. */
const MOVE_USAGE: Statement = {
  name: 'account_usage_move',
  text: `WITH deleted AS (DELETE FROM account_usage WHERE account_id = $1 RETURNING emails)
    UPDATE account SET volume_used = volume_used + (SELECT coalesce(sum(emails), 0) FROM deleted) WHERE id = $1`,
};
const SET_LOCK: Statement = {
  name: 'account_lock',
  text: 'UPDATE account SET locked_reason = $1, locked_at = $2, warning = NULL, revision = $3 WHERE id = $4',
};
const SELECT_KEY: Statement = { name: 'key_by_id', text: 'SELECT * FROM api_key WHERE id = $1 FOR UPDATE' };
const SELECT_ACCOUNT_KEYS: Statement = {
  name: 'key_of_account',
  text: 'SELECT * FROM api_key WHERE account_id = $1 ORDER BY id',
};
const SELECT_KEY_BY_HASH: Statement = { name: 'key_by_hash', text: 'SELECT id FROM api_key WHERE hash = $1' };
const INSERT_KEY: Statement = {
  name: 'key_insert',
  text: `INSERT INTO api_key (account_id, name, prefix, hash, created_at, expires_at, revision)
    VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *`,
};
const END_KEY: Statement = {
  name: 'key_end',
  text: 'UPDATE api_key SET revoked_at = $1, expires_at = $2, revision = $3 WHERE id = $4 RETURNING *',
};
const UPDATE_LAST_USED: Statement = {
  name: 'key_update_last_used',
  text: `UPDATE api_key k SET last_used_at = greatest(coalesce(k.last_used_at, 0), u.at)
    FROM (SELECT t.id, t.at FROM unnest($1::int[], $2::bigint[]) AS t(id, at) JOIN api_key locked ON locked.id = t.id ORDER BY t.id FOR UPDATE OF locked) u
    WHERE k.id = u.id`,
};

type Operations = Pick<
  Store,
  | 'createFirstAccount'
  | 'createAccount'
  | 'setAccount'
  | 'readReputation'
  | 'readAllReputations'
  | 'lockAccount'
  | 'unlockAccount'
  | 'listAccounts'
  | 'createKey'
  | 'importKey'
  | 'listKeys'
  | 'revokeKey'
  | 'rotateKey'
  | 'updateKeysLastUsed'
>;

export function prepareAccounts(database: Database): Operations {
  /** Changes the account with this name. Locks its row before it compares `expected`. */
  function changeAccount(
    [actor, action]: readonly [Actor | undefined, string],
    name: string,
    expected: string | undefined,
    write: (session: Session, account: Account) => Promise<unknown>,
  ): Promise<GuardedChangeResult<Account>> {
    return database.transaction(async (transaction) => {
      await transaction.query(LOCK_BY_NAME, [name]);
      const account = await findAccount(transaction, name);
      const conflict = findChangeConflict(account, expected);
      if (account === null || conflict !== null) return conflict ?? { kind: 'missing' };
      await write(transaction, account);
      const changedAccount = (await findAccount(transaction, name)) ?? account;
      await writeChange(transaction, actor, action, name, toAuditedAccount(account), toAuditedAccount(changedAccount));
      return toDone(changedAccount);
    });
  }

  const setLock = (
    actor: Actor | undefined,
    name: string,
    reason: string | null,
    now: number,
    expected: string | undefined,
  ) =>
    changeAccount(
      [actor, reason === null ? 'account.unlock' : 'account.lock'],
      name,
      expected,
      async (session, { id, thresholds }) => {
        // An unlock resets the reputation. Otherwise the next bounce could lock the account again.
        if (reason === null) await resetReputation(session, id);
        const revision = await incrementRevision(session);
        await session.query(SET_LOCK, [reason, reason === null ? null : now, revision, id]);
        const data = buildAccountData(name, reason, await readWindow(session, id, now), thresholds);
        await recordResourceEvent(session, reason === null ? 'account.unlocked' : 'account.locked', id, now, data);
      },
    );

  function storeKey(
    action: 'key.create' | 'key.import',
    ...[accountName, { name, prefix, hash, expiresAt }, now, actor]: Parameters<Store['createKey']>
  ): Promise<ChangeResult<ApiKey>> {
    return database.transaction(async (transaction) => {
      const revision = await incrementRevision(transaction);
      const account = await findAccount(transaction, accountName);
      if (account === null) return { kind: 'missing' };
      // Until the commit, the lock on the row of the revision prevents other transactions from inserting the key.
      if ((await transaction.query(SELECT_KEY_BY_HASH, [hash])).length > 0) return { kind: 'exists' };
      const values = [account.id, name, prefix, hash, now, expiresAt, revision];
      const [row = {}] = await transaction.query(INSERT_KEY, values);
      return auditKeyChange(transaction, actor, action, accountName, rows.toApiKey(row));
    });
  }

  return {
    createFirstAccount(name, newKey, now) {
      return database.transaction(async (transaction) => {
        const revision = await incrementRevision(transaction);
        if ((await transaction.query(SELECT_ANY, [])).length > 0) return null;
        await transaction.query(INSERT_ACCOUNT, [name, now, ...toLimitColumns(NO_LIMITS), revision]);
        const account = await findAccount(transaction, name);
        if (account === null) return null;
        if (newKey === null) return { account, key: null };
        const { name: keyName, prefix, hash } = newKey;
        const values = [account.id, keyName, prefix, hash, now, null, revision];
        const [row = {}] = await transaction.query(INSERT_KEY, values);
        return { account, key: rows.toApiKey(row) };
      });
    },
    createAccount(name, limits, now, actor): Promise<ChangeResult<Account>> {
      return database.transaction(async (transaction) => {
        const revision = await incrementRevision(transaction);
        const insertedRows = await transaction.query(INSERT_ACCOUNT, [name, now, ...toLimitColumns(limits), revision]);
        const account = await findAccount(transaction, name);
        if (insertedRows.length === 0 || account === null) return { kind: 'exists' };
        await writeChange(transaction, actor, 'account.create', name, null, toAuditedAccount(account));
        return toDone(account);
      });
    },
    setAccount: (
      name,
      { bounceRate, complaintRate, onReputation, sesConfigurationSet, ...limits },
      _now,
      expected,
      actor,
    ) =>
      changeAccount([actor, 'account.set'], name, expected, async (session, account) => {
        const newVolume = limits.volume !== undefined;
        const newRate = limits.rate !== undefined;
        const columns = toLimitColumns({ ...account.limits, ...limits });
        const rates = [bounceRate ?? null, complaintRate ?? null];
        const configurationSet = sesConfigurationSet === undefined ? account.sesConfigurationSet : sesConfigurationSet;
        if (Object.keys(limits).length > 0) await session.query(newVolume ? DELETE_USAGE : MOVE_USAGE, [account.id]);
        const revision = await incrementRevision(session);
        const values = [
          ...columns,
          newVolume,
          newRate,
          ...rates,
          onReputation ?? null,
          configurationSet,
          revision,
          account.id,
        ];
        await session.query(UPDATE_LIMITS, values);
      }),
    async readReputation(name, now) {
      const account = await findAccount(database, name);
      return account === null ? { kind: 'missing' } : toDone(await readWindow(database, account.id, now));
    },
    readAllReputations: (now) => readAllWindows(database, now),
    lockAccount: (name, reason, now, expected, actor) => setLock(actor, name, reason, now, expected),
    unlockAccount: (name, now, expected, actor) => setLock(actor, name, null, now, expected),
    listAccounts: async () => (await database.query(SELECT_ALL, [])).map(rows.toAccount),

    createKey: (...args) => storeKey('key.create', ...args),
    importKey: (...args) => storeKey('key.import', ...args),
    async listKeys(accountName): Promise<ChangeResult<readonly ApiKey[]>> {
      const account = await findAccount(database, accountName);
      if (account === null) return { kind: 'missing' };
      return toDone((await database.query(SELECT_ACCOUNT_KEYS, [account.id])).map(rows.toApiKey));
    },
    revokeKey(id, now, actor): Promise<ChangeResult<ApiKey>> {
      return database.transaction(async (transaction) => {
        const revision = await incrementRevision(transaction);
        const key = await findKey(transaction, id);
        if (key === null) return { kind: 'missing' };
        const [row = {}] = await transaction.query(END_KEY, [key.revokedAt ?? now, key.expiresAt, revision, id]);
        return auditKeyChange(transaction, actor, 'key.revoke', `key_${id}`, rows.toApiKey(row));
      });
    },
    rotateKey(id, { prefix, hash }, oldExpiresAt, now, actor): Promise<ChangeResult<ApiKey>> {
      return database.transaction(async (transaction) => {
        const revision = await incrementRevision(transaction);
        const oldKey = await findKey(transaction, id);
        const expiry = decideRotatedExpiry(oldKey, oldExpiresAt, now);
        if (oldKey === null || expiry.kind !== 'done') return { kind: 'missing' };
        await transaction.query(END_KEY, [null, expiry.value, revision, id]);
        const values = [oldKey.accountId, oldKey.name, prefix, hash, now, oldKey.expiresAt, revision];
        const [row = {}] = await transaction.query(INSERT_KEY, values);
        return auditKeyChange(transaction, actor, 'key.rotate', `key_${id}`, rows.toApiKey(row));
      });
    },
    async updateKeysLastUsed(used) {
      await database.query(UPDATE_LAST_USED, [used.map(({ id }) => id), used.map(({ at }) => at)]);
    },
  };
}

async function findAccount(session: Session, name: string): Promise<Account | null> {
  const [row] = await session.query(SELECT_BY_NAME, [name]);
  return row === undefined ? null : rows.toAccount(row);
}

/** Finds a key by its id. `id` may be any number that an operator has entered. */
async function findKey(session: Session, id: number): Promise<ApiKey | null> {
  if (!Number.isInteger(id) || id < 1 || id > 2_147_483_647) return null;
  const [row] = await session.query(SELECT_KEY, [id]);
  return row === undefined ? null : rows.toApiKey(row);
}

async function auditKeyChange(
  transaction: Session,
  actor: Actor | undefined,
  action: string,
  target: string,
  key: ApiKey,
): Promise<ChangeResult<ApiKey>> {
  await writeChange(transaction, actor, action, target, null, toAuditedKey(key));
  return toDone(key);
}

function toDone<T>(value: T): { readonly kind: 'done'; readonly value: T } {
  return { kind: 'done', value };
}
