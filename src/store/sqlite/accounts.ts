/** Stores accounts and API keys. */
import type { DatabaseSync } from 'node:sqlite';
import type { Account, ApiKey, ChangeResult, GuardedChangeResult, WindowCounts } from '../../model/account.ts';
import { type Actor, toAuditedAccount, toAuditedKey } from '../../model/audit.ts';
import { buildAccountData } from '../../model/webhook-payload.ts';
import type { Store } from '../contract.ts';
import { decideRotatedExpiry, findChangeConflict, NO_LIMITS, toLimitColumns } from '../rules/directory.ts';
import * as rows from '../rules/rows.ts';
import type { Audit } from './audit.ts';
import type { Outbox } from './outbox.ts';
import type { prepareReputation } from './reputation.ts';

/**
 * Creates the operations on accounts and keys. `incrementRevision` increments the revision of the directory.
 * `reputation` reads and resets the reputation window of an account.
 */
export function prepareAccounts(
  database: DatabaseSync,
  incrementRevision: () => number,
  audit: Audit,
  reputation: Pick<ReturnType<typeof prepareReputation>, 'readWindow' | 'readAllWindows' | 'resetWindow'>,
  outbox: Outbox,
) {
  const selectByName = database.prepare('SELECT * FROM account WHERE name = ?');
  const selectAll = database.prepare('SELECT * FROM account ORDER BY name');
  const insertAccount = database.prepare(
    `INSERT INTO account (name, created_at, volume, volume_expires_at, rate_limit, rate_period_ms, throttle_per_s, throttle_burst, revision)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const updateLimits = database.prepare(
    `UPDATE account SET volume = ?, volume_expires_at = ?, rate_limit = ?, rate_period_ms = ?, throttle_per_s = ?, throttle_burst = ?,
       volume_used = CASE WHEN ? THEN 0 ELSE volume_used END, rate_used = CASE WHEN ? THEN 0 ELSE rate_used END,
       rate_window_at = CASE WHEN ? THEN NULL ELSE rate_window_at END, bounce_rate = coalesce(?, bounce_rate),
       complaint_rate = coalesce(?, complaint_rate), on_reputation = coalesce(?, on_reputation), ses_configuration_set = ?, revision = ? WHERE id = ?`,
  );
  const setLock = database.prepare(
    'UPDATE account SET locked_reason = ?, locked_at = ?, warning = NULL, revision = ? WHERE id = ?',
  );
  const selectKeyById = database.prepare('SELECT * FROM api_key WHERE id = ?');
  const selectKeyByHash = database.prepare('SELECT id FROM api_key WHERE hash = ?');
  const selectKeys = database.prepare('SELECT * FROM api_key WHERE account_id = ? ORDER BY id');
  const insertKey = database.prepare(
    'INSERT INTO api_key (account_id, name, prefix, hash, created_at, expires_at, revision) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const endKey = database.prepare('UPDATE api_key SET revoked_at = ?, expires_at = ?, revision = ? WHERE id = ?');
  const updateLastUsed = database.prepare(
    'UPDATE api_key SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?',
  );

  const findAccount = (name: string): Account | null => {
    const row = selectByName.get(name);
    return row === undefined ? null : rows.toAccount(row);
  };
  const readChangedAccount = (name: string): ChangeResult<Account> => {
    const account = findAccount(name);
    return account === null ? { kind: 'missing' } : { kind: 'done', value: account };
  };
  const readKey = (id: number | bigint): ApiKey => rows.toApiKey(selectKeyById.get(id) ?? {});

  /** Locks the account, or unlocks it if `reason` is null. */
  function setAccountLock(
    name: string,
    reason: string | null,
    now: number,
    expected: string | undefined,
    actor: Actor | undefined,
  ): GuardedChangeResult<Account> {
    const account = findAccount(name);
    const conflict = findChangeConflict(account, expected);
    if (account === null || conflict !== null) return conflict ?? { kind: 'missing' };
    // An unlock resets the reputation; otherwise the next bounce would lock the account again.
    if (reason === null) reputation.resetWindow(account.id);
    setLock.run(reason, reason === null ? null : now, incrementRevision(), account.id);
    outbox.recordResource(reason === null ? 'account.unlocked' : 'account.locked', account.id, now, () =>
      buildAccountData(name, reason, reputation.readWindow(account.id, now), account.thresholds),
    );
    return auditChange(actor, reason === null ? 'account.unlock' : 'account.lock', account, readChangedAccount(name));
  }

  function auditChange(
    actor: Actor | undefined,
    action: string,
    before: Account | null,
    result: ChangeResult<Account>,
  ): ChangeResult<Account> {
    if (result.kind !== 'done') return result;
    const auditedBefore = before === null ? null : toAuditedAccount(before);
    audit.writeChange(actor, action, result.value.name, auditedBefore, toAuditedAccount(result.value));
    return result;
  }

  function auditKeyChange(
    actor: Actor | undefined,
    action: string,
    target: string,
    value: ApiKey,
  ): ChangeResult<ApiKey> {
    audit.writeChange(actor, action, target, null, toAuditedKey(value));
    return { kind: 'done', value };
  }

  function storeKey(
    action: 'key.create' | 'key.import',
    ...[accountName, { name, prefix, hash, expiresAt }, now, actor]: Parameters<Store['createKey']>
  ): ChangeResult<ApiKey> {
    const account = findAccount(accountName);
    if (account === null) return { kind: 'missing' };
    if (selectKeyByHash.get(hash) !== undefined) return { kind: 'exists' };
    const { lastInsertRowid } = insertKey.run(account.id, name, prefix, hash, now, expiresAt, incrementRevision());
    return auditKeyChange(actor, action, accountName, readKey(lastInsertRowid));
  }

  return {
    createFirstAccount(
      ...[name, newKey, now]: Parameters<Store['createFirstAccount']>
    ): { account: Account; key: ApiKey | null } | null {
      if (selectAll.get() !== undefined) return null;
      insertAccount.run(name, now, ...toLimitColumns(NO_LIMITS), incrementRevision());
      const account = findAccount(name);
      if (account === null) return null;
      if (newKey === null) return { account, key: null };
      const { name: keyName, prefix, hash } = newKey;
      const { lastInsertRowid } = insertKey.run(account.id, keyName, prefix, hash, now, null, incrementRevision());
      return { account, key: readKey(lastInsertRowid) };
    },
    createAccount(...[name, limits, now, actor]: Parameters<Store['createAccount']>): ChangeResult<Account> {
      if (findAccount(name) !== null) return { kind: 'exists' };
      insertAccount.run(name, now, ...toLimitColumns(limits), incrementRevision());
      return auditChange(actor, 'account.create', null, readChangedAccount(name));
    },
    setAccount(...[name, changes, , expected, actor]: Parameters<Store['setAccount']>): GuardedChangeResult<Account> {
      const account = findAccount(name);
      const conflict = findChangeConflict(account, expected);
      if (account === null || conflict !== null) return conflict ?? { kind: 'missing' };
      const {
        bounceRate,
        complaintRate,
        onReputation,
        sesConfigurationSet = account.sesConfigurationSet,
        ...limits
      } = changes;
      const hasNewVolume = limits.volume === undefined ? 0 : 1;
      const hasNewRate = limits.rate === undefined ? 0 : 1;
      updateLimits.run(
        ...toLimitColumns({ ...account.limits, ...limits }),
        hasNewVolume,
        hasNewRate,
        hasNewRate,
        bounceRate ?? null,
        complaintRate ?? null,
        onReputation ?? null,
        sesConfigurationSet,
        incrementRevision(),
        account.id,
      );
      return auditChange(actor, 'account.set', account, readChangedAccount(name));
    },
    readReputation(name: string, now: number): ChangeResult<WindowCounts> {
      const account = findAccount(name);
      return account === null ? { kind: 'missing' } : { kind: 'done', value: reputation.readWindow(account.id, now) };
    },
    readAllReputations: (now: number): Map<number, WindowCounts> => reputation.readAllWindows(now),
    lockAccount: (...[name, reason, now, expected, actor]: Parameters<Store['lockAccount']>) =>
      setAccountLock(name, reason, now, expected, actor),
    unlockAccount: (...[name, now, expected, actor]: Parameters<Store['unlockAccount']>) =>
      setAccountLock(name, null, now, expected, actor),
    listAccounts: (): Account[] => selectAll.all().map(rows.toAccount),

    createKey: (...args: Parameters<Store['createKey']>) => storeKey('key.create', ...args),
    importKey: (...args: Parameters<Store['importKey']>) => storeKey('key.import', ...args),
    listKeys(accountName: string): ChangeResult<readonly ApiKey[]> {
      const account = findAccount(accountName);
      return account === null
        ? { kind: 'missing' }
        : { kind: 'done', value: selectKeys.all(account.id).map(rows.toApiKey) };
    },
    revokeKey(...[id, now, actor]: Parameters<Store['revokeKey']>): ChangeResult<ApiKey> {
      const row = selectKeyById.get(id);
      if (row === undefined) return { kind: 'missing' };
      const { revokedAt, expiresAt } = rows.toApiKey(row);
      endKey.run(revokedAt ?? now, expiresAt, incrementRevision(), id);
      return auditKeyChange(actor, 'key.revoke', `key_${id}`, readKey(id));
    },
    rotateKey(
      ...[id, { prefix, hash }, oldExpiresAt, now, actor]: Parameters<Store['rotateKey']>
    ): ChangeResult<ApiKey> {
      const row = selectKeyById.get(id);
      const oldKey = row === undefined ? null : rows.toApiKey(row);
      const expiry = decideRotatedExpiry(oldKey, oldExpiresAt, now);
      if (oldKey === null || expiry.kind !== 'done') return { kind: 'missing' };
      const revision = incrementRevision();
      endKey.run(null, expiry.value, revision, id);
      const { lastInsertRowid } = insertKey.run(
        oldKey.accountId,
        oldKey.name,
        prefix,
        hash,
        now,
        oldKey.expiresAt,
        revision,
      );
      return auditKeyChange(actor, 'key.rotate', `key_${id}`, readKey(lastInsertRowid));
    },
    updateKeysLastUsed(...[used]: Parameters<Store['updateKeysLastUsed']>): void {
      for (const { id, at } of used) updateLastUsed.run(at, id);
    },
  };
}
