-- The failure of an event: class, category, status and diagnostic as JSON. Null for an event without a failure, and for events of
-- earlier versions.
ALTER TABLE event ADD COLUMN failure TEXT;
