-- Provider events about messages that are not settled yet. Each event is applied after the message is settled.
CREATE TABLE pending_report (
  digest      TEXT PRIMARY KEY,
  received_at INTEGER NOT NULL,
  due_at      INTEGER NOT NULL,
  -- The report as JSON.
  report      TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_report_due ON pending_report (due_at);
