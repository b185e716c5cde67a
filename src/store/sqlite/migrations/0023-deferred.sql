-- The queued messages whose last attempt was deferred, in the order of acceptance.
CREATE INDEX mail_request_deferred ON mail_request (seq) WHERE state = 'queued' AND lane = 1;
