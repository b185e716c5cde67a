ALTER TABLE queue ADD COLUMN route text;

-- A row for each route that was paused or that handed a message over.
CREATE TABLE route (
  name          text PRIMARY KEY,
  paused_at     bigint,
  -- Null: until it is resumed.
  paused_until  bigint,
  pause_reason  text,
  first_used_at bigint,
  revision      bigint NOT NULL
);

-- One policy for the installation (both columns null), an account or a domain. `list` is null after a policy was cleared.
CREATE TABLE routing_policy (
  id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id integer,
  domain     text,
  list       text,
  revision   bigint NOT NULL
);
CREATE UNIQUE INDEX routing_policy_scope ON routing_policy (coalesce(account_id, 0), coalesce(domain, ''));

-- Messages handed over by route and day of UTC.
CREATE TABLE route_use (
  route text NOT NULL,
  day   integer NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (route, day)
);

-- Whether the provider of a route has ever accepted a sending domain, or refused it.
CREATE TABLE route_sender (
  route       text NOT NULL,
  domain      text NOT NULL,
  accepted_at bigint,
  refused_at  bigint,
  refusal     text,
  PRIMARY KEY (route, domain)
);
