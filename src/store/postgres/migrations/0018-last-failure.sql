-- The class and the category of the last failure of a message. Null if no failure is recorded. An index contains only the messages
-- with a failure.
ALTER TABLE mail_request ADD COLUMN failure_class text;
ALTER TABLE mail_request ADD COLUMN failure_category text;
CREATE INDEX mail_request_failure_class ON mail_request (failure_class, id) WHERE failure_class IS NOT NULL;
CREATE INDEX mail_request_failure_category ON mail_request (failure_category, id) WHERE failure_category IS NOT NULL;
