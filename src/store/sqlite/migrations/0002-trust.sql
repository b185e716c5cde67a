-- Sending domains with their DKIM keys, the reputation of accounts, and the source of a suppression.

CREATE TABLE domain (
  id               INTEGER PRIMARY KEY,
  account_id       INTEGER NOT NULL REFERENCES account (id),
  -- Lower-case A-label. One owner in the whole installation.
  name             TEXT NOT NULL UNIQUE,
  -- 1 where senders of its subdomains may use it too.
  subdomains       INTEGER NOT NULL,
  status           TEXT NOT NULL,
  created_at       INTEGER NOT NULL,
  checked_at       INTEGER,
  authenticated_at INTEGER,
  failing_since    INTEGER,
  -- The last check of each record, as JSON.
  checks           TEXT NOT NULL,
  removed          INTEGER NOT NULL DEFAULT 0,
  revision         INTEGER NOT NULL
) STRICT;
CREATE INDEX domain_revision ON domain (revision);

CREATE TABLE dkim_key (
  domain_id    INTEGER NOT NULL REFERENCES domain (id),
  selector     TEXT NOT NULL,
  algorithm    TEXT NOT NULL,
  public_key   TEXT NOT NULL,
  -- The private key, AES-256-GCM under the installation's secret.
  sealed       TEXT NOT NULL,
  state        TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  activated_at INTEGER,
  retire_at    INTEGER,
  PRIMARY KEY (domain_id, selector)
) STRICT, WITHOUT ROWID;

-- Emails, hard bounces and complaints of an account in one hour. The sliding window of 7 days is a sum of these rows.
CREATE TABLE reputation (
  account_id INTEGER NOT NULL,
  hour       INTEGER NOT NULL,
  emails     INTEGER NOT NULL,
  bounces    INTEGER NOT NULL,
  complaints INTEGER NOT NULL,
  PRIMARY KEY (account_id, hour)
) STRICT, WITHOUT ROWID;

-- The thresholds of the account, null for the defaults, and the warning at half of a threshold, null without a warning.
ALTER TABLE account ADD COLUMN bounce_rate REAL;
ALTER TABLE account ADD COLUMN complaint_rate REAL;
ALTER TABLE account ADD COLUMN warning TEXT;

CREATE INDEX suppression_account ON suppression (account_id, recipient);
