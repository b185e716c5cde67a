/** Appending to histories. */
import type { DatabaseSync } from 'node:sqlite';
import type { MailEvent } from '../../model/message.ts';

const APPEND = `INSERT INTO event (seq, n, at, verb, by, detail, attempt)
  VALUES (?, (SELECT coalesce(max(n), 0) + 1 FROM event WHERE seq = ?), ?, ?, ?, ?, ?)`;

/** Makes the function that appends an entry to a history; the attempt is JSON, or null. */
export function prepareAppend(
  database: DatabaseSync,
): (seq: number, entry: Omit<MailEvent, 'attempt'> & { readonly attempt: string | null }) => void {
  const append = database.prepare(APPEND);
  return (seq, { at, verb, by, detail, attempt }) => {
    append.run(seq, seq, at, verb, by, detail, attempt);
  };
}
