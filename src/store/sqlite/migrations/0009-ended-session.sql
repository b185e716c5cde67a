-- Operators who signed out: SHA-256 of their cookie's value, until it would have ended by itself.
CREATE TABLE ended_session (
  hash  TEXT PRIMARY KEY,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
