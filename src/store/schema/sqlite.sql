-- Version 1 of the schema on SQLite: the tables and columns of postgres.sql, which also describes them, except for these:
-- - One row of mail_request holds the queue and the permanent part of a message, because SQLite has one writer and no
--   vacuum. `seq` is the order of acceptance; body and event refer to it.
-- - One writer needs no slots (account_usage, reputation) and no numbers of transactions (outbox).
-- - The row number of search is `seq`.
-- - `PRAGMA user_version` is the version of the schema.

CREATE TABLE installation (
  one       INTEGER PRIMARY KEY CHECK (one = 1),
  revision  INTEGER NOT NULL,
  -- The number of writes that tested whether the database can be written.
  probed_at INTEGER NOT NULL
) STRICT;
INSERT INTO installation (one, revision, probed_at) VALUES (1, 0, 0);

CREATE TABLE account (
  id                    INTEGER PRIMARY KEY,
  name                  TEXT NOT NULL UNIQUE,
  created_at            INTEGER NOT NULL,
  locked_reason         TEXT,
  locked_at             INTEGER,
  volume                INTEGER,
  volume_used           INTEGER NOT NULL DEFAULT 0,
  volume_expires_at     INTEGER,
  rate_limit            INTEGER,
  rate_period_ms        INTEGER,
  rate_used             INTEGER NOT NULL DEFAULT 0,
  rate_window_at        INTEGER,
  throttle_per_s        REAL,
  throttle_burst        INTEGER,
  bounce_rate           REAL,
  complaint_rate        REAL,
  on_reputation         TEXT NOT NULL DEFAULT 'lock',
  warning               TEXT,
  ses_configuration_set TEXT,
  revision              INTEGER NOT NULL
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

CREATE TABLE mail_request (
  seq              INTEGER PRIMARY KEY,
  id               TEXT NOT NULL,
  account_id       INTEGER NOT NULL,
  key_id           INTEGER NOT NULL,
  state            TEXT NOT NULL,
  lane             INTEGER NOT NULL,
  due_at           INTEGER,
  owner            TEXT,
  handing_over     INTEGER NOT NULL,
  attempts         INTEGER NOT NULL,
  accepted_at      INTEGER NOT NULL,
  ended_at         INTEGER,
  expires_at       INTEGER,
  route            TEXT,
  "to"             TEXT NOT NULL,
  recipient        TEXT,
  "from"           TEXT NOT NULL,
  subject          TEXT NOT NULL,
  failure_class    TEXT,
  failure_category TEXT,
  facts            INTEGER NOT NULL DEFAULT 0,
  reports          TEXT,
  further_reports  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX mail_request_due ON mail_request (lane, account_id, due_at) WHERE state = 'queued';
CREATE INDEX mail_request_open ON mail_request (state, seq) WHERE ended_at IS NULL;
CREATE INDEX mail_request_deferred ON mail_request (seq) WHERE state = 'queued' AND lane = 1;
CREATE INDEX mail_request_trouble ON mail_request (state, seq) WHERE ended_at IS NOT NULL AND state <> 'delivered';
CREATE INDEX mail_request_failure_class ON mail_request (failure_class, seq) WHERE failure_class IS NOT NULL;
CREATE INDEX mail_request_failure_category ON mail_request (failure_category, seq) WHERE failure_category IS NOT NULL;

CREATE TABLE body (
  seq     INTEGER PRIMARY KEY,
  message TEXT NOT NULL
) STRICT;

CREATE TABLE event (
  seq     INTEGER NOT NULL,
  n       INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  verb    TEXT NOT NULL,
  by      TEXT NOT NULL,
  detail  TEXT,
  attempt TEXT,
  failure TEXT,
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

CREATE TABLE suppression (
  recipient  TEXT NOT NULL,
  account_id INTEGER NOT NULL,
  reason     TEXT NOT NULL,
  source     TEXT,
  at         INTEGER NOT NULL,
  PRIMARY KEY (recipient, account_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX suppression_account ON suppression (account_id, recipient);
CREATE INDEX suppression_domain ON suppression
  (account_id, substr(recipient, length(rtrim(recipient, replace(recipient, '@', ''))) + 1), recipient);

CREATE TABLE domain (
  id               INTEGER PRIMARY KEY,
  account_id       INTEGER NOT NULL REFERENCES account (id),
  name             TEXT NOT NULL UNIQUE,
  subdomains       INTEGER NOT NULL,
  status           TEXT NOT NULL,
  created_at       INTEGER NOT NULL,
  checked_at       INTEGER,
  authenticated_at INTEGER,
  failing_since    INTEGER,
  checks           TEXT NOT NULL,
  return_path      TEXT,
  removed          INTEGER NOT NULL DEFAULT 0,
  revision         INTEGER NOT NULL
) STRICT;
CREATE INDEX domain_revision ON domain (revision);

CREATE TABLE dkim_key (
  domain_id    INTEGER NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
  selector     TEXT NOT NULL,
  algorithm    TEXT NOT NULL,
  public_key   TEXT NOT NULL,
  sealed       TEXT NOT NULL,
  state        TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  activated_at INTEGER,
  retire_at    INTEGER,
  PRIMARY KEY (domain_id, selector)
) STRICT, WITHOUT ROWID;

CREATE TABLE reputation (
  account_id        INTEGER NOT NULL,
  hour              INTEGER NOT NULL,
  emails            INTEGER NOT NULL,
  bounces           INTEGER NOT NULL,
  complaints        INTEGER NOT NULL,
  proven_bounces    INTEGER NOT NULL DEFAULT 0,
  proven_complaints INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, hour)
) STRICT, WITHOUT ROWID;

CREATE TABLE evidence (
  account_id INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  source     TEXT NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (account_id, kind, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX evidence_at ON evidence (at);

CREATE TABLE complainant (
  account_id INTEGER NOT NULL,
  recipient  TEXT NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (account_id, recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX complainant_at ON complainant (at);

CREATE TABLE node (
  name            TEXT PRIMARY KEY,
  roles           TEXT NOT NULL,
  version         TEXT NOT NULL,
  started_at      INTEGER NOT NULL,
  seen_at         INTEGER NOT NULL,
  alive_until     INTEGER NOT NULL,
  refused_reports TEXT,
  delivery        TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE throttle (
  account_id INTEGER PRIMARY KEY,
  tokens     REAL NOT NULL,
  per_second REAL NOT NULL,
  burst      INTEGER NOT NULL,
  at         INTEGER NOT NULL
) STRICT;

CREATE TABLE feedback (
  id      INTEGER PRIMARY KEY,
  digest  TEXT NOT NULL UNIQUE,
  at      INTEGER NOT NULL,
  source  TEXT NOT NULL,
  mail_id TEXT,
  reason  TEXT,
  summary TEXT,
  raw     TEXT
) STRICT;
CREATE INDEX feedback_at ON feedback (at);
CREATE INDEX feedback_kept ON feedback (id) WHERE reason IS NOT NULL;

CREATE TABLE pending_report (
  digest      TEXT PRIMARY KEY,
  received_at INTEGER NOT NULL,
  due_at      INTEGER NOT NULL,
  report      TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_report_due ON pending_report (due_at);

CREATE TABLE provider_reference (
  reference TEXT PRIMARY KEY,
  id        TEXT NOT NULL,
  at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX provider_reference_at ON provider_reference (at);

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

CREATE TABLE ended_session (
  hash  TEXT PRIMARY KEY,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE traffic (
  span          INTEGER NOT NULL,
  at            INTEGER NOT NULL,
  node          TEXT NOT NULL,
  accepted      INTEGER NOT NULL,
  delivered     INTEGER NOT NULL,
  deferred      INTEGER NOT NULL,
  bounced       INTEGER NOT NULL,
  complained    INTEGER NOT NULL,
  suppressed    INTEGER NOT NULL,
  expired       INTEGER NOT NULL,
  ended         INTEGER NOT NULL,
  alarmed       INTEGER NOT NULL,
  latencies     TEXT NOT NULL,
  confirmed     INTEGER NOT NULL DEFAULT 0,
  confirmations TEXT NOT NULL DEFAULT '',
  bounces       TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (span, at, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE deliverability (
  span   INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  series TEXT NOT NULL,
  node   TEXT NOT NULL,
  counts TEXT NOT NULL,
  PRIMARY KEY (span, series, at, node)
) STRICT;

CREATE TABLE mailbox_provider (
  domain       TEXT PRIMARY KEY,
  provider     TEXT NOT NULL,
  looked_up_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mailbox_provider_by_provider ON mailbox_provider (provider, looked_up_at);
CREATE INDEX mailbox_provider_by_age ON mailbox_provider (looked_up_at);

CREATE VIRTUAL TABLE search USING fts5
  (terms, content = '', contentless_delete = 0, detail = none, tokenize = "ascii tokenchars '@.-_'");
-- A deleted term leaves the file. Pages and merges suit the page size of the database and short commits.
INSERT INTO search (search, rank) VALUES ('secure-delete', 1), ('pgsz', 8000), ('automerge', 8);
CREATE TABLE search_block (
  number  INTEGER PRIMARY KEY,
  first   TEXT NOT NULL,
  past    TEXT NOT NULL,
  mails   INTEGER NOT NULL,
  checked TEXT NOT NULL
) STRICT;

CREATE TABLE running_time (
  one       INTEGER PRIMARY KEY CHECK (one = 1),
  ran_ms    INTEGER NOT NULL,
  seen_at   INTEGER NOT NULL,
  stretches TEXT NOT NULL
) STRICT;

CREATE TABLE webhook (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  url             TEXT NOT NULL,
  sealed_url      TEXT NOT NULL,
  account_id      INTEGER,
  name            TEXT,
  events          INTEGER NOT NULL,
  sealed          TEXT NOT NULL,
  previous_sealed TEXT,
  previous_until  INTEGER,
  disabled_reason TEXT,
  disabled_at     INTEGER,
  failing_since   INTEGER,
  last_success_at INTEGER,
  created_at      INTEGER NOT NULL,
  start           INTEGER NOT NULL DEFAULT 0,
  removed         INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE webhook_subscription (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  events INTEGER NOT NULL
) STRICT;
INSERT INTO webhook_subscription (one, events) VALUES (1, 0);

CREATE TABLE outbox (
  position   INTEGER PRIMARY KEY AUTOINCREMENT,
  type       TEXT NOT NULL,
  account_id INTEGER NOT NULL,
  message_id TEXT,
  sequence   INTEGER,
  state      TEXT,
  suppressed INTEGER NOT NULL DEFAULT 0,
  at         INTEGER,
  data       TEXT,
  webhook_id INTEGER
) STRICT;

CREATE TABLE webhook_delivery (
  webhook_id INTEGER NOT NULL,
  id         TEXT NOT NULL,
  type       TEXT NOT NULL,
  message_id TEXT,
  sequence   INTEGER,
  state      TEXT,
  suppressed INTEGER NOT NULL DEFAULT 0,
  at         INTEGER,
  data       TEXT,
  status     TEXT NOT NULL,
  due_at     INTEGER,
  owner      TEXT,
  lease      INTEGER NOT NULL DEFAULT 0,
  attempt    INTEGER NOT NULL DEFAULT 0,
  attempts   TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL,
  ended_at   INTEGER
) STRICT;
CREATE UNIQUE INDEX webhook_delivery_id ON webhook_delivery (webhook_id, id);
CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook_id, due_at, created_at) WHERE status = 'pending';
CREATE INDEX webhook_delivery_failed ON webhook_delivery (webhook_id, id) WHERE status = 'failed';
CREATE INDEX webhook_delivery_delivered ON webhook_delivery (ended_at) WHERE status = 'delivered';

CREATE TABLE attention_check (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  round       INTEGER NOT NULL,
  checked_at  INTEGER NOT NULL,
  sequence    INTEGER NOT NULL,
  notified_at INTEGER
) STRICT;
INSERT INTO attention_check (one, round, checked_at, sequence, notified_at) VALUES (1, 0, 0, 0, NULL);

CREATE TABLE attention (
  key   TEXT PRIMARY KEY,
  state TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE inbox_rule (
  id             INTEGER PRIMARY KEY,
  target         TEXT NOT NULL,
  answer         TEXT NOT NULL,
  times          INTEGER NOT NULL,
  used           INTEGER NOT NULL DEFAULT 0,
  created_at     INTEGER NOT NULL,
  expires_at     INTEGER NOT NULL,
  last_message   TEXT,
  last_recipient TEXT,
  last_used_at   INTEGER
) STRICT;
