/**
 * Stores sending domains and their DKIM keys. The row of a removed domain is marked as removed instead of deleted, so
 * that every node reads the removal.
 */
import type { ChangeResult, DirectoryChanges } from '../model/account.ts';
import { type Actor, hasAuditedDomainChanged, toAuditedDomain } from '../model/audit.ts';
import type { DkimKey, DomainChange, DomainUpdate, RecordCheck, SendingDomain } from '../model/domain.ts';
import { buildDomainData } from '../model/webhook-payload.ts';
import { writeAudit } from './audit.ts';
import { recordResourceEvent } from './outbox.ts';
import { decideDomainChange, decideDomainUpdate, findStatusChange } from './rules/directory.ts';
import * as rows from './rules/rows.ts';
import { incrementRevision, type Transaction } from './transaction.ts';

const KEY_COLUMNS = [
  'selector',
  'algorithm',
  'public_key',
  'sealed',
  'state',
  'created_at',
  'activated_at',
  'retire_at',
];
/** Selects each domain with a JSON array of its keys in order of creation. */
const SELECT_DOMAINS = `SELECT d.*, (SELECT coalesce(json_agg(json_build_object(${KEY_COLUMNS.map((name) => `'${name}', k.${name}`).join(', ')})
    ORDER BY k.created_at, k.algorithm DESC, k.selector), '[]')::text FROM dkim_key k WHERE k.domain_id = d.id) AS keys
  FROM domain d`;
/** `used`: the name is used by the domain `by`, as its name or as its return path. Nothing is changed. */
export type DomainNameResult = ChangeResult<SendingDomain> | { readonly kind: 'used'; readonly by: string };

/** An id that no domain has. The ids of domains begin at 1. */
const NO_DOMAIN_ID = 0;

/** Returns `exists` if any account owns the name. */
export async function addDomain(
  tx: Transaction,
  accountName: string,
  {
    name,
    subdomains,
    keys,
  }: { readonly name: string; readonly subdomains: boolean; readonly keys: readonly DkimKey[] },
  now: number,
  actor?: Actor,
): Promise<DomainNameResult> {
  const revision = await incrementRevision(tx);
  const [account] = await tx.query('SELECT id FROM account WHERE name = $1', [accountName]);
  if (account === undefined) return { kind: 'missing' };
  const [existing] = await tx.query('SELECT id, removed FROM domain WHERE name = $1', [name]);
  if (existing !== undefined) {
    if (!rows.readBoolean(existing, 'removed')) return { kind: 'exists' };
    await tx.query('DELETE FROM domain WHERE id = $1', [rows.readInteger(existing, 'id')]);
  }
  const owner = await findReturnPathOwner(tx, name, NO_DOMAIN_ID);
  if (owner !== null) return { kind: 'used', by: owner };
  const [inserted = {}] = await tx.query(
    `INSERT INTO domain (account_id, name, subdomains, status, created_at, checks, revision)
     VALUES ($1, $2, $3, 'pending', $4, '[]', $5) RETURNING id`,
    [rows.readInteger(account, 'id'), name, subdomains, now, revision],
  );
  await writeKeys(tx, rows.readInteger(inserted, 'id'), keys);
  return auditChange(tx, actor, 'domain.add', null, await findDomain(tx, name));
}

export async function findDomain(tx: Transaction, name: string): Promise<SendingDomain | null> {
  const row = await findRow(tx, 'd.name = $1', name);
  return row === null ? null : toDomain(row);
}

export async function listDomains(tx: Transaction): Promise<readonly SendingDomain[]> {
  return (await tx.query(`${SELECT_DOMAINS} WHERE NOT d.removed ORDER BY d.name`)).map(toDomain);
}

/** Returns the result of the last answered check of each record. */
export async function findDomainChecks(tx: Transaction, name: string): Promise<readonly RecordCheck[]> {
  const row = await findRow(tx, 'd.name = $1', name);
  return row === null ? [] : rows.toDomainChecks(row);
}

/**
 * Writes the result of a check or a rotation. The revision of the domain does not change if only the times of checks have
 * changed, so that nodes do not reload it.
 */
export async function updateDomain(
  tx: Transaction,
  update: DomainUpdate,
  actor?: Actor,
): Promise<ChangeResult<SendingDomain> | { readonly kind: 'stale' }> {
  const { id, status, checkedAt, authenticatedAt, failingSince, revision, keys } = update;
  const newRevision = await incrementRevision(tx);
  const row = await findRow(tx, 'd.id = $1', id);
  if (row === null) return { kind: 'missing' };
  const before = toDomain(row);
  if (before.revision !== revision) return { kind: 'stale' };
  const { answeredChecks, needsNewRevision } = decideDomainUpdate(before, rows.toDomainChecks(row), update);
  await tx.query(
    `UPDATE domain SET status = $1, checked_at = $2, authenticated_at = $3, failing_since = $4, checks = $5, revision = $6
     WHERE id = $7`,
    [
      status,
      checkedAt,
      authenticatedAt,
      failingSince,
      JSON.stringify(answeredChecks),
      needsNewRevision ? newRevision : revision,
      id,
    ],
  );
  if (needsNewRevision) await writeKeys(tx, id, keys);
  const newStatus = findStatusChange(before.status, status);
  if (newStatus !== null) {
    const [account = {}] = await tx.query('SELECT name FROM account WHERE id = $1', [before.accountId]);
    const data = buildDomainData(before, rows.readText(account, 'name'), newStatus, answeredChecks);
    await recordResourceEvent(tx, `domain.${newStatus}`, before.accountId, checkedAt ?? 0, data);
  }
  const after = await findDomain(tx, before.name);
  // A check that changes no audited property writes no entry.
  if (after !== null && !hasAuditedDomainChanged(before, after)) return { kind: 'done', value: after };
  return auditChange(tx, actor, 'domain.update', before, after);
}

/** A new return path is unverified until its records are checked. */
export async function setDomain(
  tx: Transaction,
  name: string,
  change: DomainChange,
  actor?: Actor,
): Promise<DomainNameResult> {
  const revision = await incrementRevision(tx);
  const row = await findRow(tx, 'd.name = $1', name);
  if (row === null) return { kind: 'missing' };
  const before = toDomain(row);
  const { subdomains, returnPath, checks } = decideDomainChange(before, rows.toDomainChecks(row), change);
  if (returnPath !== null) {
    const isDomain = (await findRow(tx, 'd.name = $1', returnPath)) !== null;
    const owner = isDomain ? returnPath : await findReturnPathOwner(tx, returnPath, before.id);
    if (owner !== null) return { kind: 'used', by: owner };
  }
  await tx.query('UPDATE domain SET subdomains = $1, return_path = $2, checks = $3, revision = $4 WHERE id = $5', [
    subdomains,
    returnPath,
    JSON.stringify(checks),
    revision,
    before.id,
  ]);
  return auditChange(tx, actor, 'domain.set', before, await findDomain(tx, name));
}

export async function removeDomain(tx: Transaction, name: string, actor?: Actor): Promise<ChangeResult<SendingDomain>> {
  const revision = await incrementRevision(tx);
  const removed = await findDomain(tx, name);
  if (removed === null) return { kind: 'missing' };
  await writeKeys(tx, removed.id, []);
  await tx.query('UPDATE domain SET removed = true, revision = $1 WHERE id = $2', [revision, removed.id]);
  await writeAudit(tx, actor, 'domain.remove', name, toAuditedDomain(removed), null);
  return { kind: 'done', value: removed };
}

export async function readDomainsSince(
  tx: Transaction,
  revision: number,
): Promise<Pick<DirectoryChanges, 'domains' | 'removedDomains'>> {
  const changed = await tx.query(`${SELECT_DOMAINS} WHERE d.revision > $1 ORDER BY d.id`, [revision]);
  const { removed = [], kept = [] } = Object.groupBy(changed, (row) =>
    rows.readBoolean(row, 'removed') ? 'removed' : 'kept',
  );
  return { domains: kept.map(toDomain), removedDomains: removed.map((row) => rows.readText(row, 'name')) };
}

async function findRow(tx: Transaction, condition: string, value: string | number): Promise<rows.Row | null> {
  const [row] = await tx.query(`${SELECT_DOMAINS} WHERE ${condition} AND NOT d.removed`, [value]);
  return row ?? null;
}

/** Returns the name of another domain whose return path is `name`, or null. */
async function findReturnPathOwner(tx: Transaction, name: string, exceptId: number): Promise<string | null> {
  const [row] = await tx.query('SELECT name FROM domain WHERE return_path = $1 AND id <> $2 AND NOT removed', [
    name,
    exceptId,
  ]);
  return row === undefined ? null : rows.readText(row, 'name');
}

async function auditChange(
  tx: Transaction,
  actor: Actor | undefined,
  action: string,
  before: SendingDomain | null,
  after: SendingDomain | null,
): Promise<ChangeResult<SendingDomain>> {
  if (after === null) return { kind: 'missing' };
  const auditedBefore = before === null ? null : toAuditedDomain(before);
  await writeAudit(tx, actor, action, after.name, auditedBefore, toAuditedDomain(after));
  return { kind: 'done', value: after };
}

async function writeKeys(tx: Transaction, id: number, keys: readonly DkimKey[]): Promise<void> {
  await tx.query('DELETE FROM dkim_key WHERE domain_id = $1', [id]);
  for (const { selector, algorithm, publicKey, sealed, state, createdAt, activatedAt, retireAt } of keys)
    await tx.query(
      `INSERT INTO dkim_key (domain_id, ${KEY_COLUMNS.join(', ')}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [id, selector, algorithm, publicKey, sealed, state, createdAt, activatedAt, retireAt],
    );
}

function toDomain(row: rows.Row): SendingDomain {
  return rows.toDomain(row, JSON.parse(rows.readText(row, 'keys')) as rows.Row[]);
}
