-- Running nodes, and the token buckets of the throttles.

CREATE TABLE node (
  name        TEXT PRIMARY KEY,
  roles       TEXT NOT NULL,
  version     TEXT NOT NULL,
  started_at  INTEGER NOT NULL,
  seen_at     INTEGER NOT NULL,
  alive_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE throttle (
  account_id INTEGER PRIMARY KEY,
  tokens     REAL NOT NULL,
  per_second REAL NOT NULL,
  burst      INTEGER NOT NULL,
  at         INTEGER NOT NULL
) STRICT;
