-- A summary of the history of a message, so that decisions on reports do not read the history. `facts` contains the bits of `getFacts`
-- in rules/feedback.ts, and `reports` the recorded reports by `formatReport`, one a line. Reports that are only counted
-- are in `further_reports`.
ALTER TABLE mail_request ADD COLUMN facts integer NOT NULL DEFAULT 0;
ALTER TABLE mail_request ADD COLUMN reports text;
ALTER TABLE mail_request ADD COLUMN further_reports integer NOT NULL DEFAULT 0;
