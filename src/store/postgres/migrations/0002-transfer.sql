-- The move of another store into this database: begun once, and gone on with until it is done.
CREATE TABLE transfer (
  source     text PRIMARY KEY,
  begun_at   timestamptz NOT NULL DEFAULT now(),
  done       boolean NOT NULL DEFAULT false
);
