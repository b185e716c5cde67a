-- The transfer of another store into this database. A transfer begins once and can be continued until it is complete.
CREATE TABLE transfer (
  source     text PRIMARY KEY,
  begun_at   timestamptz NOT NULL DEFAULT now(),
  done       boolean NOT NULL DEFAULT false
);
