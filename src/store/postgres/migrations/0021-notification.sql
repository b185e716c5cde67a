-- Notifications to operators about items that need attention.

-- The delivery status of the node as JSON. Null if the node does not deliver, or if its version is earlier.
ALTER TABLE node ADD COLUMN delivery text;

-- One row: the state of the checks for items.
CREATE TABLE attention_check (
  one         boolean PRIMARY KEY CHECK (one),
  -- The number of checks. A check that began before another check was recorded is not recorded.
  round       bigint NOT NULL,
  checked_at  bigint NOT NULL,
  -- The number and the time of the last notification.
  sequence    bigint NOT NULL,
  notified_at bigint
);
INSERT INTO attention_check (one, round, checked_at, sequence, notified_at) VALUES (true, 0, 0, 0, NULL);

-- The items that are present, or whose begin was notified within the last hour. `state` is JSON.
CREATE TABLE attention (
  key   text COLLATE "C" PRIMARY KEY,
  state text NOT NULL
);

-- One row for each notification and target.
CREATE TABLE notification (
  id           text NOT NULL,
  -- `mailto:ADDRESS` or a URL.
  target       text NOT NULL,
  payload      text NOT NULL,
  status       text NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
  created_at   bigint NOT NULL,
  -- pending: the time when the next attempt is due, or when the lease ends.
  due_at       bigint,
  owner        text,
  -- The number of attempts. It fences settlements.
  attempt      integer NOT NULL DEFAULT 0,
  attempted_at bigint,
  -- The reason why the last attempt failed.
  error        text,
  -- The message of a notification by mail.
  message_id   uuid,
  PRIMARY KEY (id, target)
);
CREATE INDEX notification_due ON notification (target, due_at) WHERE status = 'pending';
CREATE INDEX notification_target ON notification (target, created_at);
CREATE INDEX notification_created ON notification (created_at);
CREATE INDEX notification_message ON notification (message_id) WHERE message_id IS NOT NULL;
