-- Feedback reports. Each report has one row, so it is applied only once. A report with a reason was not understood.
CREATE TABLE feedback (
  id      INTEGER PRIMARY KEY,
  digest  TEXT NOT NULL UNIQUE,
  at      INTEGER NOT NULL,
  source  TEXT NOT NULL,
  mail_id TEXT,
  reason  TEXT,
  summary TEXT,
  -- The report itself, cut, as base64; null where it was understood.
  raw     TEXT
) STRICT;
CREATE INDEX feedback_at ON feedback (at);
CREATE INDEX feedback_kept ON feedback (id) WHERE reason IS NOT NULL;

-- The provider's id of a message that it accepted.
CREATE TABLE provider_reference (
  reference TEXT PRIMARY KEY,
  id        TEXT NOT NULL,
  at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX provider_reference_at ON provider_reference (at);
