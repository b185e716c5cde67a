-- Deliverability series: the counts of each node by the most frequent keys of each series.
CREATE TABLE deliverability (
  -- The length of the span in milliseconds, and the start of the span.
  span   integer NOT NULL,
  at     bigint NOT NULL,
  series text COLLATE "C" NOT NULL,
  node   text COLLATE "C" NOT NULL,
  -- The keys with their counts, as JSON.
  counts text NOT NULL,
  PRIMARY KEY (span, series, at, node)
);
-- The mailbox providers of recipient domains.
CREATE TABLE mailbox_provider (
  domain       text COLLATE "C" PRIMARY KEY,
  provider     text COLLATE "C" NOT NULL,
  looked_up_at bigint NOT NULL
);
CREATE INDEX mailbox_provider_by_provider ON mailbox_provider (provider, looked_up_at);
CREATE INDEX mailbox_provider_by_age ON mailbox_provider (looked_up_at);
