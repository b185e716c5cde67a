CREATE TABLE route (
  name          TEXT PRIMARY KEY,
  paused_at     INTEGER,
  paused_until  INTEGER,
  pause_reason  TEXT,
  first_used_at INTEGER,
  revision      INTEGER NOT NULL
) STRICT;

CREATE TABLE routing_policy (
  id         INTEGER PRIMARY KEY,
  account_id INTEGER,
  domain     TEXT,
  list       TEXT,
  revision   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX routing_policy_scope ON routing_policy (coalesce(account_id, 0), coalesce(domain, ''));

CREATE TABLE route_use (
  route TEXT NOT NULL,
  day   INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (route, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE route_sender (
  route       TEXT NOT NULL,
  domain      TEXT NOT NULL,
  accepted_at INTEGER,
  refused_at  INTEGER,
  refusal     TEXT,
  PRIMARY KEY (route, domain)
) STRICT, WITHOUT ROWID;
