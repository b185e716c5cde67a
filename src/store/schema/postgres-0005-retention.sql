-- For the rows about a message that is purged.
CREATE INDEX webhook_delivery_message ON webhook_delivery (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX feedback_message ON feedback (mail_id) WHERE mail_id IS NOT NULL;
