-- Complaints that counted before there was a table of complainants: each was written as a suppression that names its
-- message. Without them the recipient's next complaint within 7 days would count once more. What is older is purged as
-- any other row is. The expression is `complainantOf` of model/reputation.ts.
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
