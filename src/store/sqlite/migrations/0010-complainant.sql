-- Recipients whose complaint counted against an account, with the time of the complaint. A recipient counts once in the
-- reputation window.
CREATE TABLE complainant (
  account_id INTEGER NOT NULL,
  -- The canonical recipient without a label.
  recipient  TEXT NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (account_id, recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX complainant_at ON complainant (at);
