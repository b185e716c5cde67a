/** Stores the suppression lists: one list for each account, and the list of account 0 for the whole service (`*`). */

import type { ChangeResult } from '../../model/account.ts';
import { type Actor, toAuditedRemoval, toAuditedSuppressions } from '../../model/audit.ts';
import type { Suppression } from '../../model/suppression.ts';
import type { QueueStore, SuppressionStore } from '../contract.ts';
import * as rows from '../rules/rows.ts';
import { writeChange, writeImport } from './audit.ts';
import { insertSuppressionEvents } from './outbox.ts';
import { type Database, forceDurableCommit, type Session, type Statement } from './session.ts';

const SERVICE_LIST_ID = 0;

const ROWS_PER_STATEMENT = 10_000;
const SELECT_ACCOUNT_ID: Statement = { name: 'suppression_account', text: 'SELECT id FROM account WHERE name = $1' };
const INSERT_ENTRIES: Statement = {
  name: 'suppression_insert',
  text: `WITH added AS (
      INSERT INTO suppression (recipient, account_id, reason, source, at)
      SELECT DISTINCT ON (recipient) recipient, $1::int, reason, source, at
      FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY AS s(recipient, reason, source, at, n)
      ORDER BY recipient, n ON CONFLICT DO NOTHING RETURNING recipient, account_id, reason, source, at
    ), recorded AS (${insertSuppressionEvents('suppression.added', 'added', 'coalesce($6::bigint, s.at)')})
    SELECT count(*) AS added FROM added`,
};
const DELETE_ENTRY: Statement = {
  name: 'suppression_remove',
  text: `WITH removed AS (DELETE FROM suppression WHERE recipient = $1 AND account_id = $2 RETURNING recipient, account_id, reason, source, at),
      recorded AS (${insertSuppressionEvents('suppression.removed', 'removed', 'coalesce($3::bigint, s.at)')})
    SELECT 1 AS one FROM removed`,
};
const LIST_ENTRIES: Statement = {
  name: 'suppression_list',
  text: 'SELECT recipient, reason, source, at FROM suppression WHERE account_id = $1 AND recipient > $2 ORDER BY recipient LIMIT $3',
};
/** If this character is appended to a prefix, the result is greater than every text that begins with the prefix. */
const PREFIX_END = '\u{10FFFF}';
// The scan starts at the greater of the prefix and the cursor, so that it does not read the rows of earlier pages.
const SEARCH_BY_ADDRESS: Statement = {
  name: 'suppression_by_address',
  text: `SELECT recipient, reason, source, at FROM suppression
    WHERE account_id = $1 AND recipient >= greatest($2::text COLLATE "C", $3::text COLLATE "C") AND recipient < $4 AND recipient <> $3
    ORDER BY recipient LIMIT $5`,
};
const SEARCH_BY_DOMAIN: Statement = {
  name: 'suppression_by_domain',
  text: `SELECT recipient, reason, source, at FROM suppression
    WHERE account_id = $1 AND split_part(recipient, '@', -1) < $2 AND (split_part(recipient, '@', -1), recipient) > ($3, $4)
    ORDER BY split_part(recipient, '@', -1), recipient LIMIT $5`,
};
const SELECT_FROM_ALL_LISTS: Statement = {
  name: 'suppression_all_lists',
  text: `SELECT s.recipient, s.reason, s.source, s.at, coalesce(a.name, '*') AS list FROM suppression s LEFT JOIN account a ON a.id = s.account_id
    WHERE s.recipient = $1 ORDER BY s.account_id`,
};
const SELECT_LISTED: Statement = {
  name: 'suppression_listed',
  text: 'SELECT DISTINCT recipient FROM suppression WHERE recipient = ANY($1::text[])',
};
const SELECT_UNSUPPRESSED: Statement = {
  name: 'suppression_check',
  text: `SELECT m.id FROM mail_request m WHERE m.id = ANY($1::uuid[]) AND NOT EXISTS (
    SELECT 1 FROM suppression s WHERE s.recipient = coalesce(m.recipient, m."to") AND s.account_id IN (m.account_id, 0))`,
};

/**
 * Adds entries to a list within a transaction. Resolves to the number of new entries. If an address occurs several
 * times, the first entry is stored.
 */
async function addEntries(
  transaction: Session,
  listId: number,
  entries: readonly Suppression[],
  actor: Actor | undefined,
): Promise<number> {
  // All entries are sorted before they are divided into parts, so that the indexes are written sequentially and imports
  // cannot deadlock.
  const sortedEntries = entries.toSorted((a, b) => (a.address < b.address ? -1 : a.address > b.address ? 1 : 0));
  let addedCount = 0;
  let currentInsert: Promise<number> = Promise.resolve(0);
  for (let offset = 0; offset < sortedEntries.length; offset += ROWS_PER_STATEMENT) {
    const part = sortedEntries.slice(offset, offset + ROWS_PER_STATEMENT);
    const values = [
      listId,
      part.map(({ address }) => address),
      part.map(({ reason }) => reason),
      part.map(({ source }) => source),
      part.map((entry) => entry.at),
      actor?.at ?? null,
    ];
    // The next part is encoded while the server writes the current part.
    const previousInsert = currentInsert;
    currentInsert = transaction.query(INSERT_ENTRIES, values).then(([row = {}]) => rows.readInteger(row, 'added'));
    currentInsert.catch(() => undefined);
    addedCount += await previousInsert;
  }
  return addedCount + (await currentInsert);
}

export function prepareSuppressions(database: Database): SuppressionStore & Pick<QueueStore, 'checkSuppression'> {
  async function findListId(name: string): Promise<number | null> {
    if (name === '*') return SERVICE_LIST_ID;
    const [row] = await database.query(SELECT_ACCOUNT_ID, [name]);
    return row === undefined ? null : rows.readInteger(row, 'id');
  }

  return {
    async checkSuppression(batch) {
      const unsuppressedIds = new Set(
        (await database.query(SELECT_UNSUPPRESSED, [batch.map(({ id }) => id)])).map((row) => rows.readText(row, 'id')),
      );
      return batch.map(({ id }) => unsuppressedIds.has(id));
    },
    async addSuppressions(name, entries, actor): Promise<ChangeResult<number>> {
      const listId = await findListId(name);
      if (listId === null) return { kind: 'missing' };
      const addedCount = await database.transaction(async (transaction) => {
        const addedCount = await addEntries(transaction, listId, entries, actor);
        // If all addresses were already on the list, the transaction writes no row and must therefore force a durable
        // commit.
        if (addedCount === 0) await forceDurableCommit(transaction);
        await writeChange(
          transaction,
          actor,
          'suppression.add',
          name,
          null,
          toAuditedSuppressions(addedCount, entries),
        );
        return addedCount;
      });
      return { kind: 'done', value: addedCount };
    },
    async importSuppressions(name, entries, step, actor) {
      const listId = await findListId(name);
      if (listId === null) return { kind: 'missing' };
      const value = await database.transaction(async (transaction) => {
        const addedCount = await addEntries(transaction, listId, entries, actor);
        const entry = await writeImport(transaction, actor, name, step, addedCount);
        if (addedCount === 0 && entry === null) await forceDurableCommit(transaction);
        return { added: addedCount, entry };
      });
      return { kind: 'done', value };
    },
    async removeSuppression(name, address, providerRemoval, actor): Promise<ChangeResult<boolean>> {
      const listId = await findListId(name);
      if (listId === null) return { kind: 'missing' };
      const isRemovedFromList = await database.transaction(async (transaction) => {
        const isRemoved = (await transaction.query(DELETE_ENTRY, [address, listId, actor?.at ?? null])).length > 0;
        if (!isRemoved) await forceDurableCommit(transaction);
        if (isRemoved || providerRemoval?.removed === true)
          await writeChange(
            transaction,
            actor,
            'suppression.remove',
            name,
            toAuditedRemoval(address, providerRemoval),
            null,
          );
        return isRemoved;
      });
      return { kind: 'done', value: isRemovedFromList };
    },
    async listSuppressions(name, after, limit): Promise<ChangeResult<readonly Suppression[]>> {
      const listId = await findListId(name);
      if (listId === null) return { kind: 'missing' };
      return {
        kind: 'done',
        value: (await database.query(LIST_ENTRIES, [listId, after ?? '', limit])).map(rows.toSuppression),
      };
    },
    async searchSuppressions(name, { of, prefix }, after, limit): Promise<ChangeResult<readonly Suppression[]>> {
      const listId = await findListId(name);
      if (listId === null) return { kind: 'missing' };
      const suppressionRows =
        of === 'address'
          ? await database.query(SEARCH_BY_ADDRESS, [listId, prefix, after ?? '', prefix + PREFIX_END, limit])
          : await database.query(SEARCH_BY_DOMAIN, [
              listId,
              prefix + PREFIX_END,
              after === null ? prefix : after.slice(after.lastIndexOf('@') + 1),
              after ?? '',
              limit,
            ]);
      return { kind: 'done', value: suppressionRows.map(rows.toSuppression) };
    },
    async findSuppressed(addresses) {
      const suppressionRows = await database.query(SELECT_LISTED, [addresses]);
      return suppressionRows.map((row) => rows.readText(row, 'recipient'));
    },
    async findSuppression(address) {
      const suppressionRows = await database.query(SELECT_FROM_ALL_LISTS, [address]);
      return suppressionRows.map((row) => ({ ...rows.toSuppression(row), list: rows.readText(row, 'list') }));
    },
  };
}
