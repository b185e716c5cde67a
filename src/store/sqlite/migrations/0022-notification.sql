-- Notifications to operators about items that need attention.

-- The delivery status of the node as JSON. Null if the node does not deliver, or if its version is earlier.
ALTER TABLE node ADD COLUMN delivery TEXT;

-- One row: the state of the checks for items.
CREATE TABLE attention_check (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  -- The number of checks. A check that began before another check was recorded is not recorded.
  round       INTEGER NOT NULL,
  checked_at  INTEGER NOT NULL,
  -- The number and the time of the last notification.
  sequence    INTEGER NOT NULL,
  notified_at INTEGER
) STRICT;
INSERT INTO attention_check (one, round, checked_at, sequence, notified_at) VALUES (1, 0, 0, 0, NULL);

-- The items that are present, or whose begin was notified within the last hour. `state` is JSON.
CREATE TABLE attention (
  key   TEXT PRIMARY KEY,
  state TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row for each notification and target.
CREATE TABLE notification (
  id           TEXT NOT NULL,
  -- `mailto:ADDRESS` or a URL.
  target       TEXT NOT NULL,
  payload      TEXT NOT NULL,
  status       TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  -- pending: the time when the next attempt is due, or when the lease ends.
  due_at       INTEGER,
  owner        TEXT,
  -- The number of attempts. It fences settlements.
  attempt      INTEGER NOT NULL DEFAULT 0,
  attempted_at INTEGER,
  -- The reason why the last attempt failed.
  error        TEXT,
  -- The message of a notification by mail.
  message_id   TEXT,
  PRIMARY KEY (id, target)
) STRICT;
CREATE INDEX notification_due ON notification (target, due_at) WHERE status = 'pending';
CREATE INDEX notification_target ON notification (target, created_at);
CREATE INDEX notification_created ON notification (created_at);
CREATE INDEX notification_message ON notification (message_id) WHERE message_id IS NOT NULL;
