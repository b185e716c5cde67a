-- Confirmations: the messages whose delivery a provider reported, and the times from acceptance to confirmation as
-- `bucket:count` pairs. Bounces: the bounced messages by failure as `class/category:count` pairs. Rows of earlier versions contain
-- neither.
ALTER TABLE traffic ADD COLUMN confirmed bigint NOT NULL DEFAULT 0;
ALTER TABLE traffic ADD COLUMN confirmations text NOT NULL DEFAULT '';
ALTER TABLE traffic ADD COLUMN bounces text NOT NULL DEFAULT '';
