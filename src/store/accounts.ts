/**
 * Stores accounts and API keys. A change of an account locks the account, then its counts, then the row of the revision,
 * like a batch that changes the status of accounts. The lock on the revision serializes the changes of all nodes.
 */
import type {
  Account,
  AccountChange,
  AccountLimits,
  ApiKey,
  ChangeResult,
  GuardedChangeResult,
  WindowCounts,
} from '../model/account.ts';
import { type Actor, toAuditedAccount, toAuditedKey } from '../model/audit.ts';
import { buildAccountData } from '../model/webhook-payload.ts';
import { writeAudit } from './audit.ts';
import { selectAccounts } from './directory.ts';
import { recordResourceEvent } from './outbox.ts';
import { decideRotatedExpiry, findChangeConflict, NO_LIMITS, toLimitColumns } from './rules/directory.ts';
import { getLastHourBeforeWindow } from './rules/reputation.ts';
import * as rows from './rules/rows.ts';
import { incrementRevision, type Transaction } from './transaction.ts';

export interface NewKey {
  readonly name: string;
  readonly prefix: string;
  readonly hash: string;
  readonly expiresAt: number | null;
}

const MAX_ID = 2_147_483_647;

async function findAccount(tx: Transaction, name: string): Promise<Account | null> {
  const [account] = await selectAccounts(tx, 'WHERE a.name = $1', [name]);
  return account ?? null;
}

async function insertAccount(tx: Transaction, name: string, limits: AccountLimits, now: number, revision: number) {
  const inserted = await tx.query(
    `INSERT INTO account (name, created_at, volume, volume_expires_at, rate_limit, rate_period_ms, throttle_per_s, throttle_burst, revision)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (name) DO NOTHING RETURNING id`,
    [name, now, ...toLimitColumns(limits), revision],
  );
  return inserted.length === 0 ? null : findAccount(tx, name);
}

async function insertKey(
  tx: Transaction,
  accountId: number,
  { name, prefix, hash, expiresAt }: NewKey,
  now: number,
  revision: number,
): Promise<ApiKey> {
  const [row = {}] = await tx.query(
    `INSERT INTO api_key (account_id, name, prefix, hash, created_at, expires_at, revision)
     VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *`,
    [accountId, name, prefix, hash, now, expiresAt, revision],
  );
  return rows.toApiKey(row);
}

/** Creates an account, and its first key unless `newKey` is null. Resolves to null if the store has an account. */
export async function createFirstAccount(
  tx: Transaction,
  name: string,
  newKey: Omit<NewKey, 'expiresAt'> | null,
  now: number,
): Promise<{ readonly account: Account; readonly key: ApiKey | null } | null> {
  const revision = await incrementRevision(tx);
  if ((await tx.query('SELECT 1 AS one FROM account LIMIT 1')).length > 0) return null;
  const account = await insertAccount(tx, name, NO_LIMITS, now, revision);
  if (account === null) return null;
  const key = newKey === null ? null : await insertKey(tx, account.id, { ...newKey, expiresAt: null }, now, revision);
  return { account, key };
}

export async function createAccount(
  tx: Transaction,
  name: string,
  limits: AccountLimits,
  now: number,
  actor?: Actor,
): Promise<ChangeResult<Account>> {
  const account = await insertAccount(tx, name, limits, now, await incrementRevision(tx));
  if (account === null) return { kind: 'exists' };
  await writeAudit(tx, actor, 'account.create', name, null, toAuditedAccount(account));
  return { kind: 'done', value: account };
}

/** Changes the account with this name. Locks its row before it compares `expected`. */
async function changeAccount(
  tx: Transaction,
  actor: Actor | undefined,
  action: string,
  name: string,
  expected: string | undefined,
  write: (account: Account) => Promise<unknown>,
): Promise<GuardedChangeResult<Account>> {
  await tx.query('SELECT id FROM account WHERE name = $1 FOR NO KEY UPDATE', [name]);
  const account = await findAccount(tx, name);
  const conflict = findChangeConflict(account, expected);
  if (account === null || conflict !== null) return conflict ?? { kind: 'missing' };
  await write(account);
  const changed = (await findAccount(tx, name)) ?? account;
  await writeAudit(tx, actor, action, name, toAuditedAccount(account), toAuditedAccount(changed));
  return { kind: 'done', value: changed };
}

/**
 * A new volume or rate limit restarts its count at zero. If `expected` is given and the account's version
 * (`computeAccountVersion`) differs, nothing changes.
 */
export function setAccount(
  tx: Transaction,
  name: string,
  changes: AccountChange,
  _now: number,
  expected?: string,
  actor?: Actor,
): Promise<GuardedChangeResult<Account>> {
  const { bounceRate = null, complaintRate = null, onReputation = null, sesConfigurationSet, ...others } = changes;
  const { maxAgeMs, onlyTo, unknownFields = null, ...limits } = others;
  return changeAccount(tx, actor, 'account.set', name, expected, async (account) => {
    if (Object.keys(limits).length > 0) await moveUsage(tx, account.id, limits.volume !== undefined);
    const revision = await incrementRevision(tx);
    await tx.query(
      `UPDATE account SET volume = $1, volume_expires_at = $2, rate_limit = $3, rate_period_ms = $4, throttle_per_s = $5,
         throttle_burst = $6, volume_used = CASE WHEN $7 THEN 0 ELSE volume_used END,
         rate_used = CASE WHEN $8 THEN 0 ELSE rate_used END, rate_window_at = CASE WHEN $8 THEN NULL ELSE rate_window_at END,
         bounce_rate = coalesce($9, bounce_rate), complaint_rate = coalesce($10, complaint_rate),
         on_reputation = coalesce($11, on_reputation), ses_configuration_set = $12, max_age_ms = $13, only_to = $14,
         unknown_fields = coalesce($15, unknown_fields), revision = $16 WHERE id = $17`,
      [
        ...toLimitColumns({ ...account.limits, ...limits }),
        limits.volume !== undefined,
        limits.rate !== undefined,
        bounceRate,
        complaintRate,
        onReputation,
        sesConfigurationSet === undefined ? account.sesConfigurationSet : sesConfigurationSet,
        maxAgeMs === undefined ? account.maxAgeMs : maxAgeMs,
        toJsonOrNull(onlyTo === undefined ? account.onlyTo : onlyTo),
        unknownFields,
        revision,
        account.id,
      ],
    );
  });
}

function toJsonOrNull(value: readonly string[] | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

/** Adds the usage that PostgreSQL counts per slot to the row of the account, or discards it. */
async function moveUsage(tx: Transaction, accountId: number, isDiscarded: boolean): Promise<void> {
  if (tx.dialect === 'sqlite') return;
  await tx.query(
    isDiscarded
      ? 'DELETE FROM account_usage WHERE account_id = $1'
      : `WITH deleted AS (DELETE FROM account_usage WHERE account_id = $1 RETURNING emails)
         UPDATE account SET volume_used = volume_used + (SELECT coalesce(sum(emails), 0) FROM deleted) WHERE id = $1`,
    [accountId],
  );
}

export function lockAccount(
  tx: Transaction,
  name: string,
  reason: string,
  now: number,
  expected?: string,
  actor?: Actor,
): Promise<GuardedChangeResult<Account>> {
  return setLock(tx, 'lock', name, reason, now, expected, actor);
}

export function unlockAccount(
  tx: Transaction,
  name: string,
  now: number,
  expected?: string,
  actor?: Actor,
): Promise<GuardedChangeResult<Account>> {
  return setLock(tx, 'unlock', name, null, now, expected, actor);
}

function setLock(
  tx: Transaction,
  action: 'lock' | 'unlock',
  name: string,
  reason: string | null,
  now: number,
  expected: string | undefined,
  actor: Actor | undefined,
): Promise<GuardedChangeResult<Account>> {
  return changeAccount(tx, actor, `account.${action}`, name, expected, async ({ id, thresholds }) => {
    // An unlock restarts the window; otherwise the next bounce would lock the account again. Recipients and sources that
    // have counted in the window are not counted again.
    if (action === 'unlock') await tx.query('DELETE FROM reputation WHERE account_id = $1', [id]);
    await tx.query(
      'UPDATE account SET locked_reason = $1, locked_at = $2, warning = NULL, revision = $3 WHERE id = $4',
      [reason, action === 'lock' ? now : null, await incrementRevision(tx), id],
    );
    const data = buildAccountData(name, reason, await readWindow(tx, id, now), thresholds);
    await recordResourceEvent(tx, `account.${action}ed`, id, now, data);
  });
}

export function listAccounts(tx: Transaction): Promise<readonly Account[]> {
  return selectAccounts(tx, 'ORDER BY a.name COLLATE "C"');
}

const SUM_COUNTS = ['emails', 'bounces', 'complaints', 'proven_bounces', 'proven_complaints']
  .map((name) => `coalesce(sum(${name}), 0)::bigint AS ${name}`)
  .join(', ');

/** Returns the sums of the reputation window that ends at `now`: the last 7 days, since the last unlock. */
export async function readWindow(tx: Transaction, accountId: number, now: number): Promise<WindowCounts> {
  const [row = {}] = await tx.query(`SELECT ${SUM_COUNTS} FROM reputation WHERE account_id = $1 AND hour > $2`, [
    accountId,
    getLastHourBeforeWindow(now),
  ]);
  return rows.toWindowCounts(row);
}

export async function readReputation(tx: Transaction, name: string, now: number): Promise<ChangeResult<WindowCounts>> {
  const account = await findAccount(tx, name);
  return account === null ? { kind: 'missing' } : { kind: 'done', value: await readWindow(tx, account.id, now) };
}

/** By account id, without accounts whose counts are zero. */
export async function readAllReputations(tx: Transaction, now: number): Promise<ReadonlyMap<number, WindowCounts>> {
  const sums = await tx.query(`SELECT account_id, ${SUM_COUNTS} FROM reputation WHERE hour > $1 GROUP BY account_id`, [
    getLastHourBeforeWindow(now),
  ]);
  return new Map(sums.map((row) => [rows.readInteger(row, 'account_id'), rows.toWindowCounts(row)]));
}

type KeyArguments = [tx: Transaction, accountName: string, key: NewKey, now: number, actor?: Actor];

/** Stores a generated key. Returns `exists` if a key with this hash is stored, in any account and any state. */
export function createKey(...args: KeyArguments): Promise<ChangeResult<ApiKey>> {
  return storeKey('key.create', ...args);
}

export function importKey(...args: KeyArguments): Promise<ChangeResult<ApiKey>> {
  return storeKey('key.import', ...args);
}

async function storeKey(
  action: 'key.create' | 'key.import',
  ...[tx, accountName, key, now, actor]: KeyArguments
): Promise<ChangeResult<ApiKey>> {
  const revision = await incrementRevision(tx);
  const account = await findAccount(tx, accountName);
  if (account === null) return { kind: 'missing' };
  // Until the commit, the lock on the row of the revision prevents other transactions from inserting the key.
  if ((await tx.query('SELECT id FROM api_key WHERE hash = $1', [key.hash])).length > 0) return { kind: 'exists' };
  return auditKey(tx, actor, action, accountName, await insertKey(tx, account.id, key, now, revision));
}

export async function listKeys(tx: Transaction, accountName: string): Promise<ChangeResult<readonly ApiKey[]>> {
  const account = await findAccount(tx, accountName);
  if (account === null) return { kind: 'missing' };
  const found = await tx.query('SELECT * FROM api_key WHERE account_id = $1 ORDER BY id', [account.id]);
  return { kind: 'done', value: found.map(rows.toApiKey) };
}

export async function revokeKey(
  tx: Transaction,
  id: number,
  now: number,
  actor?: Actor,
): Promise<ChangeResult<ApiKey>> {
  const revision = await incrementRevision(tx);
  const key = await findKey(tx, id);
  if (key === null) return { kind: 'missing' };
  return auditKey(
    tx,
    actor,
    'key.revoke',
    `key_${id}`,
    await endKey(tx, id, key.revokedAt ?? now, key.expiresAt, revision),
  );
}

/** Creates a key with the name of the old key, which expires at `oldExpiresAt`. */
export async function rotateKey(
  tx: Transaction,
  id: number,
  { prefix, hash }: Pick<NewKey, 'prefix' | 'hash'>,
  oldExpiresAt: number,
  now: number,
  actor?: Actor,
): Promise<ChangeResult<ApiKey>> {
  const revision = await incrementRevision(tx);
  const oldKey = await findKey(tx, id);
  const expiry = decideRotatedExpiry(oldKey, oldExpiresAt, now);
  if (oldKey === null || expiry.kind !== 'done') return { kind: 'missing' };
  await endKey(tx, id, null, expiry.value, revision);
  const key = await insertKey(tx, oldKey.accountId, { ...oldKey, prefix, hash }, now, revision);
  return auditKey(tx, actor, 'key.rotate', `key_${id}`, key);
}

async function endKey(
  tx: Transaction,
  id: number,
  revokedAt: number | null,
  expiresAt: number | null,
  revision: number,
): Promise<ApiKey> {
  const [row = {}] = await tx.query(
    'UPDATE api_key SET revoked_at = $1, expires_at = $2, revision = $3 WHERE id = $4 RETURNING *',
    [revokedAt, expiresAt, revision, id],
  );
  return rows.toApiKey(row);
}

/** `id` may be any number that an operator has entered. */
async function findKey(tx: Transaction, id: number): Promise<ApiKey | null> {
  if (!Number.isInteger(id) || id < 1 || id > MAX_ID) return null;
  const [row] = await tx.query('SELECT * FROM api_key WHERE id = $1 FOR UPDATE', [id]);
  return row === undefined ? null : rows.toApiKey(row);
}

async function auditKey(
  tx: Transaction,
  actor: Actor | undefined,
  action: string,
  target: string,
  key: ApiKey,
): Promise<ChangeResult<ApiKey>> {
  await writeAudit(tx, actor, action, target, null, toAuditedKey(key));
  return { kind: 'done', value: key };
}

export async function updateKeysLastUsed(
  tx: Transaction,
  used: readonly { readonly id: number; readonly at: number }[],
): Promise<void> {
  // All nodes lock the keys in order of id.
  const updates = used
    .toSorted((one, other) => one.id - other.id)
    .map(({ id, at }) =>
      tx.query('UPDATE api_key SET last_used_at = greatest(coalesce(last_used_at, 0), $1) WHERE id = $2', [at, id]),
    );
  await Promise.all(updates);
}
