-- Suppressions by domain, which is the text after the last @ of the address. sqlite/suppressions.ts uses the same
-- expression.
CREATE INDEX suppression_domain ON suppression
  (account_id, substr(recipient, length(rtrim(recipient, replace(recipient, '@', ''))) + 1), recipient);
