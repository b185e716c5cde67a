-- Time series: the counts of each node in each minute and each hour.
CREATE TABLE traffic (
  -- The length of the span in milliseconds, a minute or an hour, and when it begins.
  span       INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  node       TEXT NOT NULL,
  accepted   INTEGER NOT NULL,
  delivered  INTEGER NOT NULL,
  deferred   INTEGER NOT NULL,
  bounced    INTEGER NOT NULL,
  complained INTEGER NOT NULL,
  suppressed INTEGER NOT NULL,
  expired    INTEGER NOT NULL,
  -- Left the queue for good, whatever came of it.
  ended      INTEGER NOT NULL,
  -- Refusals that are about the service itself.
  alarmed    INTEGER NOT NULL,
  -- From accepted to delivered: `bucket:count` pairs.
  latencies  TEXT NOT NULL,
  PRIMARY KEY (span, at, node)
) STRICT, WITHOUT ROWID;
