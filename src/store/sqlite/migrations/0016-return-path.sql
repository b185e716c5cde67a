-- The domain of the envelope sender of a sending domain's messages. NULL: the return path of the installation.
ALTER TABLE domain ADD COLUMN return_path TEXT;
