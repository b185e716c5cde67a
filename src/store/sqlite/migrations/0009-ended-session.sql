-- Sessions ended by a sign-out: the SHA-256 of the cookie value, until the expiry of the session.
CREATE TABLE ended_session (
  hash  TEXT PRIMARY KEY,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
