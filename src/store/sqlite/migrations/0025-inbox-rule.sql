-- Rules that answer delivery attempts in place of `capture:`.
CREATE TABLE inbox_rule (
  id             INTEGER PRIMARY KEY,
  -- An address, which contains an @, or a domain.
  target         TEXT NOT NULL,
  -- JSON.
  answer         TEXT NOT NULL,
  times          INTEGER NOT NULL,
  used           INTEGER NOT NULL DEFAULT 0,
  created_at     INTEGER NOT NULL,
  expires_at     INTEGER NOT NULL,
  last_message   TEXT,
  last_recipient TEXT,
  last_used_at   INTEGER
) STRICT;
