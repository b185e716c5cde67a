-- Sessions ended by a sign-out: the SHA-256 of the cookie value, until the expiry of the session.
CREATE TABLE ended_session (
  hash  text COLLATE "C" PRIMARY KEY,
  until bigint NOT NULL
);
