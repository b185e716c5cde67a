-- Whose complaint has counted against an account, and when: one recipient counts once in the window of reputation.
CREATE TABLE complainant (
  account_id INTEGER NOT NULL,
  -- The canonical recipient without a label.
  recipient  TEXT NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (account_id, recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX complainant_at ON complainant (at);
