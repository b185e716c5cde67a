-- The running time of the service, independent of the clock (docs/decisions/age.md). The table has one row after the
-- first start.
CREATE TABLE running_time (
  one       INTEGER PRIMARY KEY CHECK (one = 1),
  ran_ms    INTEGER NOT NULL,
  -- What the clock showed then.
  seen_at   INTEGER NOT NULL,
  -- JSON: the stretches in which the clock ran evenly.
  stretches TEXT NOT NULL
) STRICT;
