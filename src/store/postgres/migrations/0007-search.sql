-- The search index, in segments that are created after acceptance (docs/decisions/search.md). It is derived from the
-- mail requests of all accounts. A distributed installation stores it on one server or distributes it by segment.

-- A segment contains all mail requests whose first 60 bits of the id are from `first` to before `past`.
CREATE TABLE search_segment (
  -- The number of the segment, which is never used again.
  number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  first       bigint NOT NULL,
  past        bigint NOT NULL,
  mails       integer NOT NULL,
  built_at    bigint NOT NULL,
  -- True after the segment was verified for mail requests that were committed late.
  looked      boolean NOT NULL,
  -- The time of the replacement, null while the segment is in use. The pages of a replaced segment are purged some time
  -- later.
  replaced_at bigint,
  directory   bytea NOT NULL
);

-- Pages of terms and of seqs. The key is the number of the segment times 65536 plus the number of the page.
CREATE TABLE search_page (
  key  bigint PRIMARY KEY,
  page bytea NOT NULL
);
-- Pages are already compressed. STORAGE in a column definition requires PostgreSQL 16.
ALTER TABLE search_page ALTER COLUMN page SET STORAGE PLAIN;
