-- Suppressions by domain: what stands behind the last @ of the address. The expression is that of sqlite/suppressions.ts.
CREATE INDEX suppression_domain ON suppression
  (account_id, substr(recipient, length(rtrim(recipient, replace(recipient, '@', ''))) + 1), recipient);
