-- Options of accounts, names of senders, and suppression of domains and for a time.

-- The maximum age of a message, null for that of the installation.
ALTER TABLE account ADD COLUMN max_age_ms bigint;
-- The patterns of allowed recipients as JSON, null for any recipient.
ALTER TABLE account ADD COLUMN only_to text;
ALTER TABLE account ADD COLUMN unknown_fields text NOT NULL DEFAULT 'ignore';
-- The names of the senders as JSON. Acceptance reads them with the account.
ALTER TABLE account ADD COLUMN senders text;
-- The name and the Reply-To of the sender as JSON, as they were at acceptance.
ALTER TABLE mail_request ADD COLUMN sender text;
ALTER TABLE queue ADD COLUMN expires_at bigint;
CREATE INDEX queue_expires ON queue (expires_at) WHERE expires_at IS NOT NULL;
ALTER TABLE suppression ADD COLUMN expires_at bigint;
CREATE INDEX suppression_expires ON suppression (expires_at) WHERE expires_at IS NOT NULL;
