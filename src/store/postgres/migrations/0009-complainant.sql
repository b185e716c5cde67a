-- Recipients whose complaint counted against an account, with the time of the complaint. A recipient counts once in the
-- reputation window.
CREATE TABLE complainant (
  account_id integer NOT NULL,
  -- The canonical recipient without the detail after `+`.
  recipient  text COLLATE "C" NOT NULL,
  at         bigint NOT NULL,
  PRIMARY KEY (account_id, recipient)
);
CREATE INDEX complainant_at ON complainant (at);
