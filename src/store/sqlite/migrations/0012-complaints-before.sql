-- Adds complainants for complaints that counted before the table existed. Each such complaint was stored as a
-- suppression with the id of the message. Without these rows, the next complaint of the recipient within 7 days would
-- count again. Older rows are purged like all other rows. The expression is that of `toComplainant` in
-- model/account.ts.
INSERT INTO complainant (account_id, recipient, at)
SELECT account_id,
  CASE WHEN recipient NOT LIKE '"%' AND instr(recipient, '+') > 1 AND instr(recipient, '+') < instr(recipient, '@')
    THEN substr(recipient, 1, instr(recipient, '+') - 1) || substr(recipient, instr(recipient, '@'))
    ELSE recipient END,
  max(at)
FROM suppression
WHERE reason = 'complaint' AND account_id <> 0 AND source IS NOT NULL
GROUP BY 1, 2
ON CONFLICT (account_id, recipient) DO NOTHING;
