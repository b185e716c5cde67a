-- Webhooks: endpoints, the outbox of events, and deliveries.
CREATE TABLE webhook (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  url             TEXT NOT NULL,
  -- Null for the events of every account.
  account_id      INTEGER,
  name            TEXT,
  -- The subscription as a sum of bits (getEventBit).
  events          INTEGER NOT NULL,
  -- The signing secrets, encrypted with the secret of the installation.
  sealed          TEXT NOT NULL,
  previous_sealed TEXT,
  previous_until  INTEGER,
  disabled_reason TEXT,
  disabled_at     INTEGER,
  -- The time of the first failed attempt since the last success.
  failing_since   INTEGER,
  created_at      INTEGER NOT NULL,
  -- Events before this position of the outbox were recorded before the endpoint was created.
  start           INTEGER NOT NULL DEFAULT 0,
  -- 1 for a deleted endpoint.
  removed         INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The types to which at least one endpoint subscribes. Events of other types are not recorded.
CREATE TABLE webhook_subscription (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  events INTEGER NOT NULL
) STRICT;
INSERT INTO webhook_subscription (one, events) VALUES (1, 0);

-- Events that have no deliveries yet. The order of the positions is the order of the commits.
CREATE TABLE outbox (
  position   INTEGER PRIMARY KEY AUTOINCREMENT,
  type       TEXT NOT NULL,
  account_id INTEGER NOT NULL,
  -- An event about a message: the entry of its history (0 for the acceptance), and the state after the change.
  message_id TEXT,
  sequence   INTEGER,
  state      TEXT,
  suppressed INTEGER NOT NULL DEFAULT 0,
  -- Another event: its time and its data as JSON. An event about an endpoint is not sent to this endpoint.
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
  -- pending: the time when the next attempt is due, or when the lease ends.
  due_at     INTEGER,
  owner      TEXT,
  -- The number of leases. It fences settlements.
  lease      INTEGER NOT NULL DEFAULT 0,
  -- The number of attempts of the current schedule.
  attempt    INTEGER NOT NULL DEFAULT 0,
  -- The newest attempts as JSON.
  attempts   TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL,
  ended_at   INTEGER
) STRICT;
CREATE UNIQUE INDEX webhook_delivery_id ON webhook_delivery (webhook_id, id);
CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook_id, due_at, created_at) WHERE status = 'pending';
CREATE INDEX webhook_delivery_failed ON webhook_delivery (webhook_id, id) WHERE status = 'failed';
CREATE INDEX webhook_delivery_delivered ON webhook_delivery (ended_at) WHERE status = 'delivered';

-- 1 if the node records events. Nodes of earlier versions do not set it.
ALTER TABLE node ADD COLUMN records_events INTEGER NOT NULL DEFAULT 0;
