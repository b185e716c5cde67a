-- Finding mail requests: an index in segments, made behind the mail (docs/decisions/search.md), and the states an operator
-- searches for.

-- Speaks for all mail requests with a place (seq) from `first` to before `past`.
CREATE TABLE search_segment (
  -- Never given twice: the greatest one is in use, since what stands for a segment always has a greater number.
  number      INTEGER PRIMARY KEY,
  first       INTEGER NOT NULL,
  past        INTEGER NOT NULL,
  mails       INTEGER NOT NULL,
  built_at    INTEGER NOT NULL,
  -- 1 once it was looked at again for mail that came late.
  looked      INTEGER NOT NULL,
  -- Null while it is in use; its pages are kept a little longer.
  replaced_at INTEGER,
  directory   BLOB NOT NULL
) STRICT;

-- Pages of terms and of places; the key is the segment's number times 65536 and the page's.
CREATE TABLE search_page (
  key  INTEGER PRIMARY KEY,
  page BLOB NOT NULL
) STRICT;

-- Two comparisons, not a list: SQLite would make a table of a list each time it writes a row, which cost each accepted and each
-- delivered mail request three microseconds.
CREATE INDEX mail_request_trouble ON mail_request (state, seq) WHERE ended_at IS NOT NULL AND state <> 'delivered';
