-- Confirmations: the messages whose delivery a provider reported, and the times from acceptance to confirmation as
-- `bucket:count` pairs. Bounces: the bounced messages by failure as `class/category:count` pairs. Rows of earlier versions contain
-- neither.
ALTER TABLE traffic ADD COLUMN confirmed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE traffic ADD COLUMN confirmations TEXT NOT NULL DEFAULT '';
ALTER TABLE traffic ADD COLUMN bounces TEXT NOT NULL DEFAULT '';
