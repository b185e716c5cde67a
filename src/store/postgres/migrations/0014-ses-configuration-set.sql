-- The configuration set of the account's messages at Amazon SES, null for the one of the transport.
ALTER TABLE account ADD COLUMN ses_configuration_set text;
