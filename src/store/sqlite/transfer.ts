/**
 * Implements the source of a transfer on the embedded store. The source holds the serve lock, so that no service
 * changes the data during the transfer.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../error.ts';
import { toSeq } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import type {
  TransferredEvent,
  TransferredMessage,
  TransferredRow,
  TransferSource,
  TransferTable,
} from '../transfer.ts';
import { openDatabase } from './database.ts';
import { acquireServeLock, requireUsableFiles, resolveDatabasePath } from './files.ts';

/** Opens the source. Throws a StoreError if the database does not exist or a service uses it. */
export function openSqliteSource(configuredPath: string): TransferSource {
  const path = resolveDatabasePath(configuredPath);
  requireUsableFiles(path);
  if (!existsSync(path))
    throw new StoreError(`there is no database ${path} to transfer. Set POSTRIDER_DATABASE to the database file.`);
  const unlock = acquireServeLock(path);
  let database: DatabaseSync;
  try {
    database = openDatabase(path, true);
  } catch (error) {
    unlock();
    throw error;
  }
  const selectPage = database.prepare(
    'SELECT m.*, b.message FROM mail_request m LEFT JOIN body b ON b.seq = m.seq WHERE m.seq > ? ORDER BY m.seq LIMIT ?',
  );
  const selectHistory = database.prepare(
    'SELECT at, verb, by, detail, failure, attempt FROM event WHERE seq = ? ORDER BY n',
  );
  const countMessages = database.prepare('SELECT count(*) AS n FROM mail_request');

  function toTransferredMessage(row: rows.Row): TransferredMessage {
    return {
      id: rows.readText(row, 'id'),
      account_id: rows.readInteger(row, 'account_id'),
      key_id: rows.readInteger(row, 'key_id'),
      state: rows.readState(row),
      lane: rows.readInteger(row, 'lane'),
      due_at: rows.readIntegerOrNull(row, 'due_at'),
      attempts: rows.readInteger(row, 'attempts'),
      accepted_at: rows.readInteger(row, 'accepted_at'),
      ended_at: rows.readIntegerOrNull(row, 'ended_at'),
      to: rows.readText(row, 'to'),
      recipient: rows.readTextOrNull(row, 'recipient'),
      from: rows.readText(row, 'from'),
      subject: rows.readText(row, 'subject'),
      message: rows.readTextOrNull(row, 'message'),
      handing_over: rows.readInteger(row, 'handing_over') === 1,
      failure_class: rows.readTextOrNull(row, 'failure_class'),
      failure_category: rows.readTextOrNull(row, 'failure_category'),
      facts: rows.readInteger(row, 'facts'),
      reports: rows.readTextOrNull(row, 'reports'),
      further_reports: rows.readInteger(row, 'further_reports'),
      expires_at: rows.readIntegerOrNull(row, 'expires_at'),
      route: rows.readTextOrNull(row, 'route'),
      events: selectHistory.all(rows.readInteger(row, 'seq')).map(
        (event): TransferredEvent => ({
          at: rows.readInteger(event, 'at'),
          verb: rows.readText(event, 'verb'),
          by: rows.readText(event, 'by'),
          detail: rows.readTextOrNull(event, 'detail'),
          failure: rows.readTextOrNull(event, 'failure'),
          attempt: rows.readTextOrNull(event, 'attempt'),
        }),
      ),
    };
  }

  return {
    name: resolve(path),
    count: () => ({ messages: rows.readInteger(countMessages.get() ?? {}, 'n') }),
    *readRows(table: TransferTable): Iterable<TransferredRow> {
      const columns = table.columns.map((name) => `"${name}"`).join(', ');
      const order = table.keyColumns.map((name) => `"${name}"`).join(', ');
      for (const row of database.prepare(`SELECT ${columns} FROM ${table.name} ORDER BY ${order}`).iterate()) {
        const booleanColumns = (table.booleanColumns ?? []).map((name) => [name, row[name] === 1]);
        yield { ...row, ...Object.fromEntries(booleanColumns) };
      }
    },
    readMessages: (after, limit) => selectPage.all(after === null ? -1 : toSeq(after), limit).map(toTransferredMessage),
    close() {
      database.close();
      unlock();
    },
  };
}
