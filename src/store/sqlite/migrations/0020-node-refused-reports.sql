-- The feedback reports and provider-event requests that the node refused since its start, as a JSON array with one element for each
-- reason. Null if the node refused none, or if its version is earlier.
ALTER TABLE node ADD COLUMN refused_reports TEXT;
