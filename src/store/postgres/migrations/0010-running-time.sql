-- The running time of the installation, independent of the server's clock (docs/decisions/age.md). The table has one
-- row after the first start.
CREATE TABLE running_time (
  one       integer PRIMARY KEY CHECK (one = 1),
  ran_ms    bigint NOT NULL,
  -- The time of the clock at `ran_ms`.
  seen_at   bigint NOT NULL,
  -- The segments in which the clock had no step, as JSON.
  stretches text NOT NULL
);
