-- Provider events about messages that are not settled yet. Each event is applied after the message is settled.
CREATE TABLE pending_report (
  digest      text COLLATE "C" PRIMARY KEY,
  received_at bigint NOT NULL,
  due_at      bigint NOT NULL,
  -- The report as JSON.
  report      text NOT NULL
);
CREATE INDEX pending_report_due ON pending_report (due_at);
