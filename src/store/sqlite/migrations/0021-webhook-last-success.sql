-- The time of the last success of the endpoint, at most ten seconds too early. Null before the first success.
ALTER TABLE webhook ADD COLUMN last_success_at INTEGER;
