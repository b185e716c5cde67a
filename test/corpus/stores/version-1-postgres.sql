CREATE TABLE mail_request_202611 PARTITION OF mail_request FOR VALUES FROM ('01a19467-e800-0000-0000-000000000000') TO ('01a22ee6-b000-0000-0000-000000000000');
CREATE TABLE mail_request_202612 PARTITION OF mail_request FOR VALUES FROM ('01a22ee6-b000-0000-0000-000000000000') TO ('01a2ce8b-d400-0000-0000-000000000000');
CREATE TABLE mail_request_202701 PARTITION OF mail_request FOR VALUES FROM ('01a2ce8b-d400-0000-0000-000000000000') TO ('01a36e30-f800-0000-0000-000000000000');
CREATE TABLE event_202611 PARTITION OF event FOR VALUES FROM ('01a19467-e800-0000-0000-000000000000') TO ('01a22ee6-b000-0000-0000-000000000000');
CREATE TABLE event_202612 PARTITION OF event FOR VALUES FROM ('01a22ee6-b000-0000-0000-000000000000') TO ('01a2ce8b-d400-0000-0000-000000000000');
CREATE TABLE event_202701 PARTITION OF event FOR VALUES FROM ('01a2ce8b-d400-0000-0000-000000000000') TO ('01a36e30-f800-0000-0000-000000000000');
CREATE TABLE body_20261129 PARTITION OF body FOR VALUES FROM ('01a22499-f800-0000-0000-000000000000') TO ('01a229c0-5400-0000-0000-000000000000');
CREATE TABLE body_20261130 PARTITION OF body FOR VALUES FROM ('01a229c0-5400-0000-0000-000000000000') TO ('01a22ee6-b000-0000-0000-000000000000');
CREATE TABLE body_20261201 PARTITION OF body FOR VALUES FROM ('01a22ee6-b000-0000-0000-000000000000') TO ('01a2340d-0c00-0000-0000-000000000000');
DELETE FROM installation;
INSERT INTO installation (one, version, "least", revision) VALUES
('true', '1', '1', '13');
INSERT INTO account (id, name, created_at, locked_reason, locked_at, volume, volume_used, volume_expires_at, rate_limit, rate_period_ms, rate_used, rate_window_at, throttle_per_s, throttle_burst, bounce_rate, complaint_rate, on_reputation, warning, ses_configuration_set, revision) VALUES
('1', 'default', '1795953602609', NULL, NULL, NULL, '0', NULL, NULL, NULL, '0', NULL, NULL, NULL, NULL, NULL, 'lock', NULL, NULL, '1'),
('3', 'locked', '1795953603535', 'the invoice of October is open', '1795953603588', NULL, '0', NULL, NULL, NULL, '0', NULL, NULL, NULL, NULL, NULL, 'lock', NULL, NULL, '6'),
('2', 'acme', '1795953603221', NULL, NULL, '1000', '2', NULL, '100', '3600000', '2', '1795953606161', '5', '5', NULL, NULL, 'lock', NULL, NULL, '2');
INSERT INTO account_usage (account_id, slot, emails) VALUES
('1', '55', '2'),
('1', '54', '1'),
('1', '50', '3'),
('1', '48', '1'),
('1', '35', '1'),
('1', '40', '1'),
('1', '21', '4');
INSERT INTO api_key (id, account_id, name, prefix, hash, created_at, expires_at, revoked_at, last_used_at, revision) VALUES
('1', '1', 'first', 'pr_1CAY3QX', '0a025e75e7f81ce7c0e5455e6beb421dec4ee261181d673d9cbf7c3345c62ce4', '1795953602609', NULL, NULL, '1795953608149', '1'),
('2', '2', 'the shop', 'pr_68DmXNC', '32a2886760016d2a02568071b0a8e13dcf01ddc3c71694a1acf7c82b0df7b23f', '1795953603344', '1803729603343', NULL, '1795953608256', '3'),
('3', '2', 'gone', 'pr_MhERg3q', 'ff243b69ed9daae19ba1d0a41ab93820a5ef9d0e838a635f5ecac2e5df500723', '1795953603444', NULL, '1795953609013', NULL, '13');
INSERT INTO queue (id, account_id, state, lane, due_at, owner, handing_over, attempts, accepted_at, bytes) VALUES
('01a2272d-45d5-7000-87c9-b2f0624f028e', '1', 'queued', '1', '1795953663288', NULL, 'false', '1', '1795953608149', '10'),
('01a2272d-4657-7000-88e0-61d78260c2b9', '2', 'queued', '1', '1795953674417', NULL, 'false', '1', '1795953608279', '10'),
('01a2272d-4794-7000-817a-6993ceeed169', '1', 'sending', '0', '1795953668595', 'node-gone', 'false', '1', '1795953608596', '10'),
('01a2272d-4794-7001-a694-e7e3dbdcee75', '1', 'uncertain', '0', NULL, NULL, 'false', '1', '1795953608596', '10');
INSERT INTO mail_request (id, account_id, key_id, state, accepted_at, ended_at, expires_at, attempts, route, "to", recipient, "from", subject, failure_class, failure_category, facts, reports, further_reports) VALUES
('01a2272d-3a19-7000-95af-32175e9bf2d6', '1', '1', 'delivered', '1795953605145', '1795953605275', NULL, '1', NULL, 'success@simulator.postrider.test', NULL, 'shop@shop.example', 'To success', NULL, NULL, '0', NULL, '0'),
('01a2272d-3ab7-7000-ab81-c505a2732553', '1', '1', 'bounced', '1795953605303', '1795953605488', NULL, '1', NULL, 'bounce@simulator.postrider.test', NULL, 'shop@shop.example', 'To bounce', 'hard', 'mailbox-unknown', '4', NULL, '0'),
('01a2272d-3c51-7000-ae57-167afdc389e5', '1', '1', 'suppressed', '1795953605713', '1795953605713', NULL, '0', NULL, 'suppressed@simulator.postrider.test', NULL, 'shop@shop.example', 'To suppressed', NULL, NULL, '0', NULL, '0'),
('01a2272d-3cea-7000-936d-17b12103fe02', '1', '1', 'suppressed', '1795953605866', '1795953605866', NULL, '0', NULL, 'gone@example.com', NULL, 'shop@shop.example', 'To gone', NULL, NULL, '0', NULL, '0'),
('01a2272d-3b93-7000-b755-bf288225f906', '1', '1', 'complained', '1795953605523', '1795953605801', NULL, '1', NULL, 'complaint@simulator.postrider.test', NULL, 'shop@shop.example', 'To complaint', NULL, NULL, '0', NULL, '0'),
('01a2272d-3e11-7000-98b7-50194694ebcf', '2', '2', 'delivered', '1795953606161', '1795953606200', NULL, '1', NULL, 'success@simulator.postrider.test', NULL, 'shop@shop.example', 'To success', NULL, NULL, '0', NULL, '0'),
('01a2272d-3966-7000-b139-b8fa0a767a5a', '1', '1', 'delivered', '1795953604966', '1795953605386', NULL, '1', NULL, 'rita@example.com', NULL, 'shop@shop.example', 'Grüße 😀', NULL, NULL, '0', 'not-understood', '0'),
('01a2272d-45d5-7000-87c9-b2f0624f028e', '1', '1', NULL, '1795953608149', NULL, NULL, NULL, NULL, 'queued@example.com', NULL, 'shop@shop.example', 'Queued', 'soft', 'network', '0', NULL, '0'),
('01a2272d-4657-7000-88e0-61d78260c2b9', '2', '2', NULL, '1795953608279', NULL, NULL, NULL, NULL, 'defer@simulator.postrider.test', NULL, 'a@acme.example', 'Deferred', 'soft', 'network', '0', NULL, '0'),
('01a2272d-4699-7000-9cd4-131cf90302fa', '1', '1', 'cancelled', '1795953608345', '1795953608535', NULL, '1', NULL, 'cancelled@example.com', NULL, 'shop@example.org', 'Cancelled', 'soft', 'network', '0', NULL, '0'),
('01a2272d-4794-7000-817a-6993ceeed169', '1', '1', NULL, '1795953608596', NULL, NULL, NULL, NULL, 'sending@example.com', NULL, 'shop@example.org', 'Sending', NULL, NULL, '0', NULL, '0'),
('01a2272d-4794-7002-9fa9-bb4802fea7a1', '1', '1', 'expired', '1795953608596', '1795953608623', NULL, '1', NULL, 'expired@example.com', NULL, 'shop@example.org', 'Expired', NULL, NULL, '0', NULL, '0'),
('01a2272d-4794-7001-a694-e7e3dbdcee75', '1', '1', NULL, '1795953608596', NULL, NULL, NULL, NULL, 'uncertain@example.com', NULL, 'shop@example.org', 'Uncertain', NULL, NULL, '1', NULL, '0'),
('01a2272d-4083-7000-b9db-d08655eb0a4c', '1', '1', 'bounced', '1795953606787', '1795953606848', NULL, '1', NULL, 'nobody@example.com', NULL, 'shop@shop.example', 'To nobody', 'hard', 'mailbox-unknown', '28', 'bounce-reported hard 5.1.1', '0'),
('01a2272d-4816-7000-834d-ec24b183db05', '1', '1', 'complained', '1795953608726', '1795953608737', NULL, '1', NULL, 'complains@example.com', NULL, 'shop@example.org', 'Referenced', NULL, NULL, '32', 'complaint-reported', '0');
INSERT INTO body (id, account_id, message) VALUES
('01a2272d-3966-7000-b139-b8fa0a767a5a', '1', '<html><body><h1>Hello</h1><p>Grüße 😀</p></body></html>'),
('01a2272d-3a19-7000-95af-32175e9bf2d6', '1', 'Thank you.'),
('01a2272d-3ab7-7000-ab81-c505a2732553', '1', 'Thank you.'),
('01a2272d-3b93-7000-b755-bf288225f906', '1', 'Thank you.'),
('01a2272d-3c51-7000-ae57-167afdc389e5', '1', 'Thank you.'),
('01a2272d-3cea-7000-936d-17b12103fe02', '1', 'Thank you.'),
('01a2272d-3e11-7000-98b7-50194694ebcf', '2', 'Thank you.'),
('01a2272d-4083-7000-b9db-d08655eb0a4c', '1', 'Thank you.'),
('01a2272d-45d5-7000-87c9-b2f0624f028e', '1', 'Thank you.'),
('01a2272d-4657-7000-88e0-61d78260c2b9', '2', 'Thank you.'),
('01a2272d-4699-7000-9cd4-131cf90302fa', '1', 'Thank you.'),
('01a2272d-4794-7000-817a-6993ceeed169', '1', 'Thank you.'),
('01a2272d-4794-7001-a694-e7e3dbdcee75', '1', 'Thank you.'),
('01a2272d-4794-7002-9fa9-bb4802fea7a1', '1', 'Thank you.'),
('01a2272d-4816-7000-834d-ec24b183db05', '1', 'Thank you.');
INSERT INTO event (id, account_id, n, at, verb, by, detail, attempt, failure) VALUES
('01a2272d-3a19-7000-95af-32175e9bf2d6', '1', '1', '1795953605275', 'delivered', 'vm-31783-e9715e', '250 2.0.0 simulated: message accepted', '{"outcome":{"kind":"delivered","reply":{"stage":"content","code":250,"enhanced":"2.0.0","text":"simulated: message accepted"}},"startedAt":1795953605275,"tookMs":0,"remote":"simulator","transcript":["* simulated: this message did not leave the service","S: 250 2.0.0 simulated: message accepted"],"lineOffsetsMs":[0,0]}', NULL),
('01a2272d-3ab7-7000-ab81-c505a2732553', '1', '2', '1795953605488', 'bounced', 'vm-31783-e9715e', '550 5.1.1 simulated: no such user', '{"outcome":{"kind":"bounced","reply":{"stage":"rcpt","code":550,"enhanced":"5.1.1","text":"simulated: no such user"},"reason":"recipient-unknown","suppress":false},"startedAt":1795953605488,"tookMs":0,"remote":"simulator","transcript":["* simulated: this message did not leave the service","S: 550 5.1.1 simulated: no such user"],"lineOffsetsMs":[0,0]}', '{"class":"hard","category":"mailbox-unknown","status":"5.1.1","diagnostic":"550 5.1.1 simulated: no such user"}'),
('01a2272d-3c51-7000-ae57-167afdc389e5', '1', '3', '1795953605713', 'suppressed', 'simulator', 'the recipient is on the suppression list', NULL, NULL),
('01a2272d-3b93-7000-b755-bf288225f906', '1', '4', '1795953605801', 'delivered', 'vm-31783-e9715e', '250 2.0.0 simulated: message accepted, a complaint follows', '{"outcome":{"kind":"delivered","reply":{"stage":"content","code":250,"enhanced":"2.0.0","text":"simulated: message accepted, a complaint follows"}},"startedAt":1795953605801,"tookMs":0,"remote":"simulator","transcript":["* simulated: this message did not leave the service","S: 250 2.0.0 simulated: message accepted, a complaint follows"],"lineOffsetsMs":[0,0]}', NULL),
('01a2272d-3b93-7000-b755-bf288225f906', '1', '5', '1795953605801', 'complained', 'simulator', 'complaint of the mailbox simulator', NULL, NULL),
('01a2272d-3cea-7000-936d-17b12103fe02', '1', '6', '1795953605866', 'suppressed', 'store', 'the recipient is on the suppression list', NULL, NULL),
('01a2272d-3966-7000-b139-b8fa0a767a5a', '1', '7', '1795953605386', 'delivered', 'vm-31783-e9715e', '250 2.0.0 ok', '{"outcome":{"kind":"delivered","reply":{"stage":"content","code":250,"enhanced":"2.0.0","text":"ok"}},"startedAt":1795953605088,"tookMs":297.850015,"remote":"127.0.0.1:43719","transcript":["* 127.0.0.1:43719 [127.0.0.1], clear text","S: 220 sink","C: EHLO vm","S: 250-sink","S: 250-PIPELINING","S: 250 SMTPUTF8","C: MAIL FROM:<b-agrcoljzmzyabmjzxd5au5t2ljitfch6tiogf3g4rcyu4@bounces.host.example>","C: RCPT TO:<rita@example.com>","C: DATA","S: 250 2.1.0 ok","S: 250 2.1.0 ok","S: 354 go","C: (2043 octets)","S: 250 2.0.0 ok"],"lineOffsetsMs":[38,50,50,79,79,79,80,80,80,99,189,189,189,297]}', NULL),
('01a2272d-3e11-7000-98b7-50194694ebcf', '2', '8', '1795953606200', 'delivered', 'vm-31783-e9715e', '250 2.0.0 simulated: message accepted', '{"outcome":{"kind":"delivered","reply":{"stage":"content","code":250,"enhanced":"2.0.0","text":"simulated: message accepted"}},"startedAt":1795953606200,"tookMs":0,"remote":"simulator","transcript":["* simulated: this message did not leave the service","S: 250 2.0.0 simulated: message accepted"],"lineOffsetsMs":[0,0]}', NULL),
('01a2272d-4083-7000-b9db-d08655eb0a4c', '1', '9', '1795953606848', 'delivered', 'vm-31783-e9715e', '250 2.0.0 ok', '{"outcome":{"kind":"delivered","reply":{"stage":"content","code":250,"enhanced":"2.0.0","text":"ok"}},"startedAt":1795953606841,"tookMs":7.407806000001074,"remote":"127.0.0.1:43719","transcript":["* 127.0.0.1:43719 [127.0.0.1], clear text, message 2 of this connection","C: MAIL FROM:<b-agrcolkaqnyaboo32cdfl2ykjritf3xbseoaxfylhal3c@bounces.host.example>","C: RCPT TO:<nobody@example.com>","C: DATA","S: 250 2.1.0 ok","S: 250 2.1.0 ok","S: 354 go","C: (1580 octets)","S: 250 2.0.0 ok"],"lineOffsetsMs":[0,0,0,0,7,7,7,7,7]}', NULL),
('01a2272d-4083-7000-b9db-d08655eb0a4c', '1', '10', '1795953606965', 'bounced', 'feedback:smtp', '5.1.1 no such user (reported by mx.example.com)', NULL, '{"class":"hard","category":"mailbox-unknown","status":"5.1.1","diagnostic":"no such user"}'),
('01a2272d-45d5-7000-87c9-b2f0624f028e', '1', '11', '1795953608255', 'deferred', 'vm-31783-c20e25', '127.0.0.1:1 refused the connection (ECONNREFUSED); check that the mail server is running', '{"outcome":{"kind":"deferred","reply":{"stage":"connect","code":null,"enhanced":null,"text":"127.0.0.1:1 refused the connection (ECONNREFUSED); check that the mail server is running"},"reason":"connection","scope":"route"},"startedAt":1795953608251,"tookMs":3.9753579999996873,"remote":null,"transcript":[],"lineOffsetsMs":[]}', '{"class":"soft","category":"network","status":null,"diagnostic":"127.0.0.1:1 refused the connection (ECONNREFUSED); check that the mail server is running"}'),
('01a2272d-4657-7000-88e0-61d78260c2b9', '2', '12', '1795953608318', 'deferred', 'vm-31783-c20e25', '451 4.3.0 simulated: try again later', '{"outcome":{"kind":"deferred","reply":{"stage":"rcpt","code":451,"enhanced":"4.3.0","text":"simulated: try again later"},"reason":"unavailable","scope":"message"},"startedAt":1795953608317,"tookMs":1,"remote":"simulator","transcript":["* simulated: this message did not leave the service","S: 451 4.3.0 simulated: try again later"],"lineOffsetsMs":[0,1]}', '{"class":"soft","category":"network","status":"4.3.0","diagnostic":"451 4.3.0 simulated: try again later"}'),
('01a2272d-4699-7000-9cd4-131cf90302fa', '1', '13', '1795953608386', 'deferred', 'vm-31783-c20e25', '127.0.0.1:1 refused the connection (ECONNREFUSED); check that the mail server is running', '{"outcome":{"kind":"deferred","reply":{"stage":"connect","code":null,"enhanced":null,"text":"127.0.0.1:1 refused the connection (ECONNREFUSED); check that the mail server is running"},"reason":"connection","scope":"route"},"startedAt":1795953608378,"tookMs":7.209984999999506,"remote":null,"transcript":[],"lineOffsetsMs":[]}', '{"class":"soft","category":"network","status":null,"diagnostic":"127.0.0.1:1 refused the connection (ECONNREFUSED); check that the mail server is running"}'),
('01a2272d-4699-7000-9cd4-131cf90302fa', '1', '14', '1795953608535', 'cancelled', 'operator', NULL, NULL, NULL),
('01a2272d-4794-7001-a694-e7e3dbdcee75', '1', '15', '1795953608623', 'uncertain', 'node-gone', '250 ok', '{"outcome":{"kind":"delivered","reply":{"stage":"content","code":250,"enhanced":"2.0.0","text":"ok"}},"startedAt":1,"tookMs":2,"remote":"relay.test:25","transcript":["C: DATA","S: 354 go"],"lineOffsetsMs":[0,2]}', NULL),
('01a2272d-4794-7002-9fa9-bb4802fea7a1', '1', '16', '1795953608623', 'expired', 'node-gone', '250 ok', '{"outcome":{"kind":"delivered","reply":{"stage":"content","code":250,"enhanced":"2.0.0","text":"ok"}},"startedAt":1,"tookMs":2,"remote":"relay.test:25","transcript":["C: DATA","S: 354 go"],"lineOffsetsMs":[0,2]}', NULL),
('01a2272d-4816-7000-834d-ec24b183db05', '1', '17', '1795953608737', 'delivered', 'node-a', '250 ok', '{"outcome":{"kind":"delivered","reply":{"stage":"content","code":250,"enhanced":"2.0.0","text":"ok"},"reference":"ses-1"},"startedAt":1,"tookMs":2,"remote":"relay.test:25","transcript":["C: DATA","S: 354 go"],"lineOffsetsMs":[0,2]}', NULL),
('01a2272d-4083-7000-b9db-d08655eb0a4c', '1', '18', '1795953608754', 'bounce-reported', 'feedback:ses', '5.1.1 no such user (reported by mx.example.com)', NULL, '{"class":"hard","category":"mailbox-unknown","status":"5.1.1","diagnostic":"no such user"}'),
('01a2272d-4816-7000-834d-ec24b183db05', '1', '19', '1795953608754', 'complained', 'feedback:ses', '5.1.1 no such user (abuse; reported by mx.example.com)', NULL, NULL);
INSERT INTO idempotency (account_id, key, fingerprint, id, at) VALUES
('1', 'order-1', 'a1f72d0caf7d308ee387a31dbcd6a2eb3984a026ffaaab17b21190f5c3b4f21d', '01a2272d-3a19-7000-95af-32175e9bf2d6', '1795953605145'),
('2', 'order-2', 'a1f72d0caf7d308ee387a31dbcd6a2eb3984a026ffaaab17b21190f5c3b4f21d', '01a2272d-3e11-7000-98b7-50194694ebcf', '1795953606161');
INSERT INTO suppression (recipient, account_id, reason, source, at) VALUES
('gone@example.com', '1', 'manual', NULL, '1795953604819'),
('left@example.org', '2', 'complaint', NULL, '1795953604880'),
('nobody@example.com', '1', 'bounce', '01a2272d-4083-7000-b9db-d08655eb0a4c', '1795953606965'),
('complains@example.com', '1', 'complaint', '01a2272d-4816-7000-834d-ec24b183db05', '1795953608754');
INSERT INTO domain (id, account_id, name, subdomains, status, created_at, checked_at, authenticated_at, failing_since, checks, return_path, removed, revision) VALUES
('1', '1', 'shop.example', 'false', 'authenticated', '1795953603844', '1795953604212', '1795953604212', NULL, '[{"purpose":"dkim","type":"TXT","name":"pr20261129t9bwa._domainkey.shop.example","value":"v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAmDGemgiLYQsXOoMDdV8s1DhssfjbdE3YndkTxHNNaHhaSORrV4tVKSSACVUwcGfztyDuTQnhRG5z/YIMRZHnHkjyY5xQiB1gUuabQhOYBpziUgwLpYiwENLJVZYJ6DyNDA4n4KmjknO6WQBXjq+1Jeu5Ni8HYRZiRgR8IVp+gEBrwQmz31HWOtnr80+0xQBgO1q7I/4Irw4IMBLmWujCHe236g6L065J02o/PWkvzRJqdAAyEtbIqDfYogaZMWSoXQVVi1jxUVzPm4x3S1YbRMYAbgczDmmkW+R5Yz9C6Xyp/xZo5wplBxoUnKC6hLxubQUhpwDRq7yppGhf2AA00QIDAQAB","found":"found","detail":"found","seen":["v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAmDGemgiLYQsXOoMDdV8s1DhssfjbdE3YndkTxHNNaHhaSORrV4tVKSSACVUwcGfztyDuTQnhRG5z/YIMRZHnHkjyY5xQiB1gUuabQhOYBpziUgwLpYiwENLJVZYJ6DyNDA4n4KmjknO6WQBXjq+1Jeu5Ni8HYRZiRgR8IVp+gEBrwQmz31HWOtnr80+0xQBgO1q7I/4Irw4IMBLmWujCHe236g6L065J02o/PWkvzRJqdAAyEtbIqDfYogaZMWSoXQVVi1jxUVzPm4x3S1YbRMYAbgczDmmkW+R5Yz9C6Xyp/xZo5wplBxoUnKC6hLxubQUhpwDRq7yppGhf2AA00QIDAQAB"]},{"purpose":"dkim","type":"TXT","name":"pr20261129t9bwe._domainkey.shop.example","value":"v=DKIM1; k=ed25519; p=jFM5Ly4P2KT//JA6W1EtEHaze3JK78aUITWe6DO+GdE=","found":"found","detail":"found","seen":["v=DKIM1; k=ed25519; p=jFM5Ly4P2KT//JA6W1EtEHaze3JK78aUITWe6DO+GdE="]},{"purpose":"spf","type":"TXT","name":"bounces.host.example","value":"v=spf1 ?all","found":"found","detail":"found","seen":["v=spf1 ?all"]},{"purpose":"dmarc","type":"TXT","name":"_dmarc.shop.example","value":"v=DMARC1; p=none","found":"found","detail":"found","seen":["v=DMARC1; p=none"]},{"purpose":"return-path","type":"MX","name":"bounces.host.example","value":"10 bounces.host.example","found":"missing","detail":"no MX record; publish 10 bounces.host.example","seen":[]}]', 'bounces.shop.example', 'false', '9'),
('2', '2', 'pending.example', 'false', 'pending', '1795953604487', '1795953608120', NULL, NULL, '[{"purpose":"dkim","type":"TXT","name":"pr20261129sv77a._domainkey.pending.example","value":"v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAsBo/Bjusizy5IUWX9czIBrjIkl0G+JeHWaFQ8hcAKL/u5S6wlp7u2H/Uk+mVozcXS8iAt+NxLfbKnYVoDy/zZE1BXL26T5Le6p+z/+KYMTS8XUOphHAC+6xdMP+9SaM4OF30l8MOPgvCAA+0mTDwHCaMxtVDSg4XLOsU0W1h6eLWspzxbTaZtVDT5r8QsnJzEEXEaj3T9yMdjDo3At+yjAovTXQ8zEQ149v7Qy8AaCZ04PT5vx192cNpqqemmKxAxt7Q2TSPwpYceAUcWjCOu9fisJpUx1tzS8MtUCFgQzoydfc5xcd3ZnXAesD9oQYS1K6zSsCg6Vi7DuFXv5aR9wIDAQAB","found":"missing","detail":"no record; publish it as shown","seen":[]},{"purpose":"dkim","type":"TXT","name":"pr20261129sv77e._domainkey.pending.example","value":"v=DKIM1; k=ed25519; p=sv3cgghHm1+ApdZa+0TyTX2ZfdNMUQqoU++fdZkiOXk=","found":"missing","detail":"no record; publish it as shown","seen":[]},{"purpose":"spf","type":"TXT","name":"bounces.host.example","value":"v=spf1 ?all","found":"found","detail":"found","seen":["v=spf1 ?all"]},{"purpose":"dmarc","type":"TXT","name":"_dmarc.pending.example","value":"v=DMARC1; p=none","found":"missing","detail":"no record; publish it as shown","seen":[]},{"purpose":"return-path","type":"MX","name":"bounces.host.example","value":"10 bounces.host.example","found":"missing","detail":"no MX record; publish 10 bounces.host.example","seen":[]}]', NULL, 'false', '10');
INSERT INTO dkim_key (domain_id, selector, algorithm, public_key, sealed, state, created_at, activated_at, retire_at) VALUES
('1', 'pr20261129t9bwa', 'rsa', 'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAmDGemgiLYQsXOoMDdV8s1DhssfjbdE3YndkTxHNNaHhaSORrV4tVKSSACVUwcGfztyDuTQnhRG5z/YIMRZHnHkjyY5xQiB1gUuabQhOYBpziUgwLpYiwENLJVZYJ6DyNDA4n4KmjknO6WQBXjq+1Jeu5Ni8HYRZiRgR8IVp+gEBrwQmz31HWOtnr80+0xQBgO1q7I/4Irw4IMBLmWujCHe236g6L065J02o/PWkvzRJqdAAyEtbIqDfYogaZMWSoXQVVi1jxUVzPm4x3S1YbRMYAbgczDmmkW+R5Yz9C6Xyp/xZo5wplBxoUnKC6hLxubQUhpwDRq7yppGhf2AA00QIDAQAB', 'AWaBmFHgC36lJq3xfk-rVVo4jrTe-ymvz__H3QcMpDxKqhvDcY1FUtziuHbONQRVVYp2JUnW-eMkI3K9u1bt7LLgklPgyIc1lrRjAqdzBcbQRysXsQICvPJRqXQHhwFUH5x_hLe87nhvb8c_WpxG9OqvA1H7kRbmYOcMwDrRaQGTvNrNZRkoLdNHOQHujs4m5WWR1J9OnsvE0oahTlWtLMtAsHvZOfmaRYQ8z-po2xoBtD_iSZx9_CGFq_ssUqLbiVmVuVsC70z6-Z8HaBctcG1WleB0V7Kd2_MO-MbqabP92VRBb2UcaKIOtE3aHaphW8NAbN9eu_QjzWtpPQo60GTBIfnjEcpzW-82fzFOQnXNML7CwGKhmuNMAwK7k5XVGVFahRN9PGW4BYFt-uYwQiteuznuWKVDC6dD0d40SnEHpHDjW7zgCRfBJ9lfjjaHX4qDn-KkDh4-GkzYigkk2LRecwO81wdMdC1kZVY1Qi1ll0OPq1_B5xkkLNq_poBeJOSyZjeHhD74O0Ax5FJR9duTD9vehgZayjFHyIOstUkw_qGyidVMyWu-s0Yd-FJ9TkNRG67rgMXl876tYsXnud9Ywg94_jR8fzaNM3RLupcs2oH644pK1drs2Y4Sub2edVfKi2hbEqpWXVKw2HP8d7jRjoTLZFZcCcC3StDYKpk77BTtYV2t7G3kj1ifKMC6q8LBOwcKbm5yyv4nKl1DJqfBeGBCd8X8oRDxZFyFstL9P0f1wBMIR8eAeFxjzEY-ZxNRTe3ZS8jDoK4EMdFqXM6qoH6qCqSV775pnxbl9xy-WpXwWOWkt5PT-VInlMC-siwbjpOTvpzCcJqekLm23JEyrTZHQ4n0ybVcoHkDgTvuSnxjLdx_mbGfg3KSCmzLu4Msl9HKCw2yAxASjtyB4B0uHanIdWrd-9kNkUOkfddo9_ujdVgY2220PX5yYCGMCxwP1KaJt9VeoghTU0lxbMTNB4X7AEWa7W-trCFE--bIqNZxxTxl1gbegn1mS5RXbNh6HyYpqUBeeE7y_8HGtXRctxUWhA_wRzc6AQ6F3BWbOtfJqkEU6MkgkYZl5SStwSqDk5za_raJdHvS9ZSk_GQsjIiMt-PFGPSfWHLtsgiKRdYiNZ9DYcJmIwRLt8jhxbD3diblYeHmGnnM766pi5pMEBrHK2mvWG3uIQCdADnN3F61Ko3nsfSb2VvtlHYrYIXykdJu2GgPkH0Cc0xCdN91xZ4TJ0ZIX-nB3DSpDDzk54Ag3P2gh1DkU0CecRNq8Bom3QoY1TBH69WcjrdZkA1_PEPVblEXrLSQWcQcLSteTMYVTkkcqbgVBlTA_B2flbtGhJzshIna-K1SILGPgm8FBEf0BPz5ZWWmls-a7XKbZHSAkN2o92JG8Q_vd76uHW5rH_IWiohsppcsk3cGE2uAmeRTJjhB0b7dd9ZDDq0RKlfJYFzhu0TG6EgiF9v6ol3-Yckg-8943eP4TFie75AlCXhOnUGUd9NquxqluPUoeZlbyi_8bT2kA2jbpv7-PbhgQH5arw69Pd6YgN7gikOR_FJ5s5QATCHAUT-UM6frtTMvY0a8ffeYMy5bEYCiZVuIT5jPcEAdgkBvC3KCdcZMwrMHYWgYc8WdUCvJTyET9U3G4RqBqkVggc4', 'active', '1795953603844', '1795953603844', NULL),
('1', 'pr20261129t9bwe', 'ed25519', 'jFM5Ly4P2KT//JA6W1EtEHaze3JK78aUITWe6DO+GdE=', 'Ae6z5jcI4SeAgbb5TNNK1IGvu1y41xaXP4agLXbVvtg4BEE_99M6S1guUexAitHTTMLTwgNPEE9biimWHiLLDRv6cVGYJ8UmP2evfo8', 'active', '1795953603844', '1795953603844', NULL),
('2', 'pr20261129sv77a', 'rsa', 'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAsBo/Bjusizy5IUWX9czIBrjIkl0G+JeHWaFQ8hcAKL/u5S6wlp7u2H/Uk+mVozcXS8iAt+NxLfbKnYVoDy/zZE1BXL26T5Le6p+z/+KYMTS8XUOphHAC+6xdMP+9SaM4OF30l8MOPgvCAA+0mTDwHCaMxtVDSg4XLOsU0W1h6eLWspzxbTaZtVDT5r8QsnJzEEXEaj3T9yMdjDo3At+yjAovTXQ8zEQ149v7Qy8AaCZ04PT5vx192cNpqqemmKxAxt7Q2TSPwpYceAUcWjCOu9fisJpUx1tzS8MtUCFgQzoydfc5xcd3ZnXAesD9oQYS1K6zSsCg6Vi7DuFXv5aR9wIDAQAB', 'AWZJpjGhI5s9vzvA2QeBo3E4oivEZDtnkNeDbfKlPyUQvkRPSJG5c3gK7NzqRVUh4MLps3aCMeWxId_a-qVChTW8mEUZ26lseKigCzZUzlEqqMpZNghd39rvQy7V9BqQ3J2M_0v266pKvaNeYtGMsnOaFMQlOeSFQ8ku2lTp06sGoPmB6pVQw5RVHAROEWNRL4V5UnCY4IVVEUPiT66c1SsqUn2QgxqggwK0zljktTsncnbJdaWabFIRhfxIdqviCNNvGqSMamsl_l8F6i23s3tNbGyg19pVtNsI2e7BSN2sQl6fH4Wng82zFKmfHCA0Jx-geToFcx4yk3c-Gr6uR6aBXo5_TCmomsSalHqNDcIRT8_jWFA57NWJtuRGeJl5xsYxSgohpb05HA0HXD5aTHJ0v-_Lon9FD6q9Laq_D7Ghrc_i05VZ6_YUF4H23VVk0MZi3apwNq1jlmPnG8hY9p6keGUpgXWwXNj-gGh3eVU3rJdsltEaTrET8nOi57UlMPZ97Tz9G9JL4xBeskYhWHLMha0ffzAcj8pik-LP7fYB2XPWzgauIpZgu2mK2GiPdXvZG22j6HdtimrrUt8XLQju1gMvA9CGpV4BLjsH5d18lsCcXeAhKva9WkCWhpedLIK7vCqjS0jU-Ot5BLew8lIjEt5LfiNrC8YnKUli-lEetvGp-hz0ehIunpvpE0FRFrnD_pP1JjBPi3RGWEMZH7WZq8C7DJ0aHFsjiNpZcZ_t1gbfyyqCmfPJ9XEBhF_cxOJPpxvxAADWsxckZCe9bmWlyDSARzJqDOVW6NBgrPI3ZYbc5o5kQ2aHFt2Xs-gQZYMZOk9BlEQF7JsCXimd-i2gpdOzUWHQaCyiGbRYt_0_CDMjb3L2Kjs1gG_qhP8uM2RQ52vns6TXSM0aGP4vhZ1oWGG8wfLtkYw8SlSwYJqpOmcXUNAkXinfdiBQdRh23arUezwmJzDFOgbWmnM74TVxPVUEha73PEuV0GirEJnhuw5jRTb1gLi_fn5107uIJPNuVwJmKPMTgS66gNtLUq7dp2bQcb1aNaWMdxMq-6SZ14_Y9QFb2wE_9hp-8RYLNkTN4QdhlXEVMcfOWMmPv63BQ9PDMIoMCeWmFpSEBPa-j6zuL8Pd224rznVI8rxLVx-ruAsqJ3RWmvCYIpjy69V9u_rEl79quafilzSKi0DSzQN7kon9vngnWnImC3mYnMc_3bjDNQA50PzwIBYYyl9z-nP6wIT4U3tUnq2msiU8h9KdiaxXs53ooXGuXfsjjhb8UmGC8JmsZcD1rphGfzvwYCTsYErMjqI_hSAZwhm0_I7oFh76FopP81YGTv24yUJjl2012V2InJukEyhKN5jzJzbKBoB61w3Odj0BJZ4vNumel_vP367fA_ZchP2YFf088WB4-UFPJTBSS1rs8MMx4KGmHRjAiGAAQxwIgCpDC-8TmYxvvgor0UhRqPs43MEU-DLmBjBJwpW2wWW4z2geZ8VBgbxqQEvSizLnqoImy6S8j7HmMzLacYs05tLjLstWXHfqu3SzviojCJzQKmEB83EH6lO8BnUArsJevcD3y4gQg7wXZ_CdCKPbYWHS3g6VVQFVRsUuvVa2bj9K-jDzLbClbHX9DczZAIclneqz4MX1DoaIrmhyi-0qBjo', 'active', '1795953604487', '1795953604487', NULL),
('2', 'pr20261129sv77e', 'ed25519', 'sv3cgghHm1+ApdZa+0TyTX2ZfdNMUQqoU++fdZkiOXk=', 'AXiIUgwocevU277uKzRHjYMD2665h4Ffe6se2Y0xBE0w28gtT4kDyqEsQL-zyyjqr-1N_Jp4ajvql0pDR583D7XXmJ1b1zuppCVzVYQ', 'active', '1795953604487', '1795953604487', NULL);
INSERT INTO reputation (account_id, hour, slot, emails, bounces, complaints, proven_bounces, proven_complaints) VALUES
('1', '498876', '16', '2', '0', '0', '0', '0'),
('1', '498876', '46', '1', '0', '0', '0', '0'),
('1', '498876', '21', '0', '1', '1', '1', '1');
INSERT INTO evidence (account_id, kind, source, at) VALUES
('1', 'bounce', 'example.com', '1795953608754'),
('1', 'complaint', 'example.com', '1795953608754');
INSERT INTO complainant (account_id, recipient, at) VALUES
('1', 'complains@example.com', '1795953608754');
INSERT INTO node (name, roles, version, started_at, seen_at, alive_until, refused_reports, delivery) VALUES
('node-gone', 'api,deliver', '0.2.0', '1795953608883', '1795953608883', '1795953623883', NULL, NULL);
INSERT INTO throttle (account_id, tokens, per_second, burst, at) VALUES
('2', '9', '5', '10', '1795953608864.5188');
INSERT INTO feedback (id, digest, at, source, mail_id, reason, summary, raw) VALUES
('1', '4d6723e5e454779e2bd12b4e2a40e2224a5064842a954efdf7031f396f43a485', '1795953606965', 'smtp', '01a2272d-4083-7000-b9db-d08655eb0a4c', NULL, NULL, NULL),
('2', 'b23a6a8439c0dde5515893e7c90c1e3233b8616e634470f20dc4928bcf3609bc', '1795953606965', 'smtp', '01a2272d-3966-7000-b139-b8fa0a767a5a', 'the message contains no report', 'from <>: Undelivered mail', 'U3ViamVjdDogVW5kZWxpdmVyZWQNCg0KTm90IGRlbGl2ZXJlZC4='),
('3', '8cd10b62e2330660505318ebf9c74b9535061b58352c39047491f576f7e1a297', '1795953608754', 'ses', '01a2272d-4083-7000-b9db-d08655eb0a4c', NULL, NULL, NULL),
('4', '5d08b02d678fc068788ca5ade565148e494083821ac8d1bce4c3fba092bc634e', '1795953608754', 'ses', '01a2272d-4816-7000-834d-ec24b183db05', NULL, NULL, NULL);
INSERT INTO pending_report (digest, received_at, due_at, report) VALUES
('f408830bcc7fab370819172244aa32e3ba66a848835911c02629d9a4dff77992', '1795953608754', '1795953609004', '{"messageRef":{"id":"01a2272d-4794-7000-817a-6993ceeed169"},"events":[{"kind":"bounce","permanent":true,"failure":{"class":"hard","category":"mailbox-unknown"},"recipient":null,"alias":null,"evidence":{"status":"5.1.1","diagnostic":"no such user","reportingHost":"mx.example.com"}}],"source":"ses","digest":"f408830bcc7fab370819172244aa32e3ba66a848835911c02629d9a4dff77992","at":1795953608754,"summary":"from <>: Undelivered mail","isFinal":false,"isProviderEvent":true}');
INSERT INTO provider_reference (reference, id, at) VALUES
('ses-1', '01a2272d-4816-7000-834d-ec24b183db05', '1795953608737');
INSERT INTO audit (id, at, who, action, subject, before, after) VALUES
('1', '1795953602843', 'cli:root', 'webhook.create', 'wh_1', NULL, '{"url":"http://127.0.0.1:36789/","account":null,"name":"the shop","events":["message.accepted","message.delivered","message.confirmed","message.deferred","message.bounced","message.complained","message.suppressed","message.expired","message.cancelled","message.uncertain","domain.authenticated","domain.failing","account.warned","account.locked","account.unlocked","suppression.added","suppression.removed","webhook.disabled"],"disabled":null}'),
('2', '1795953602925', 'cli:root', 'webhook.create', 'wh_2', NULL, '{"url":"http://127.0.0.1:36789/","account":"default","name":null,"events":["message.delivered"],"disabled":null}'),
('3', '1795953603031', 'cli:root', 'webhook.rotate', 'wh_1', '{"url":"http://127.0.0.1:36789/","account":null,"name":"the shop","events":["message.accepted","message.delivered","message.confirmed","message.deferred","message.bounced","message.complained","message.suppressed","message.expired","message.cancelled","message.uncertain","domain.authenticated","domain.failing","account.warned","account.locked","account.unlocked","suppression.added","suppression.removed","webhook.disabled"],"disabled":null}', '{"url":"http://127.0.0.1:36789/","account":null,"name":"the shop","events":["message.accepted","message.delivered","message.confirmed","message.deferred","message.bounced","message.complained","message.suppressed","message.expired","message.cancelled","message.uncertain","domain.authenticated","domain.failing","account.warned","account.locked","account.unlocked","suppression.added","suppression.removed","webhook.disabled"],"disabled":null}'),
('4', '1795953603221', 'cli:root', 'account.create', 'acme', NULL, '{"limits":{"volume":1000,"volumeExpiresAt":null,"rate":{"limit":100,"periodMs":3600000},"throttle":{"perSecond":5,"burst":5}},"locked":null,"thresholds":{"bounceRate":0.1,"complaintRate":0.0015},"onReputation":"lock","sesConfigurationSet":null}'),
('5', '1795953603344', 'cli:root', 'key.create', 'acme', NULL, '{"id":"key_2","name":"the shop","prefix":"pr_68DmXNC","expiresAt":1803729603343,"revokedAt":null}'),
('6', '1795953603444', 'cli:root', 'key.create', 'acme', NULL, '{"id":"key_3","name":"gone","prefix":"pr_MhERg3q","expiresAt":null,"revokedAt":null}'),
('7', '1795953603535', 'cli:root', 'account.create', 'locked', NULL, '{"limits":{"volume":null,"volumeExpiresAt":null,"rate":null,"throttle":null},"locked":null,"thresholds":{"bounceRate":0.1,"complaintRate":0.0015},"onReputation":"lock","sesConfigurationSet":null}'),
('8', '1795953603588', 'cli:root', 'account.lock', 'locked', '{"limits":{"volume":null,"volumeExpiresAt":null,"rate":null,"throttle":null},"locked":null,"thresholds":{"bounceRate":0.1,"complaintRate":0.0015},"onReputation":"lock","sesConfigurationSet":null}', '{"limits":{"volume":null,"volumeExpiresAt":null,"rate":null,"throttle":null},"locked":"the invoice of October is open","thresholds":{"bounceRate":0.1,"complaintRate":0.0015},"onReputation":"lock","sesConfigurationSet":null}'),
('9', '1795953604067', 'cli:root', 'domain.add', 'shop.example', NULL, '{"status":"pending","subdomains":false,"returnPath":null,"keys":["pr20261129t9bwa active","pr20261129t9bwe active"]}'),
('10', '1795953604212', 'cli:root', 'domain.update', 'shop.example', '{"status":"pending","subdomains":false,"returnPath":null,"keys":["pr20261129t9bwa active","pr20261129t9bwe active"]}', '{"status":"authenticated","subdomains":false,"returnPath":null,"keys":["pr20261129t9bwa active","pr20261129t9bwe active"]}'),
('11', '1795953604335', 'cli:root', 'domain.set', 'shop.example', '{"status":"authenticated","subdomains":false,"returnPath":null,"keys":["pr20261129t9bwa active","pr20261129t9bwe active"]}', '{"status":"authenticated","subdomains":false,"returnPath":{"name":"bounces.shop.example","isVerified":false},"keys":["pr20261129t9bwa active","pr20261129t9bwe active"]}'),
('12', '1795953604651', 'cli:root', 'domain.add', 'pending.example', NULL, '{"status":"pending","subdomains":false,"returnPath":null,"keys":["pr20261129sv77a active","pr20261129sv77e active"]}'),
('13', '1795953604819', 'cli:root', 'suppression.add', 'default', NULL, '{"added":1,"addresses":["gone@example.com"]}'),
('14', '1795953604880', 'cli:root', 'suppression.add', 'acme', NULL, '{"added":1,"addresses":["left@example.org"]}'),
('15', '1795953607229', 'cli:root', 'token.create', 'ci', NULL, '{"scope":"full","expiresAt":null}'),
('16', '1795953607387', 'cli:root', 'inbox.add-rule', 'slow.example.com', NULL, '{"answer":"451 Try again later","times":1000,"expiresAt":1796040007386}'),
('17', '1795953608535', 'cli:root', 'message.cancel', '01a2272d-4699-7000-9cd4-131cf90302fa', '{"state":"queued","dueAt":1795953661043}', '{"state":"cancelled","dueAt":null}'),
('18', '1795953609013', 'cli:root', 'key.revoke', 'key_3', NULL, '{"id":"key_3","name":"gone","prefix":"pr_MhERg3q","expiresAt":null,"revokedAt":1795953609013}');
INSERT INTO operator_token (id, name, prefix, hash, created_at, expires_at, revoked_at, last_used_at) VALUES
('1', 'ci', 'po_wwQ5fzG', '06dccdab0982a5b9c697d00bf0cbb588c0c7796290147e01366a781231cd710c', '1795953607229', NULL, NULL, NULL);
INSERT INTO ended_session (hash, until) VALUES
('3f3af1ecebbd1410ab417ec0d27bbfcb5d340e177ae159b59fc8626c2dfd9175', '1796040008595');
INSERT INTO traffic (span, at, node, accepted, delivered, deferred, bounced, complained, suppressed, expired, ended, alarmed, latencies, confirmed, confirmations, bounces) VALUES
('60000', '1795953600000', 'vm-31783-e9715e', '3', '2', '0', '0', '0', '1', '0', '3', '0', '70:1 48:1', '0', '', ''),
('3600000', '1795953600000', 'vm-31783-e9715e', '3', '2', '0', '0', '0', '1', '0', '3', '0', '70:1 48:1', '0', '', ''),
('60000', '1795953600000', 'command-264200c0-aee8-4858-8106-189a5b801e92', '0', '0', '0', '0', '0', '0', '0', '1', '0', '', '0', '', ''),
('3600000', '1795953600000', 'command-264200c0-aee8-4858-8106-189a5b801e92', '0', '0', '0', '0', '0', '0', '0', '1', '0', '', '0', '', ''),
('60000', '1795953600000', 'vm-31783-c20e25', '2', '0', '2', '0', '0', '0', '0', '0', '0', '', '0', '', ''),
('3600000', '1795953600000', 'vm-31783-c20e25', '2', '0', '2', '0', '0', '0', '0', '0', '0', '', '0', '', '');
INSERT INTO deliverability (span, at, series, node, counts) VALUES
('300000', '1795953600000', 'provider', 'vm-31783-e9715e', '[["none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'recipient-domain', 'vm-31783-e9715e', '[["example.com",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'account', 'vm-31783-e9715e', '[["1",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'sending-domain', 'vm-31783-e9715e', '[["1/shop.example",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'account/provider', 'vm-31783-e9715e', '[["1/none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'account/recipient-domain', 'vm-31783-e9715e', '[["1/example.com",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'sending-domain/provider', 'vm-31783-e9715e', '[["1/shop.example/none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'provider', 'vm-31783-e9715e', '[["none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'recipient-domain', 'vm-31783-e9715e', '[["example.com",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'account', 'vm-31783-e9715e', '[["1",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'sending-domain', 'vm-31783-e9715e', '[["1/shop.example",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'account/provider', 'vm-31783-e9715e', '[["1/none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'account/recipient-domain', 'vm-31783-e9715e', '[["1/example.com",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'sending-domain/provider', 'vm-31783-e9715e', '[["1/shop.example/none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'provider', 'vm-31783-e9715e', '[["none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'recipient-domain', 'vm-31783-e9715e', '[["example.com",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'account', 'vm-31783-e9715e', '[["1",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'sending-domain', 'vm-31783-e9715e', '[["1/shop.example",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'account/provider', 'vm-31783-e9715e', '[["1/none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'account/recipient-domain', 'vm-31783-e9715e', '[["1/example.com",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'sending-domain/provider', 'vm-31783-e9715e', '[["1/shop.example/none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'provider', 'vm-31783-e9715e', '[["none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'recipient-domain', 'vm-31783-e9715e', '[["example.com",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'account', 'vm-31783-e9715e', '[["1",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'sending-domain', 'vm-31783-e9715e', '[["1/shop.example",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'account/provider', 'vm-31783-e9715e', '[["1/none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'account/recipient-domain', 'vm-31783-e9715e', '[["1/example.com",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'sending-domain/provider', 'vm-31783-e9715e', '[["1/shop.example/none",[3,2,0,0,2,0,0,0,0,0],"70:1 48:1",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'provider', 'vm-31783-c20e25', '[["unknown",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'recipient-domain', 'vm-31783-c20e25', '[["example.com",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'account', 'vm-31783-c20e25', '[["1",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'sending-domain', 'vm-31783-c20e25', '[["1/shop.example",[1,0,0,1,0,0,0,0,0,0],"",""],["1/example.org",[1,0,0,1,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'account/provider', 'vm-31783-c20e25', '[["1/unknown",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'account/recipient-domain', 'vm-31783-c20e25', '[["1/example.com",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('300000', '1795953600000', 'sending-domain/provider', 'vm-31783-c20e25', '[["1/shop.example/unknown",[1,0,0,1,0,0,0,0,0,0],"",""],["1/example.org/unknown",[1,0,0,1,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'provider', 'vm-31783-c20e25', '[["unknown",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'recipient-domain', 'vm-31783-c20e25', '[["example.com",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'account', 'vm-31783-c20e25', '[["1",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'sending-domain', 'vm-31783-c20e25', '[["1/shop.example",[1,0,0,1,0,0,0,0,0,0],"",""],["1/example.org",[1,0,0,1,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'account/provider', 'vm-31783-c20e25', '[["1/unknown",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'account/recipient-domain', 'vm-31783-c20e25', '[["1/example.com",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('3600000', '1795953600000', 'sending-domain/provider', 'vm-31783-c20e25', '[["1/shop.example/unknown",[1,0,0,1,0,0,0,0,0,0],"",""],["1/example.org/unknown",[1,0,0,1,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'provider', 'vm-31783-c20e25', '[["unknown",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'recipient-domain', 'vm-31783-c20e25', '[["example.com",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'account', 'vm-31783-c20e25', '[["1",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'sending-domain', 'vm-31783-c20e25', '[["1/shop.example",[1,0,0,1,0,0,0,0,0,0],"",""],["1/example.org",[1,0,0,1,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'account/provider', 'vm-31783-c20e25', '[["1/unknown",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'account/recipient-domain', 'vm-31783-c20e25', '[["1/example.com",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('21600000', '1795953600000', 'sending-domain/provider', 'vm-31783-c20e25', '[["1/shop.example/unknown",[1,0,0,1,0,0,0,0,0,0],"",""],["1/example.org/unknown",[1,0,0,1,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'provider', 'vm-31783-c20e25', '[["unknown",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'recipient-domain', 'vm-31783-c20e25', '[["example.com",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'account', 'vm-31783-c20e25', '[["1",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'sending-domain', 'vm-31783-c20e25', '[["1/shop.example",[1,0,0,1,0,0,0,0,0,0],"",""],["1/example.org",[1,0,0,1,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'account/provider', 'vm-31783-c20e25', '[["1/unknown",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'account/recipient-domain', 'vm-31783-c20e25', '[["1/example.com",[2,0,0,2,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]'),
('86400000', '1795910400000', 'sending-domain/provider', 'vm-31783-c20e25', '[["1/shop.example/unknown",[1,0,0,1,0,0,0,0,0,0],"",""],["1/example.org/unknown",[1,0,0,1,0,0,0,0,0,0],"",""],["",[0,0,0,0,0,0,0,0,0,0],"",""]]');
INSERT INTO mailbox_provider (domain, provider, looked_up_at) VALUES
('example.com', 'example', '1795953608595');
INSERT INTO search (id, terms) VALUES
('01a2272d-3966-7000-b139-b8fa0a767a5a', '''1a1'' ''1f@shop.example'' ''1fexample'' ''1fshop'' ''1sgrusse'' ''1s😀'' ''1t@example.com'' ''1tcom'' ''1texample'' ''1trita'''),
('01a2272d-3a19-7000-95af-32175e9bf2d6', '''1a1'' ''1f@shop.example'' ''1fexample'' ''1fshop'' ''1ssuccess'' ''1sto'' ''1t@simulator.postrider.test'' ''1tpostrider'' ''1tsimulator'' ''1tsuccess'' ''1ttest'''),
('01a2272d-3ab7-7000-ab81-c505a2732553', '''1a1'' ''1f@shop.example'' ''1fexample'' ''1fshop'' ''1sbounce'' ''1sto'' ''1t@simulator.postrider.test'' ''1tbounce'' ''1tpostrider'' ''1tsimulator'' ''1ttest'''),
('01a2272d-3b93-7000-b755-bf288225f906', '''1a1'' ''1f@shop.example'' ''1fexample'' ''1fshop'' ''1scomplaint'' ''1sto'' ''1t@simulator.postrider.test'' ''1tcomplaint'' ''1tpostrider'' ''1tsimulator'' ''1ttest'''),
('01a2272d-3c51-7000-ae57-167afdc389e5', '''1a1'' ''1f@shop.example'' ''1fexample'' ''1fshop'' ''1ssuppressed'' ''1sto'' ''1t@simulator.postrider.test'' ''1tpostrider'' ''1tsimulator'' ''1tsuppressed'' ''1ttest'''),
('01a2272d-3cea-7000-936d-17b12103fe02', '''1a1'' ''1f@shop.example'' ''1fexample'' ''1fshop'' ''1sgone'' ''1sto'' ''1t@example.com'' ''1tcom'' ''1texample'' ''1tgone'''),
('01a2272d-3e11-7000-98b7-50194694ebcf', '''1a2'' ''1f@shop.example'' ''1fexample'' ''1fshop'' ''1ssuccess'' ''1sto'' ''1t@simulator.postrider.test'' ''1tpostrider'' ''1tsimulator'' ''1tsuccess'' ''1ttest'''),
('01a2272d-4083-7000-b9db-d08655eb0a4c', '''1a1'' ''1f@shop.example'' ''1fexample'' ''1fshop'' ''1snobody'' ''1sto'' ''1t@example.com'' ''1tcom'' ''1texample'' ''1tnobody'''),
('01a2272d-45d5-7000-87c9-b2f0624f028e', '''1a1'' ''1f@shop.example'' ''1fexample'' ''1fshop'' ''1squeued'' ''1t@example.com'' ''1tcom'' ''1texample'' ''1tqueued'''),
('01a2272d-4657-7000-88e0-61d78260c2b9', '''1a2'' ''1f@acme.example'' ''1fa'' ''1facme'' ''1fexample'' ''1sdeferred'' ''1t@simulator.postrider.test'' ''1tdefer'' ''1tpostrider'' ''1tsimulator'' ''1ttest'''),
('01a2272d-4699-7000-9cd4-131cf90302fa', '''1a1'' ''1f@example.org'' ''1fexample'' ''1forg'' ''1fshop'' ''1scancelled'' ''1t@example.com'' ''1tcancelled'' ''1tcom'' ''1texample'''),
('01a2272d-4794-7000-817a-6993ceeed169', '''1a1'' ''1f@example.org'' ''1fexample'' ''1forg'' ''1fshop'' ''1ssending'' ''1t@example.com'' ''1tcom'' ''1texample'' ''1tsending'''),
('01a2272d-4794-7001-a694-e7e3dbdcee75', '''1a1'' ''1f@example.org'' ''1fexample'' ''1forg'' ''1fshop'' ''1suncertain'' ''1t@example.com'' ''1tcom'' ''1texample'' ''1tuncertain'''),
('01a2272d-4794-7002-9fa9-bb4802fea7a1', '''1a1'' ''1f@example.org'' ''1fexample'' ''1forg'' ''1fshop'' ''1sexpired'' ''1t@example.com'' ''1tcom'' ''1texample'' ''1texpired'''),
('01a2272d-4816-7000-834d-ec24b183db05', '''1a1'' ''1f@example.org'' ''1fexample'' ''1forg'' ''1fshop'' ''1sreferenced'' ''1t@example.com'' ''1tcom'' ''1tcomplains'' ''1texample''');
INSERT INTO search_block (number, first, past, mails, checked) VALUES
('1', '00000000-0000-0000-0000-000000000000', '01a2272e-31f3-7000-acb7-97e92aeae526', '15', '00000000-0000-0000-0000-000000000000');
DELETE FROM running_time;
INSERT INTO running_time (one, ran_ms, seen_at, stretches) VALUES
('1', '1795953608593', '1795953608593', '[{"fromMs":0,"aheadMs":0,"leastAt":0}]');
INSERT INTO webhook (id, url, sealed_url, account_id, name, events, sealed, previous_sealed, previous_until, disabled_reason, disabled_at, failing_since, last_success_at, created_at, start, removed) VALUES
('1', 'http://127.0.0.1:36789/', 'ARKQ5dom49WFHa9h9DEODCJkgDLITFt4qm3z8swenmdY_A7olVFmViAg9IVS8ea7g_SC7g', NULL, 'the shop', '262143', 'AdYw9NtUFMpnfMhlTzmTs0ywlwLxDxZW-Qj8sBJTBb2zdERKK955bri_YM4IkFr-50BLQb-HqdgXRY32MvI4ENz-tsn5m1rtX88zDdIoTw', 'Aaoh31yWnqOtzi3QBfdhew2vKnjYQ0e75oBrQFJVdX59bo_naQB_tKKrCfKb6TNjSAfEf5P1HyO2Pu7Cf-dV5RvthVRE0j62m7LOeSCvfg', '1796040003031', 'gone', '1795953606024', '1795953605886', '1795953603981', '1795953602842', '0', 'false'),
('2', 'http://127.0.0.1:36789/', 'AV1zLYmoHZZMWqw9TVsthWfozTXF2B6D2-Zm9vjW2AAp5d7iareTRxtCtecgOcMRp787YA', '1', NULL, '2', 'AVf5xB-nDosVFpeZkYXwwNp47YEZoRrMrOne3t98RYIjPjd19nlz7JdlgYIzkeO3NhZO-ITfhRaEgWbrXIA7V_SORKn2aJULdVTc9v5F-w', NULL, NULL, NULL, NULL, NULL, '1795953606159', '1795953602925', '0', 'false'),
('-1', '', 'mailto:ops@example.com', NULL, NULL, '0', '', NULL, NULL, NULL, NULL, NULL, NULL, '1795953608595', '0', 'false');
DELETE FROM webhook_subscription;
INSERT INTO webhook_subscription (one, events) VALUES
('true', '262143');
INSERT INTO outbox ("position", xid, type, account_id, message_id, n, sequence, state, suppressed, at, data, webhook_id) VALUES
('31', '900', 'message.cancelled', '1', '01a2272d-4699-7000-9cd4-131cf90302fa', '14', NULL, 'cancelled', 'false', NULL, NULL, NULL),
('32', '907', 'message.accepted', '1', '01a2272d-4794-7000-817a-6993ceeed169', NULL, '0', 'sending', 'false', NULL, NULL, NULL),
('33', '907', 'message.accepted', '1', '01a2272d-4794-7001-a694-e7e3dbdcee75', NULL, '0', 'sending', 'false', NULL, NULL, NULL),
('34', '907', 'message.accepted', '1', '01a2272d-4794-7002-9fa9-bb4802fea7a1', NULL, '0', 'sending', 'false', NULL, NULL, NULL),
('35', '908', 'message.uncertain', '1', '01a2272d-4794-7001-a694-e7e3dbdcee75', '15', NULL, 'uncertain', 'false', NULL, NULL, NULL),
('36', '908', 'message.expired', '1', '01a2272d-4794-7002-9fa9-bb4802fea7a1', '16', NULL, 'expired', 'false', NULL, NULL, NULL),
('37', '909', 'message.accepted', '1', '01a2272d-4816-7000-834d-ec24b183db05', NULL, '0', 'sending', 'false', NULL, NULL, NULL),
('38', '910', 'message.delivered', '1', '01a2272d-4816-7000-834d-ec24b183db05', '17', NULL, 'delivered', 'false', NULL, NULL, NULL),
('39', '911', 'message.complained', '1', '01a2272d-4816-7000-834d-ec24b183db05', '19', NULL, 'complained', 'true', NULL, NULL, NULL),
('40', '911', 'suppression.added', '1', NULL, NULL, NULL, NULL, 'false', '1795953608754', '{"account" : "default", "address" : "complains@example.com", "reason" : "complaint", "source" : "01a2272d-4816-7000-834d-ec24b183db05"}', NULL);
INSERT INTO webhook_delivery (webhook_id, id, type, message_id, sequence, state, suppressed, at, data, status, due_at, owner, lease, attempt, attempts, created_at, ended_at) VALUES
('1', '01a2272d-3499-7000-8000-feb2fd95d4e7', 'account.locked', NULL, NULL, NULL, 'false', '1795953603588', '{"account":"locked","reason":"the invoice of October is open","figures":{"messages":0,"bounces":0,"complaints":0},"limit":{"bounceRate":0.1,"complaintRate":0.0015}}', 'delivered', NULL, NULL, '1', '1', '[{"at":1795953603868,"durationMs":110,"status":200,"error":null,"body":""}]', '1795953603737', '1795953603981'),
('1', '01a2272d-3930-7000-8000-f1a344040cfd', 'domain.authenticated', NULL, NULL, NULL, 'false', '1795953604212', '{"domain":"shop.example","account":"default","status":"authenticated","records":[{"purpose":"dkim","type":"TXT","name":"pr20261129t9bwa._domainkey.shop.example","found":"found","detail":"found"},{"purpose":"dkim","type":"TXT","name":"pr20261129t9bwe._domainkey.shop.example","found":"found","detail":"found"},{"purpose":"spf","type":"TXT","name":"bounces.host.example","found":"found","detail":"found"},{"purpose":"dmarc","type":"TXT","name":"_dmarc.shop.example","found":"found","detail":"found"},{"purpose":"return-path","type":"MX","name":"bounces.host.example","found":"missing","detail":"no MX record; publish 10 bounces.host.example"}]}', 'delivered', NULL, NULL, '1', '1', '[{"at":1795953605020,"durationMs":91,"status":200,"error":null,"body":""}]', '1795953604912', '1795953605113'),
('1', '01a2272d-3930-7000-8001-f1a344040cfd', 'suppression.added', NULL, NULL, NULL, 'false', '1795953604819', '{"account":"default","address":"gone@example.com","reason":"manual","source":null}', 'delivered', NULL, NULL, '1', '1', '[{"at":1795953605021,"durationMs":99,"status":200,"error":null,"body":""}]', '1795953604912', '1795953605131'),
('1', '01a2272d-3930-7000-8002-f1a344040cfd', 'suppression.added', NULL, NULL, NULL, 'false', '1795953604880', '{"account":"acme","address":"left@example.org","reason":"complaint","source":null}', 'delivered', NULL, NULL, '1', '1', '[{"at":1795953605022,"durationMs":122,"status":200,"error":null,"body":""}]', '1795953604912', '1795953605169'),
('1', '01a2272d-39d7-7000-8000-4d1ee0fa488e', 'message.accepted', '01a2272d-3966-7000-b139-b8fa0a767a5a', '0', 'sending', 'false', NULL, NULL, 'delivered', NULL, NULL, '1', '1', '[{"at":1795953605213,"durationMs":109,"status":200,"error":null,"body":""}]', '1795953605079', '1795953605356'),
('1', '01a2272d-3a8e-7000-8000-0dbb009097fb', 'message.accepted', '01a2272d-3a19-7000-95af-32175e9bf2d6', '0', 'sending', 'false', NULL, NULL, 'delivered', NULL, NULL, '1', '1', '[{"at":1795953605628,"durationMs":79,"status":200,"error":null,"body":""}]', '1795953605262', '1795953605713'),
('1', '01a2272d-3c0b-7000-8000-53895612b528', 'message.accepted', '01a2272d-3ab7-7000-ab81-c505a2732553', '0', 'sending', 'false', NULL, NULL, 'delivered', NULL, NULL, '1', '1', '[{"at":1795953605884,"durationMs":96,"status":200,"error":null,"body":""}]', '1795953605643', '1795953605982'),
('1', '01a2272d-3c0b-7000-8001-53895612b528', 'message.delivered', '01a2272d-3a19-7000-95af-32175e9bf2d6', '1', 'delivered', 'false', NULL, NULL, 'delivered', NULL, NULL, '1', '1', '[{"at":1795953605885,"durationMs":96,"status":200,"error":null,"body":""}]', '1795953605643', '1795953605982'),
('1', '01a2272d-3c0b-7000-8003-53895612b528', 'message.accepted', '01a2272d-3b93-7000-b755-bf288225f906', '0', 'queued', 'false', NULL, NULL, 'delivered', NULL, NULL, '1', '1', '[{"at":1795953605886,"durationMs":96,"status":200,"error":null,"body":""}]', '1795953605643', '1795953605982'),
('1', '01a2272d-3d3c-7000-8000-64d61c95c635', 'message.accepted', '01a2272d-3c51-7000-ae57-167afdc389e5', '0', 'suppressed', 'false', NULL, NULL, 'pending', '1795953605948', NULL, '0', '0', '[]', '1795953605948', NULL),
('1', '01a2272d-3d3c-7000-8001-64d61c95c635', 'message.suppressed', '01a2272d-3c51-7000-ae57-167afdc389e5', '1', 'suppressed', 'false', NULL, NULL, 'pending', '1795953605948', NULL, '0', '0', '[]', '1795953605948', NULL),
('1', '01a2272d-3c0b-7000-8004-53895612b528', 'message.bounced', '01a2272d-3ab7-7000-ab81-c505a2732553', '1', 'bounced', 'false', NULL, NULL, 'pending', '1795953610986', NULL, '1', '1', '[{"at":1795953605886,"durationMs":127,"status":410,"error":"status 410","body":""}]', '1795953605643', NULL),
('2', '01a2272d-3c0b-7000-8002-53895612b528', 'message.delivered', '01a2272d-3a19-7000-95af-32175e9bf2d6', '1', 'delivered', 'false', NULL, NULL, 'delivered', NULL, NULL, '1', '1', '[{"at":1795953605886,"durationMs":136,"status":200,"error":null,"body":""}]', '1795953605643', '1795953606159'),
('1', '01a2272d-3e12-7000-8000-967d729cc942', 'message.delivered', '01a2272d-3b93-7000-b755-bf288225f906', '1', 'delivered', 'false', NULL, NULL, 'pending', '1795953606162', NULL, '0', '0', '[]', '1795953606162', NULL),
('1', '01a2272d-3e12-7000-8002-967d729cc942', 'message.complained', '01a2272d-3b93-7000-b755-bf288225f906', '2', 'complained', 'false', NULL, NULL, 'pending', '1795953606162', NULL, '0', '0', '[]', '1795953606162', NULL),
('1', '01a2272d-3e12-7000-8003-967d729cc942', 'message.accepted', '01a2272d-3cea-7000-936d-17b12103fe02', '0', 'suppressed', 'false', NULL, NULL, 'pending', '1795953606162', NULL, '0', '0', '[]', '1795953606162', NULL),
('1', '01a2272d-3e12-7000-8004-967d729cc942', 'message.suppressed', '01a2272d-3cea-7000-936d-17b12103fe02', '1', 'suppressed', 'false', NULL, NULL, 'pending', '1795953606162', NULL, '0', '0', '[]', '1795953606162', NULL),
('1', '01a2272d-3e12-7000-8005-967d729cc942', 'message.delivered', '01a2272d-3966-7000-b139-b8fa0a767a5a', '1', 'delivered', 'false', NULL, NULL, 'pending', '1795953606162', NULL, '0', '0', '[]', '1795953606162', NULL),
('2', '01a2272d-3e12-7000-8001-967d729cc942', 'message.delivered', '01a2272d-3b93-7000-b755-bf288225f906', '1', 'delivered', 'false', NULL, NULL, 'delivered', NULL, NULL, '1', '1', '[{"at":1795953606301,"durationMs":8,"status":200,"error":null,"body":""}]', '1795953606162', '1795953606316'),
('2', '01a2272d-3e12-7000-8006-967d729cc942', 'message.delivered', '01a2272d-3966-7000-b139-b8fa0a767a5a', '1', 'delivered', 'false', NULL, NULL, 'delivered', NULL, NULL, '1', '1', '[{"at":1795953606302,"durationMs":8,"status":200,"error":null,"body":""}]', '1795953606162', '1795953606316'),
('1', '01a2272d-3eb8-7000-8000-7657a22d8e03', 'message.accepted', '01a2272d-3e11-7000-98b7-50194694ebcf', '0', 'sending', 'false', NULL, NULL, 'pending', '1795953606328', NULL, '0', '0', '[]', '1795953606328', NULL),
('1', '01a2272d-3eb8-7000-8001-7657a22d8e03', 'message.delivered', '01a2272d-3e11-7000-98b7-50194694ebcf', '1', 'delivered', 'false', NULL, NULL, 'pending', '1795953606328', NULL, '0', '0', '[]', '1795953606328', NULL),
('1', '01a2272d-40b8-7000-8000-e69e4ebdead8', 'message.accepted', '01a2272d-4083-7000-b9db-d08655eb0a4c', '0', 'sending', 'false', NULL, NULL, 'pending', '1795953606840', NULL, '0', '0', '[]', '1795953606840', NULL),
('1', '01a2272d-40fb-7000-8000-bab9e29463e1', 'message.delivered', '01a2272d-4083-7000-b9db-d08655eb0a4c', '1', 'delivered', 'false', NULL, NULL, 'pending', '1795953606907', NULL, '0', '0', '[]', '1795953606907', NULL),
('2', '01a2272d-40fb-7000-8001-bab9e29463e1', 'message.delivered', '01a2272d-4083-7000-b9db-d08655eb0a4c', '1', 'delivered', 'false', NULL, NULL, 'delivered', NULL, NULL, '1', '1', '[{"at":1795953606944,"durationMs":14,"status":200,"error":null,"body":""}]', '1795953606907', '1795953606959'),
('1', '01a2272d-4569-7000-8000-0511cbd9c1c2', 'message.bounced', '01a2272d-4083-7000-b9db-d08655eb0a4c', '2', 'bounced', 'true', NULL, NULL, 'pending', '1795953608041', NULL, '0', '0', '[]', '1795953608041', NULL),
('1', '01a2272d-4569-7000-8001-0511cbd9c1c2', 'suppression.added', NULL, NULL, NULL, 'false', '1795953606965', '{"account" : "default", "address" : "nobody@example.com", "reason" : "bounce", "source" : "01a2272d-4083-7000-b9db-d08655eb0a4c"}', 'pending', '1795953608041', NULL, '0', '0', '[]', '1795953608041', NULL),
('1', '01a2272d-464c-7000-8000-9c114327d978', 'message.accepted', '01a2272d-45d5-7000-87c9-b2f0624f028e', '0', 'sending', 'false', NULL, NULL, 'pending', '1795953608268', NULL, '0', '0', '[]', '1795953608268', NULL),
('1', '01a2272d-46a8-7000-8000-ad2dd4577202', 'message.deferred', '01a2272d-45d5-7000-87c9-b2f0624f028e', '1', 'queued', 'false', NULL, NULL, 'pending', '1795953608360', NULL, '0', '0', '[]', '1795953608360', NULL),
('1', '01a2272d-46a8-7000-8001-ad2dd4577202', 'message.accepted', '01a2272d-4657-7000-88e0-61d78260c2b9', '0', 'sending', 'false', NULL, NULL, 'pending', '1795953608360', NULL, '0', '0', '[]', '1795953608360', NULL),
('1', '01a2272d-46a8-7000-8002-ad2dd4577202', 'message.deferred', '01a2272d-4657-7000-88e0-61d78260c2b9', '1', 'queued', 'false', NULL, NULL, 'pending', '1795953608360', NULL, '0', '0', '[]', '1795953608360', NULL),
('1', '01a2272d-46cd-7000-8000-6bf7b227cc11', 'message.accepted', '01a2272d-4699-7000-9cd4-131cf90302fa', '0', 'sending', 'false', NULL, NULL, 'pending', '1795953608397', NULL, '0', '0', '[]', '1795953608397', NULL),
('1', '01a2272d-46e6-7000-8000-23696d2ff8f7', 'message.deferred', '01a2272d-4699-7000-9cd4-131cf90302fa', '1', 'queued', 'false', NULL, NULL, 'pending', '1795953608422', NULL, '0', '0', '[]', '1795953608422', NULL),
('-1', '01990000-0000-4000-8000-000000000001', 'attention.changed', NULL, NULL, NULL, 'false', '1795953608595', '{}', 'pending', '1795953608595', NULL, '0', '0', '[]', '1795953608595', NULL);
DELETE FROM attention_check;
INSERT INTO attention_check (one, round, checked_at, sequence, notified_at) VALUES
('true', '1', '1795953608595', '1', '1795953608595');
INSERT INTO inbox_rule (id, target, answer, times, used, created_at, expires_at, last_message, last_recipient, last_used_at) VALUES
('1', 'slow.example.com', '{"kind":"reply","code":451,"enhanced":null,"text":"Try again later"}', '1000', '0', '1795953607386', '1796040007386', NULL, NULL, NULL);
SELECT setval('account_id_seq', 3);
SELECT setval('api_key_id_seq', 3);
SELECT setval('event_n', 19);
SELECT setval('domain_id_seq', 2);
SELECT setval('feedback_id_seq', 4);
SELECT setval('audit_id_seq', 18);
SELECT setval('operator_token_id_seq', 1);
SELECT setval('webhook_id_seq', 2);
SELECT setval('outbox_position_seq', 40);
SELECT setval('inbox_rule_id_seq', 1);
