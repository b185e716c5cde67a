/** Stores the suppression lists: one list for each account, and the list of account 0 for the whole service (`*`). */
import type { ChangeResult } from '../model/account.ts';
import { listMatchingPatterns } from '../model/address-pattern.ts';
import { type Actor, type ImportStep, toAuditedRemoval, toAuditedSuppressions } from '../model/audit.ts';
import type {
  ListedSuppression,
  ListName,
  ProviderRemoval,
  Suppression,
  SuppressionSearch,
} from '../model/suppression.ts';
import { auditImport, writeAudit } from './audit.ts';
import { recordSuppressionEvents } from './outbox.ts';
import { MESSAGE_KEYS } from './rules/messages.ts';
import * as rows from './rules/rows.ts';
import { forceDurableCommit, type Transaction } from './transaction.ts';

const SERVICE_LIST_ID = 0;
const ROWS_PER_STATEMENT = 10_000;
/** A prefix with this character appended is greater than every text that begins with the prefix. */
const PREFIX_END = '\u{10FFFF}';
/** A text with this character appended is greater than the text, and less than every longer text that begins with it. */
const TEXT_END = '\u0001';

/**
 * What differs: the text after the last @ as in the index suppression_domain (a quoted local part may contain an @), and
 * the choice of the index.
 */
const DIALECTS = {
  sqlite: {
    domain: "substr(recipient, length(rtrim(recipient, replace(recipient, '@', ''))) + 1)",
    byAddress: 'INDEXED BY suppression_account',
    byDomain: 'INDEXED BY suppression_domain',
  },
  postgres: {
    domain: "split_part(recipient, '@', -1)",
    byAddress: '',
    byDomain: '',
  },
} as const;
const COLUMNS = 'recipient, reason, source, at, expires_at';
const SELECT_ENTRIES = `SELECT ${COLUMNS} FROM suppression`;
/** An entry stays as it is, except that a longer one replaces one that expires. */
export const ON_LISTED = `ON CONFLICT (recipient, account_id) DO UPDATE
    SET reason = excluded.reason, source = excluded.source, at = excluded.at, expires_at = excluded.expires_at
    WHERE suppression.expires_at IS NOT NULL
      AND (excluded.expires_at IS NULL OR excluded.expires_at > suppression.expires_at)`;

async function findListId(tx: Transaction, name: ListName): Promise<number | null> {
  if (name === '*') return SERVICE_LIST_ID;
  const [row] = await tx.query('SELECT id FROM account WHERE name = $1', [name]);
  return row === undefined ? null : rows.readInteger(row, 'id');
}

/** Returns the number of new entries. If an address occurs several times, its first entry is stored. */
async function addEntries(
  tx: Transaction,
  listId: number,
  entries: readonly Suppression[],
  actor: Actor | undefined,
): Promise<number> {
  // Sorted, so that the indexes are written sequentially and imports cannot deadlock.
  const firstEntries = new Map(entries.toReversed().map((entry) => [entry.address, entry]));
  const sorted = [...firstEntries.values()].toSorted((a, b) => (a.address < b.address ? -1 : 1));
  let addedCount = 0;
  for (let offset = 0; offset < sorted.length; offset += ROWS_PER_STATEMENT) {
    const added = await tx.query(
      `INSERT INTO suppression (recipient, account_id, reason, source, at, expires_at)
       SELECT s.value->>'address', $1::int, s.value->>'reason', s.value->>'source', (s.value->>'at')::bigint,
         (s.value->>'expiresAt')::bigint
       FROM json_array_elements($2::json) AS s(value) WHERE true
       ${ON_LISTED} RETURNING ${COLUMNS}`,
      [listId, JSON.stringify(sorted.slice(offset, offset + ROWS_PER_STATEMENT))],
    );
    addedCount += added.length;
    const addedEntries = added.map(rows.toSuppression);
    await recordSuppressionEvents(
      tx,
      'suppression.added',
      listId,
      addedEntries.map((entry) => ({ ...entry, eventAt: actor?.at ?? entry.at })),
    );
  }
  // Entries that other transactions have added must be durable before the caller reports them.
  if (addedCount === 0) await forceDurableCommit(tx);
  return addedCount;
}

/** An address that is already listed keeps its reason and time. Resolves to the number of new addresses. */
export async function addSuppressions(
  tx: Transaction,
  name: ListName,
  entries: readonly Suppression[],
  actor?: Actor,
): Promise<ChangeResult<number>> {
  const listId = await findListId(tx, name);
  if (listId === null) return { kind: 'missing' };
  const added = await addEntries(tx, listId, entries, actor);
  await writeAudit(tx, actor, 'suppression.add', name, null, toAuditedSuppressions(added, entries));
  return { kind: 'done', value: added };
}

/** Adds one batch of an import. With `actor` the whole import has one audit log entry, which the next batch requires. */
export async function importSuppressions(
  tx: Transaction,
  name: ListName,
  entries: readonly Suppression[],
  step: ImportStep,
  actor?: Actor,
): Promise<ChangeResult<{ readonly added: number; readonly entry: number | null }>> {
  const listId = await findListId(tx, name);
  if (listId === null) return { kind: 'missing' };
  const added = await addEntries(tx, listId, entries, actor);
  return { kind: 'done', value: { added, entry: await auditImport(tx, actor, name, step, added) } };
}

/**
 * Resolves to false if the list does not contain the address. `providerRemoval` describes the removal from the list of a
 * provider, which the caller has completed; it is audited even if only that list contained the address.
 */
export async function removeSuppression(
  tx: Transaction,
  name: ListName,
  address: string,
  providerRemoval?: ProviderRemoval,
  actor?: Actor,
): Promise<ChangeResult<boolean>> {
  const listId = await findListId(tx, name);
  if (listId === null) return { kind: 'missing' };
  const [row] = await tx.query(
    `DELETE FROM suppression WHERE recipient = $1 AND account_id = $2 RETURNING ${COLUMNS}`,
    [address, listId],
  );
  if (row === undefined) await forceDurableCommit(tx);
  else {
    const entry = rows.toSuppression(row);
    await recordSuppressionEvents(tx, 'suppression.removed', listId, [{ ...entry, eventAt: actor?.at ?? entry.at }]);
  }
  if (row !== undefined || providerRemoval?.removed === true)
    await writeAudit(tx, actor, 'suppression.remove', name, toAuditedRemoval(address, providerRemoval), null);
  return { kind: 'done', value: row !== undefined };
}

export async function listSuppressions(
  tx: Transaction,
  name: ListName,
  after: string | null,
  limit: number,
): Promise<ChangeResult<readonly Suppression[]>> {
  return searchSuppressions(tx, name, { of: 'address', prefix: '' }, after, limit);
}

/** Returns the entries after the address `after`, in order of address, or of domain and address. */
export async function searchSuppressions(
  tx: Transaction,
  name: ListName,
  { of, prefix }: SuppressionSearch,
  after: string | null,
  limit: number,
): Promise<ChangeResult<readonly Suppression[]>> {
  const listId = await findListId(tx, name);
  if (listId === null) return { kind: 'missing' };
  const found = await (of === 'address' ? selectByAddress : selectByDomain)(tx, listId, prefix, after, limit);
  return { kind: 'done', value: found.map(rows.toSuppression) };
}

/** The range starts at the greater of the prefix and the cursor, so that no row of an earlier page is read. */
function selectByAddress(tx: Transaction, listId: number, prefix: string, after: string | null, limit: number) {
  return tx.query(
    `${SELECT_ENTRIES} ${DIALECTS[tx.dialect].byAddress}
     WHERE account_id = $1 AND recipient >= greatest($2::text COLLATE "C", $3::text COLLATE "C") AND recipient < $4
       AND recipient <> $3 ORDER BY recipient LIMIT $5`,
    [listId, prefix, after ?? '', prefix + PREFIX_END, limit],
  );
}

/**
 * The rest of the cursor's domain and the later domains are two statements. For a comparison of row values, SQLite would
 * use the index only for the account.
 */
async function selectByDomain(
  tx: Transaction,
  listId: number,
  prefix: string,
  after: string | null,
  limit: number,
): Promise<readonly rows.Row[]> {
  const { domain, byDomain } = DIALECTS[tx.dialect];
  const cursorDomain = after?.slice(after.lastIndexOf('@') + 1);
  const ofCursor =
    after === null
      ? []
      : await tx.query(
          `${SELECT_ENTRIES} ${byDomain} WHERE account_id = $1 AND ${domain} = $2 AND recipient > $3
           ORDER BY recipient LIMIT $4`,
          [listId, cursorDomain, after, limit],
        );
  const later = await tx.query(
    `${SELECT_ENTRIES} ${byDomain} WHERE account_id = $1 AND ${domain} >= $2 AND ${domain} < $3
     ORDER BY ${domain}, recipient LIMIT $4`,
    [
      listId,
      cursorDomain === undefined ? prefix : cursorDomain + TEXT_END,
      prefix + PREFIX_END,
      limit - ofCursor.length,
    ],
  );
  return [...ofCursor, ...later];
}

/** Returns the entries of each list that suppress the address or the pattern, those of `*` first. */
export async function findSuppression(tx: Transaction, address: string): Promise<readonly ListedSuppression[]> {
  const found = await tx.query(
    `SELECT s.recipient, s.reason, s.source, s.at, s.expires_at, coalesce(a.name, '*') AS list
     FROM suppression s LEFT JOIN account a ON a.id = s.account_id WHERE s.recipient = ANY($1::text[])
     ORDER BY s.account_id, s.recipient`,
    [address.startsWith('@') ? [address] : listMatchingPatterns(address)],
  );
  return found.map((row) => ({ ...rows.toSuppression(row), list: rows.readText(row, 'list') }));
}

export async function findSuppressed(tx: Transaction, addresses: readonly string[]): Promise<readonly string[]> {
  const found = await tx.query('SELECT DISTINCT recipient FROM suppression WHERE recipient = ANY($1::text[])', [
    addresses.flatMap(listMatchingPatterns),
  ]);
  const listed = new Set(found.map((row) => rows.readText(row, 'recipient')));
  return addresses.filter((address) => listMatchingPatterns(address).some((pattern) => listed.has(pattern)));
}

/** Reads the entries that suppress any of the recipients, and returns whether an account may not send to one of them. */
export async function readSuppressions(
  tx: Pick<Transaction, 'query'>,
  recipients: readonly string[],
): Promise<(accountId: number, recipient: string, now: number) => boolean> {
  const found = await tx.query(
    'SELECT recipient, account_id, expires_at FROM suppression WHERE recipient = ANY($1::text[])',
    [[...new Set(recipients.flatMap(listMatchingPatterns))]],
  );
  if (found.length === 0) return () => false;
  const toKey = (accountId: number, pattern: string) => `${accountId} ${pattern}`;
  const ends = new Map(
    found.map((row) => [
      toKey(rows.readInteger(row, 'account_id'), rows.readText(row, 'recipient')),
      rows.readIntegerOrNull(row, 'expires_at') ?? Number.POSITIVE_INFINITY,
    ]),
  );
  return (accountId, recipient, now) =>
    listMatchingPatterns(recipient).some((pattern) =>
      [accountId, SERVICE_LIST_ID].some((listId) => (ends.get(toKey(listId, pattern)) ?? 0) > now),
    );
}

/** Removes up to `limit` entries that have expired. */
export async function purgeSuppressions(tx: Transaction, now: number, limit: number): Promise<number> {
  const removed = await tx.query(
    `DELETE FROM suppression WHERE (recipient, account_id) IN (SELECT recipient, account_id FROM suppression
       WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING account_id, ${COLUMNS}`,
    [now, limit],
  );
  for (const row of removed)
    await recordSuppressionEvents(tx, 'suppression.removed', rows.readInteger(row, 'account_id'), [
      { ...rows.toSuppression(row), eventAt: now },
    ]);
  return removed.length;
}

/** Returns false for each message whose recipient is suppressed now. */
export async function checkSuppression(
  tx: Transaction,
  batch: readonly { readonly id: string }[],
  now: number,
): Promise<readonly boolean[]> {
  const { key: column, toKey } = MESSAGE_KEYS[tx.dialect];
  const keys = batch.map(({ id }) => toKey(id));
  const messages = await tx.query(
    `SELECT m.${column} AS key, m.account_id, coalesce(m.recipient, m."to") AS recipient
     FROM mail_request m WHERE m.${column} = ANY($1::uuid[])`,
    [keys],
  );
  const found = messages.map((row) => ({
    key: row.key,
    accountId: rows.readInteger(row, 'account_id'),
    recipient: rows.readText(row, 'recipient'),
  }));
  const isSuppressed = await readSuppressions(
    tx,
    found.map(({ recipient }) => recipient),
  );
  const unsuppressed = found.filter(({ accountId, recipient }) => !isSuppressed(accountId, recipient, now));
  const unsuppressedKeys = new Set(unsuppressed.map(({ key }) => key));
  return keys.map((key) => unsuppressedKeys.has(key));
}
