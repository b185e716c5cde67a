-- Suppressions by domain, which is the text after the last @ of the address.
CREATE INDEX suppression_domain ON suppression (account_id, split_part(recipient, '@', -1), recipient);
