/** Finding mail requests in the embedded database: what the course of a search asks for, answered at once. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { State } from '../../record/states.ts';
import { type Narrow, type SearchSource, searchCourse, type Window } from '../search/course.ts';
import type { SearchedMail } from '../search/query.ts';
import { runAtOnce } from '../search/step.ts';
import type { MailFound, MailSearch } from '../search.ts';
import type { MailSummary } from '../store.ts';
import * as rows from './rows.ts';
import { seqOf } from './seq.ts';

type Mail = MailSummary & SearchedMail;

const COLUMNS = 'id, account_id, state, "to", recipient, "from", subject, accepted_at';
const OPEN: readonly State[] = ['queued', 'sending', 'uncertain'];

export function prepareSearch(database: DatabaseSync) {
  const nth = database.prepare(
    'SELECT id FROM mail_request WHERE seq >= ? AND seq < ? ORDER BY seq DESC LIMIT 1 OFFSET ?',
  );
  const one = database.prepare(`SELECT ${COLUMNS} FROM mail_request WHERE seq = ? AND id = ?`);

  const source: SearchSource<Mail> = {
    byId(id, { accountId, state }) {
      const row = one.get(seqOf(id), id);
      if (row === undefined) return null;
      const mail = mailOf(row);
      return (accountId === null || mail.accountId === accountId) && (state === null || mail.state === state)
        ? mail
        : null;
    },
    rows(window, narrow, limit) {
      return select(window, narrow, limit, '');
    },
    inState(state, window, limit) {
      return select(window, { accountId: null, state }, limit, OPEN.includes(state) ? 'AND ended_at IS NULL' : '');
    },
    nth({ first, past }, count) {
      const row = nth.get(seqOf(first), seqOf(past), count - 1);
      return row === undefined ? null : rows.text(row, 'id');
    },
  };

  function select({ first, past }: Window, { accountId, state }: Narrow, limit: number, more: string): Mail[] {
    const values: SQLInputValue[] = [seqOf(first), seqOf(past)];
    // The state stands in the text: only then does a partial index serve it.
    const narrow = `${accountId === null ? '' : 'AND account_id = ?'} ${state === null ? '' : `AND state = '${state}'`} ${more}`;
    if (accountId !== null) values.push(accountId);
    const sql = `SELECT ${COLUMNS} FROM mail_request WHERE seq >= ? AND seq < ? ${narrow} ORDER BY seq DESC LIMIT ?`;
    return database
      .prepare(sql)
      .all(...values, limit)
      .map(mailOf);
  }

  return {
    searchMail(search: MailSearch, budgetMs: number): MailFound {
      const until = performance.now() + budgetMs;
      const { mails, searchedTo } = runAtOnce(searchCourse(source, search, () => performance.now() >= until));
      return { mails: mails.map(({ recipient: _, ...mail }) => mail), searchedTo };
    },
  };
}

function mailOf(row: rows.Row): Mail {
  return { ...rows.summary(row), recipient: rows.textOrNull(row, 'recipient') };
}
