/** Appends to a mail request's history; parameters: seq, seq, at, verb, by, detail, attempt (JSON or null). */
export const APPEND_EVENT = `INSERT INTO event (seq, n, at, verb, by, detail, attempt)
  VALUES (?, (SELECT coalesce(max(n), 0) + 1 FROM event WHERE seq = ?), ?, ?, ?, ?, ?)`;
