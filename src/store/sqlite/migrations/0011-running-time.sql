-- How long the service has run, whatever its clock showed (docs/decisions/age.md). One row, once it has run.
CREATE TABLE running_time (
  one       INTEGER PRIMARY KEY CHECK (one = 1),
  ran_ms    INTEGER NOT NULL,
  -- What the clock showed then.
  seen_at   INTEGER NOT NULL,
  -- JSON: the stretches in which the clock ran evenly.
  stretches TEXT NOT NULL
) STRICT;
