import type { DatabaseSync } from 'node:sqlite';
import type { State } from '../../model/message.ts';
import { type AppendedEntry, getFacts } from '../rules/feedback.ts';
import { inheritsFailure, setsLastFailure } from '../rules/messages.ts';
import * as rows from '../rules/rows.ts';
import { findEventType } from '../rules/webhooks.ts';
import type { Outbox } from './outbox.ts';

const INSERT_ENTRY = `INSERT INTO event (seq, n, at, verb, by, detail, failure, attempt)
  VALUES (?, (SELECT coalesce(max(n), 0) + 1 FROM event WHERE seq = ?), ?, ?, ?, ?, ?, ?)`;
const SET_FAILURE = `UPDATE mail_request SET failure_class = :class, failure_category = :category
  WHERE seq = :seq AND (failure_class IS NOT :class OR failure_category IS NOT :category)`;
const ADD_FACTS = 'UPDATE mail_request SET facts = facts | :facts WHERE seq = :seq AND facts & :facts <> :facts';
const SELECT_LAST_FAILURE = 'SELECT failure FROM event WHERE seq = ? AND failure IS NOT NULL ORDER BY n DESC LIMIT 1';

/** Returns the function that appends an entry and records its event. `state` is the state after the change. */
export function prepareAppend(
  database: DatabaseSync,
  outbox: Outbox,
): (seq: number, entry: AppendedEntry, state: State, suppresses?: boolean) => void {
  const appendEntry = database.prepare(INSERT_ENTRY);
  const selectLastFailure = database.prepare(SELECT_LAST_FAILURE);
  const setFailure = database.prepare(SET_FAILURE);
  const addFacts = database.prepare(ADD_FACTS);
  return (seq, entry, state, suppresses = false) => {
    const { at, verb, by, detail, failure, attempt } = entry;
    const failureText =
      failure === null && inheritsFailure(verb)
        ? rows.readTextOrNull(selectLastFailure.get(seq) ?? { failure: null }, 'failure')
        : rows.toFailureColumn(failure);
    appendEntry.run(seq, seq, at, verb, by, detail, failureText, attempt);
    if (failure !== null && setsLastFailure(verb, state, failure.class))
      setFailure.run({ class: failure.class, category: failure.category, seq });
    const facts = getFacts(entry);
    if (facts !== 0) addFacts.run({ facts, seq });
    const type = findEventType(verb);
    if (type !== null) outbox.recordEntry(type, seq, state, suppresses);
  };
}
