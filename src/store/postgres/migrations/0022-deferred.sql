-- The queued messages whose last attempt was deferred, in the order of acceptance.
CREATE INDEX queue_deferred ON queue (id) WHERE state = 'queued' AND lane = 1;
