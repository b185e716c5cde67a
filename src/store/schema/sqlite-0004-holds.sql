-- The tables and columns of postgres-0004-holds.sql, which describes them.

ALTER TABLE mail_request ADD COLUMN held_ms INTEGER NOT NULL DEFAULT 0;
CREATE INDEX mail_request_parked ON mail_request (seq, due_at) WHERE state = 'queued' AND due_at >= 2251799813685248;
CREATE INDEX mail_request_waiting ON mail_request (accepted_at + held_ms) WHERE state = 'queued' AND due_at + 0 < 4503599627370496;

CREATE TABLE hold (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id       INTEGER,
  sender           TEXT,
  recipient        TEXT,
  mailbox_provider TEXT,
  reason           TEXT NOT NULL,
  created_by       TEXT NOT NULL,
  created_at       INTEGER NOT NULL,
  until            INTEGER,
  released_at      INTEGER,
  revision         INTEGER NOT NULL
) STRICT;
CREATE INDEX hold_revision ON hold (revision);
