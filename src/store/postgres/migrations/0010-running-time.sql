-- How long the installation has run, whatever the server's clock showed (docs/decisions/age.md). One row, once it has run.
CREATE TABLE running_time (
  one       integer PRIMARY KEY CHECK (one = 1),
  ran_ms    bigint NOT NULL,
  -- What the clock showed then.
  seen_at   bigint NOT NULL,
  -- JSON: the stretches in which the clock ran evenly.
  stretches text NOT NULL
);
