-- The search index, in segments that are created after acceptance (docs/decisions/search.md), and an index of the
-- states that operators search for.

-- A segment contains all mail requests with a seq from `first` to before `past`.
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

-- Pages of terms and of seqs. The key is the number of the segment times 65536 plus the number of the page.
CREATE TABLE search_page (
  key  INTEGER PRIMARY KEY,
  page BLOB NOT NULL
) STRICT;

-- The condition has two comparisons and no list, because SQLite would create a table for a list at each write of a row.
-- This would cost three microseconds for each accepted and each delivered mail request.
CREATE INDEX mail_request_trouble ON mail_request (state, seq) WHERE ended_at IS NOT NULL AND state <> 'delivered';
