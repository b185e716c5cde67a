-- The audit log of operators' changes, and operator tokens.
CREATE TABLE audit (
  id      INTEGER PRIMARY KEY,
  at      INTEGER NOT NULL,
  who     TEXT NOT NULL,
  action  TEXT NOT NULL,
  subject TEXT NOT NULL,
  before  TEXT,
  after   TEXT
) STRICT;

CREATE TABLE operator_token (
  id           INTEGER PRIMARY KEY,
  name         TEXT NOT NULL,
  prefix       TEXT NOT NULL,
  hash         TEXT NOT NULL UNIQUE,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER,
  revoked_at   INTEGER,
  last_used_at INTEGER
) STRICT;
CREATE UNIQUE INDEX operator_token_name ON operator_token (name) WHERE revoked_at IS NULL;
