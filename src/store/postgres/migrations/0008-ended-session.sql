-- Operators who signed out: SHA-256 of their cookie's value, until it would have ended by itself.
CREATE TABLE ended_session (
  hash  text COLLATE "C" PRIMARY KEY,
  until bigint NOT NULL
);
