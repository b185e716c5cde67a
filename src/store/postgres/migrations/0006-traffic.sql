-- Time series: the counts of each node in each minute and each hour.
CREATE TABLE traffic (
  -- The length of the span in milliseconds, which is a minute or an hour, and the start of the span.
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
  -- Mail requests that left the queue in a terminal state.
  ended      bigint NOT NULL,
  -- Refusals that concern the service and not a message.
  alarmed    bigint NOT NULL,
  -- The times from acceptance to delivery, as `bucket:count` pairs.
  latencies  text NOT NULL,
  PRIMARY KEY (span, at, node)
) WITH (fillfactor = 70);
