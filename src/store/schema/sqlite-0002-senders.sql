-- Options of accounts, names of senders, and suppression of domains and for a time (postgres-0002-senders.sql).

ALTER TABLE account ADD COLUMN max_age_ms INTEGER;
ALTER TABLE account ADD COLUMN only_to TEXT;
ALTER TABLE account ADD COLUMN unknown_fields TEXT NOT NULL DEFAULT 'ignore';
ALTER TABLE account ADD COLUMN senders TEXT;
ALTER TABLE mail_request ADD COLUMN sender TEXT;
CREATE INDEX mail_request_expires ON mail_request (expires_at) WHERE state = 'queued' AND expires_at IS NOT NULL;
ALTER TABLE suppression ADD COLUMN expires_at INTEGER;
CREATE INDEX suppression_expires ON suppression (expires_at) WHERE expires_at IS NOT NULL;
