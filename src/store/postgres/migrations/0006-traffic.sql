-- Time series: the counts of each node in each minute and each hour.
CREATE TABLE traffic (
  -- The length of the span in milliseconds, a minute or an hour, and when it begins.
  span       integer NOT NULL,
  at         bigint NOT NULL,
  node       text COLLATE "C" NOT NULL,
  accepted   bigint NOT NULL,
  delivered  bigint NOT NULL,
  deferred   bigint NOT NULL,
  bounced    bigint NOT NULL,
  complained bigint NOT NULL,
  suppressed bigint NOT NULL,
  expired    bigint NOT NULL,
  -- Left the queue for good, whatever came of it.
  ended      bigint NOT NULL,
  -- Refusals that are about the service itself.
  alarmed    bigint NOT NULL,
  -- From accepted to delivered: `bucket:count` pairs.
  latencies  text NOT NULL,
  PRIMARY KEY (span, at, node)
) WITH (fillfactor = 70);
