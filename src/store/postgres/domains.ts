/**
 * Stores sending domains and their DKIM keys. The row of a removed domain is marked as removed instead of deleted, so
 * that every node reads the removal.
 */
import type { ChangeResult, DirectoryChanges } from '../../model/account.ts';
import { type Actor, hasAuditedDomainChanged, toAuditedDomain } from '../../model/audit.ts';
import type { DkimKey, SendingDomain } from '../../model/domain.ts';
import { buildDomainData } from '../../model/webhook-payload.ts';
import type { DomainNameResult, DomainStore } from '../contract.ts';
import { decideDomainChange, decideDomainUpdate, findStatusChange } from '../rules/directory.ts';
import * as rows from '../rules/rows.ts';
import { writeChange } from './audit.ts';
import { incrementRevision } from './directory.ts';
import { recordResourceEvent } from './outbox.ts';
import type { Database, Row, Session, Statement } from './session.ts';

/** Selects each domain with a JSON array of its keys in order of creation. */
const SELECT_DOMAINS = `SELECT d.*, (SELECT coalesce(json_agg(k ORDER BY k.created_at, k.algorithm DESC, k.selector), '[]')::text
    FROM dkim_key k WHERE k.domain_id = d.id) AS keys FROM domain d`;
const SELECT_ACCOUNT_ID: Statement = { name: 'domain_account', text: 'SELECT id FROM account WHERE name = $1' };
const SELECT_ACCOUNT_NAME: Statement = { name: 'domain_account_name', text: 'SELECT name FROM account WHERE id = $1' };
const SELECT_BY_NAME: Statement = { name: 'domain_by_name', text: `${SELECT_DOMAINS} WHERE d.name = $1` };
const SELECT_BY_ID: Statement = { name: 'domain_by_id', text: `${SELECT_DOMAINS} WHERE d.id = $1 AND NOT d.removed` };
const SELECT_ALL: Statement = { name: 'domain_all', text: `${SELECT_DOMAINS} WHERE NOT d.removed ORDER BY d.name` };
const SELECT_CHANGED: Statement = {
  name: 'domain_since',
  text: `${SELECT_DOMAINS} WHERE d.revision > $1 ORDER BY d.id`,
};
const INSERT_DOMAIN: Statement = {
  name: 'domain_insert',
  text: `INSERT INTO domain (account_id, name, subdomains, status, created_at, checks, revision)
    VALUES ($1, $2, $3, 'pending', $4, '[]', $5) RETURNING id`,
};
const DELETE_DOMAIN: Statement = { name: 'domain_delete', text: 'DELETE FROM domain WHERE id = $1' };
const UPDATE_STATUS: Statement = {
  name: 'domain_update',
  text: `UPDATE domain SET status = $1, checked_at = $2, authenticated_at = $3, failing_since = $4, checks = $5, revision = $6
    WHERE id = $7 AND NOT removed`,
};
const UPDATE_DOMAIN: Statement = {
  name: 'domain_set',
  text: 'UPDATE domain SET subdomains = $1, return_path = $2, checks = $3, revision = $4 WHERE id = $5',
};
const SELECT_RETURN_PATH_OWNER: Statement = {
  name: 'domain_return_path_owner',
  text: 'SELECT name FROM domain WHERE return_path = $1 AND id <> $2 AND NOT removed',
};
/** An id that no domain has. The ids of domains begin at 1. */
const NO_DOMAIN_ID = 0;
const MARK_DOMAIN_REMOVED: Statement = {
  name: 'domain_mark_removed',
  text: 'UPDATE domain SET removed = true, revision = $1 WHERE id = $2',
};
const DELETE_KEYS: Statement = { name: 'domain_delete_keys', text: 'DELETE FROM dkim_key WHERE domain_id = $1' };
const INSERT_KEY: Statement = {
  name: 'domain_insert_key',
  text: `INSERT INTO dkim_key (domain_id, selector, algorithm, public_key, sealed, state, created_at, activated_at, retire_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
};

/** The changes of domains after a revision. */
export type DomainChanges = Pick<DirectoryChanges, 'domains' | 'removedDomains'>;

export interface DomainOperations extends DomainStore {
  /**
   * Returns the domains that were changed after `revision`, and the names of the domains that were removed after
   * `revision`.
   */
  readDomainsSince(revision: number): Promise<DomainChanges>;
}

export function prepareDomains(database: Database): DomainOperations {
  return {
    addDomain(accountName, { name, subdomains, keys }, now, actor): Promise<DomainNameResult> {
      return database.transaction(async (transaction) => {
        // The lock on the revision's row serializes changes, so the rows that this transaction reads do not change
        // before it writes them.
        const revision = await incrementRevision(transaction);
        const [account] = await transaction.query(SELECT_ACCOUNT_ID, [accountName]);
        if (account === undefined) return { kind: 'missing' };
        const [existing] = await transaction.query(SELECT_BY_NAME, [name]);
        if (existing !== undefined) {
          if (existing.removed !== true) return { kind: 'exists' };
          await transaction.query(DELETE_DOMAIN, [rows.readInteger(existing, 'id')]);
        }
        const owner = await findReturnPathOwner(transaction, name, NO_DOMAIN_ID);
        if (owner !== null) return { kind: 'used', by: owner };
        const [inserted = {}] = await transaction.query(INSERT_DOMAIN, [
          rows.readInteger(account, 'id'),
          name,
          subdomains,
          now,
          revision,
        ]);
        await writeKeys(transaction, rows.readInteger(inserted, 'id'), keys);
        return auditChange(transaction, actor, 'domain.add', null, await readDomain(transaction, name));
      });
    },
    async findDomain(name) {
      const row = await readRow(database, name);
      return row === null ? null : toDomain(row);
    },
    listDomains: async () => (await database.query(SELECT_ALL, [])).map(toDomain),
    async findDomainChecks(name) {
      const row = await readRow(database, name);
      return row === null ? [] : rows.toDomainChecks(row);
    },
    updateDomain(update, actor) {
      const { id, status, checkedAt, authenticatedAt, failingSince, revision, keys } = update;
      return database.transaction(async (transaction) => {
        const newRevision = await incrementRevision(transaction);
        const [row] = await transaction.query(SELECT_BY_ID, [id]);
        if (row === undefined) return { kind: 'missing' };
        const before = toDomain(row);
        if (before.revision !== revision) return { kind: 'stale' };
        const { answeredChecks, needsNewRevision } = decideDomainUpdate(before, rows.toDomainChecks(row), update);
        const storedRevision = needsNewRevision ? newRevision : revision;
        const values = [
          status,
          checkedAt,
          authenticatedAt,
          failingSince,
          JSON.stringify(answeredChecks),
          storedRevision,
          id,
        ];
        await transaction.query(UPDATE_STATUS, values);
        if (needsNewRevision) await writeKeys(transaction, id, keys);
        const newStatus = findStatusChange(before.status, status);
        if (newStatus !== null) {
          const [account = {}] = await transaction.query(SELECT_ACCOUNT_NAME, [before.accountId]);
          const data = buildDomainData(before, rows.readText(account, 'name'), newStatus, answeredChecks);
          await recordResourceEvent(transaction, `domain.${newStatus}`, before.accountId, checkedAt ?? 0, data);
        }
        const after = await readDomain(transaction, before.name);
        // A check that changes no audited property of the domain writes no audit log entry.
        if (after.kind !== 'done' || !hasAuditedDomainChanged(before, after.value)) return after;
        return auditChange(transaction, actor, 'domain.update', before, after);
      });
    },
    setDomain(name, change, actor): Promise<DomainNameResult> {
      return database.transaction(async (transaction) => {
        const revision = await incrementRevision(transaction);
        const row = await readRow(transaction, name);
        if (row === null) return { kind: 'missing' };
        const before = toDomain(row);
        const { subdomains, returnPath, checks } = decideDomainChange(before, rows.toDomainChecks(row), change);
        if (returnPath !== null) {
          const hasDomain = (await readRow(transaction, returnPath)) !== null;
          const owner = hasDomain ? returnPath : await findReturnPathOwner(transaction, returnPath, before.id);
          if (owner !== null) return { kind: 'used', by: owner };
        }
        await transaction.query(UPDATE_DOMAIN, [subdomains, returnPath, JSON.stringify(checks), revision, before.id]);
        return auditChange(transaction, actor, 'domain.set', before, await readDomain(transaction, name));
      });
    },
    removeDomain(name, actor) {
      return database.transaction(async (transaction) => {
        const revision = await incrementRevision(transaction);
        const row = await readRow(transaction, name);
        if (row === null) return { kind: 'missing' };
        const removedDomain = toDomain(row);
        await transaction.query(DELETE_KEYS, [removedDomain.id]);
        await transaction.query(MARK_DOMAIN_REMOVED, [revision, removedDomain.id]);
        await writeChange(transaction, actor, 'domain.remove', name, toAuditedDomain(removedDomain), null);
        return { kind: 'done', value: removedDomain };
      });
    },
    async readDomainsSince(revision) {
      const changedRows = await database.query(SELECT_CHANGED, [revision]);
      return {
        domains: changedRows.filter(({ removed }) => removed !== true).map(toDomain),
        removedDomains: changedRows.filter(({ removed }) => removed === true).map((row) => rows.readText(row, 'name')),
      };
    },
  };
}

async function readRow(session: Session, name: string): Promise<Row | null> {
  const [row] = await session.query(SELECT_BY_NAME, [name]);
  return row === undefined || row.removed === true ? null : row;
}

/**
 * Returns the name of the domain whose return path is `name` and whose id is not `exceptId`. Returns null if there is
 * no such domain.
 */
async function findReturnPathOwner(session: Session, name: string, exceptId: number): Promise<string | null> {
  const [row] = await session.query(SELECT_RETURN_PATH_OWNER, [name, exceptId]);
  return row === undefined ? null : rows.readText(row, 'name');
}

async function readDomain(session: Session, name: string): Promise<ChangeResult<SendingDomain>> {
  const row = await readRow(session, name);
  return row === null ? { kind: 'missing' } : { kind: 'done', value: toDomain(row) };
}

async function auditChange(
  transaction: Session,
  actor: Actor | undefined,
  action: string,
  before: SendingDomain | null,
  changeResult: ChangeResult<SendingDomain>,
): Promise<ChangeResult<SendingDomain>> {
  if (changeResult.kind !== 'done') return changeResult;
  const auditedBefore = before === null ? null : toAuditedDomain(before);
  await writeChange(
    transaction,
    actor,
    action,
    changeResult.value.name,
    auditedBefore,
    toAuditedDomain(changeResult.value),
  );
  return changeResult;
}

async function writeKeys(session: Session, id: number, keys: readonly DkimKey[]): Promise<void> {
  await session.query(DELETE_KEYS, [id]);
  for (const { selector, algorithm, publicKey, sealed, state, createdAt, activatedAt, retireAt } of keys) {
    const values = [id, selector, algorithm, publicKey, sealed, state, createdAt, activatedAt, retireAt];
    await session.query(INSERT_KEY, values);
  }
}

function toDomain(row: Row): SendingDomain {
  return rows.toDomain(row, JSON.parse(rows.readText(row, 'keys')) as Row[]);
}
