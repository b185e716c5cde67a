/** The index of the embedded store: steps are read and built on a thread of their own, and written by the writer. */
import type { DatabaseSync } from 'node:sqlite';
import * as rows from '../rules/rows.ts';
import { START } from '../search/bounds.ts';
import { type BuiltStep, buildingCourse, type IndexChange, type IndexSource } from '../search/building.ts';
import type { SearchedMail } from '../search/query.ts';
import { keysOf, placesKey, termsKey } from '../search/source.ts';
import { runAtOnce } from '../search/step.ts';
import type { IndexStep } from '../search.ts';

const COLUMNS = 'id, account_id, "to", recipient, "from", subject';

export function prepareSearchIndex(database: DatabaseSync) {
  const segments = database.prepare(
    'SELECT number, first, past, mails, built_at, looked, replaced_at FROM search_segment ORDER BY first DESC',
  );
  const count = database.prepare(
    'SELECT count(*) AS n FROM (SELECT 1 FROM mail_request WHERE seq >= ? AND seq < ? LIMIT ?)',
  );
  const oldest = database.prepare(
    `SELECT ${COLUMNS} FROM mail_request WHERE seq >= ? AND seq < ? ORDER BY seq LIMIT ?`,
  );
  const newest = database.prepare(
    `SELECT ${COLUMNS} FROM mail_request WHERE seq >= ? AND seq < ? ORDER BY seq DESC LIMIT ?`,
  );
  const add = database.prepare(
    'INSERT INTO search_segment (first, past, mails, built_at, looked, directory) VALUES (?, ?, ?, ?, 0, ?)',
  );
  const addPage = database.prepare('INSERT INTO search_page (key, page) VALUES (?, ?)');
  const replace = database.prepare('UPDATE search_segment SET replaced_at = ? WHERE number = ?');
  const looked = database.prepare('UPDATE search_segment SET looked = 1 WHERE number = ?');
  const extend = database.prepare('UPDATE search_segment SET first = ? WHERE number = ?');
  const purge = database.prepare('DELETE FROM search_segment WHERE number = ?');
  const purgePages = database.prepare('DELETE FROM search_page WHERE key >= ? AND key < ?');

  const source: IndexSource = {
    segments: () =>
      segments.all().map((row) => ({
        number: rows.int(row, 'number'),
        first: rows.int(row, 'first'),
        past: rows.int(row, 'past'),
        mails: rows.int(row, 'mails'),
        builtAt: rows.int(row, 'built_at'),
        looked: rows.int(row, 'looked') === 1,
        replacedAt: rows.intOrNull(row, 'replaced_at'),
      })),
    count: (first, past, most) => rows.int(count.get(first, past, most) ?? {}, 'n'),
    rows(first, past, limit, end) {
      if (end === 'oldest') return oldest.all(first, past, limit).map(mailOf);
      return newest.all(first, past, limit).map(mailOf).reverse();
    },
  };

  return {
    buildIndex(step: IndexStep): BuiltStep {
      return runAtOnce(buildingCourse(source, step));
    },
    changeIndex(change: IndexChange): void {
      for (const { first, past, mails, directory, terms, places } of change.add) {
        const number = Number(add.run(first, past, mails, change.at, directory).lastInsertRowid);
        for (const [index, page] of terms.entries()) addPage.run(termsKey(number, index), page);
        for (const [index, page] of places.entries()) addPage.run(placesKey(number, index), page);
      }
      for (const number of change.replace) replace.run(change.at, number);
      if (change.looked !== null) looked.run(change.looked);
      if (change.oldest !== null) extend.run(START, change.oldest);
      if (change.purge !== null) {
        purge.run(change.purge);
        purgePages.run(...keysOf(change.purge));
      }
    },
  };
}

function mailOf(row: rows.Row): SearchedMail {
  return {
    id: rows.text(row, 'id'),
    accountId: rows.int(row, 'account_id'),
    to: rows.text(row, 'to'),
    recipient: rows.textOrNull(row, 'recipient'),
    from: rows.text(row, 'from'),
    subject: rows.text(row, 'subject'),
  };
}
