-- The encrypted URL. The column `url` contains the URL with its path and query masked.
ALTER TABLE webhook ADD COLUMN sealed_url TEXT NOT NULL DEFAULT '';
