-- Deliverability series: the counts of each node by the most frequent keys of each series.
CREATE TABLE deliverability (
  -- The length of the span in milliseconds, and the start of the span.
  span   INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  series TEXT NOT NULL,
  node   TEXT NOT NULL,
  -- The keys with their counts, as JSON.
  counts TEXT NOT NULL,
  PRIMARY KEY (span, series, at, node)
) STRICT;
-- The mailbox providers of recipient domains.
CREATE TABLE mailbox_provider (
  domain       TEXT PRIMARY KEY,
  provider     TEXT NOT NULL,
  looked_up_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mailbox_provider_by_provider ON mailbox_provider (provider, looked_up_at);
CREATE INDEX mailbox_provider_by_age ON mailbox_provider (looked_up_at);
