-- The running time of the installation, independent of the server's clock (docs/decisions/age.md). One row after the
-- first start.
CREATE TABLE running_time (
  one       integer PRIMARY KEY CHECK (one = 1),
  ran_ms    bigint NOT NULL,
  -- What the clock showed then.
  seen_at   bigint NOT NULL,
  -- JSON: the stretches in which the clock ran evenly.
  stretches text NOT NULL
);
