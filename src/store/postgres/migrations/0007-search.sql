-- Finding mail requests: an index in segments, made behind the mail (docs/decisions/search.md). It is derived from the mail
-- requests and spans all accounts, so a distributed installation keeps it in one place or divides it by segment.

-- Speaks for all mail requests with a place (the first 60 bits of the id) from `first` to before `past`.
CREATE TABLE search_segment (
  -- Never given twice.
  number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  first       bigint NOT NULL,
  past        bigint NOT NULL,
  mails       integer NOT NULL,
  built_at    bigint NOT NULL,
  -- True once it was looked at again for mail that came late.
  looked      boolean NOT NULL,
  -- Null while it is in use; its pages are kept a little longer.
  replaced_at bigint,
  directory   bytea NOT NULL
);

-- Pages of terms and of places; the key is the segment's number times 65536 and the page's..
CREATE TABLE search_page (
  key  bigint PRIMARY KEY,
  page bytea NOT NULL
);
-- Pages are compressed already. STORAGE in a column's definition is syntax of PostgreSQL 16.
ALTER TABLE search_page ALTER COLUMN page SET STORAGE PLAIN;
