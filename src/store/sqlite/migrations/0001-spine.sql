-- Accounts, API keys, mail requests with their bodies and history, idempotency keys, and suppressions.
-- Times are milliseconds since the Unix epoch.

CREATE TABLE meta (
  one       INTEGER PRIMARY KEY CHECK (one = 1),
  -- Grows with every change of an account or key; the caches of running nodes read from it.
  revision  INTEGER NOT NULL,
  probed_at INTEGER NOT NULL
) STRICT;
INSERT INTO meta (one, revision, probed_at) VALUES (1, 0, 0);

CREATE TABLE account (
  id                INTEGER PRIMARY KEY,
  name              TEXT NOT NULL UNIQUE,
  created_at        INTEGER NOT NULL,
  locked_reason     TEXT,
  locked_at         INTEGER,
  volume            INTEGER,
  volume_used       INTEGER NOT NULL DEFAULT 0,
  volume_expires_at INTEGER,
  rate_limit        INTEGER,
  rate_period_ms    INTEGER,
  rate_used         INTEGER NOT NULL DEFAULT 0,
  rate_window_at    INTEGER,
  throttle_per_s    REAL,
  throttle_burst    INTEGER,
  revision          INTEGER NOT NULL
) STRICT;
CREATE INDEX account_revision ON account (revision);

CREATE TABLE api_key (
  id           INTEGER PRIMARY KEY,
  account_id   INTEGER NOT NULL REFERENCES account (id),
  name         TEXT NOT NULL,
  prefix       TEXT NOT NULL,
  hash         TEXT NOT NULL UNIQUE,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER,
  revoked_at   INTEGER,
  last_used_at INTEGER,
  revision     INTEGER NOT NULL
) STRICT;
CREATE INDEX api_key_revision ON api_key (revision);
CREATE INDEX api_key_account ON api_key (account_id);

-- `seq` contains the first 60 bits of the id. Rows are appended in the order of acceptance, and the id needs no index.
CREATE TABLE mail_request (
  seq          INTEGER PRIMARY KEY,
  id           TEXT NOT NULL,
  account_id   INTEGER NOT NULL,
  key_id       INTEGER NOT NULL,
  state        TEXT NOT NULL,
  -- 0 until the first attempt was deferred, then 1: retries cannot starve new mail, nor new mail retries.
  lane         INTEGER NOT NULL,
  -- queued: when it is next tried; sending: when the lease ends.
  due_at       INTEGER,
  owner        TEXT,
  handing_over INTEGER NOT NULL,
  attempts     INTEGER NOT NULL,
  accepted_at  INTEGER NOT NULL,
  ended_at     INTEGER,
  "to"         TEXT NOT NULL,
  -- The canonical recipient, null where it equals "to".
  recipient    TEXT,
  "from"       TEXT NOT NULL,
  subject      TEXT NOT NULL
) STRICT;
CREATE INDEX mail_request_open ON mail_request (state, seq) WHERE ended_at IS NULL;
CREATE INDEX mail_request_due ON mail_request (lane, account_id, due_at) WHERE state = 'queued';

CREATE TABLE body (
  seq     INTEGER PRIMARY KEY,
  message TEXT NOT NULL
) STRICT;

-- The history after acceptance. The row of the mail request records the acceptance.
CREATE TABLE event (
  seq     INTEGER NOT NULL,
  n       INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  verb    TEXT NOT NULL,
  by      TEXT NOT NULL,
  detail  TEXT,
  attempt TEXT,
  PRIMARY KEY (seq, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  account_id  INTEGER NOT NULL,
  key         TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  id          TEXT NOT NULL,
  at          INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_at ON idempotency (at);

-- Entries with account_id 0 belong to the list of the whole service.
CREATE TABLE suppression (
  recipient  TEXT NOT NULL,
  account_id INTEGER NOT NULL,
  reason     TEXT NOT NULL,
  source     TEXT,
  at         INTEGER NOT NULL,
  PRIMARY KEY (recipient, account_id)
) STRICT, WITHOUT ROWID;
