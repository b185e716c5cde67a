-- The indexes of postgres-0005-retention.sql.

CREATE INDEX webhook_delivery_message ON webhook_delivery (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX feedback_message ON feedback (mail_id) WHERE mail_id IS NOT NULL;
