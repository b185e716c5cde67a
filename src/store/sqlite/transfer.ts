/**
 * Implements the source of a transfer on the embedded store. The source holds the serve lock, so that no service
 * changes the data during the transfer.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../error.ts';
import { seqOf } from '../rules/messages.ts';
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
  if (!existsSync(path)) throw new StoreError(`there is no database ${path} to transfer.`);
  const unlock = acquireServeLock(path);
  let database: DatabaseSync;
  try {
    database = openDatabase(path, true);
  } catch (error) {
    unlock();
    throw error;
  }
  const page = database.prepare(
    'SELECT m.*, b.message FROM mail_request m LEFT JOIN body b ON b.seq = m.seq WHERE m.seq > ? ORDER BY m.seq LIMIT ?',
  );
  const history = database.prepare('SELECT at, verb, by, detail, attempt FROM event WHERE seq = ? ORDER BY n');
  const countMessages = database.prepare('SELECT count(*) AS n FROM mail_request');

  function toTransferredMessage(row: rows.Row): TransferredMessage {
    return {
      id: rows.text(row, 'id'),
      account_id: rows.int(row, 'account_id'),
      key_id: rows.int(row, 'key_id'),
      state: rows.state(row),
      lane: rows.int(row, 'lane'),
      due_at: rows.intOrNull(row, 'due_at'),
      attempts: rows.int(row, 'attempts'),
      accepted_at: rows.int(row, 'accepted_at'),
      ended_at: rows.intOrNull(row, 'ended_at'),
      to: rows.text(row, 'to'),
      recipient: rows.textOrNull(row, 'recipient'),
      from: rows.text(row, 'from'),
      subject: rows.text(row, 'subject'),
      message: rows.textOrNull(row, 'message'),
      handing_over: rows.int(row, 'handing_over') === 1,
      events: history.all(rows.int(row, 'seq')).map(
        (event): TransferredEvent => ({
          at: rows.int(event, 'at'),
          verb: rows.text(event, 'verb'),
          by: rows.text(event, 'by'),
          detail: rows.textOrNull(event, 'detail'),
          attempt: rows.textOrNull(event, 'attempt'),
        }),
      ),
    };
  }

  return {
    name: resolve(path),
    count: () => ({ messages: rows.int(countMessages.get() ?? {}, 'n') }),
    *readRows(table: TransferTable): Iterable<TransferredRow> {
      const columns = table.columns.map((name) => `"${name}"`).join(', ');
      const order = table.keyColumns.map((name) => `"${name}"`).join(', ');
      for (const row of database.prepare(`SELECT ${columns} FROM ${table.name} ORDER BY ${order}`).iterate()) {
        const booleans = (table.booleanColumns ?? []).map((name) => [name, row[name] === 1]);
        yield { ...row, ...Object.fromEntries(booleans) };
      }
    },
    readMessages: (after, limit) => page.all(after === null ? -1 : seqOf(after), limit).map(toTransferredMessage),
    close() {
      database.close();
      unlock();
    },
  };
}
