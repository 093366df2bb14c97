-- Who signed in to the pages has a key, too: one that only a cookie carries, that ends by itself, and that is none of the
-- few that a mite may make.
ALTER TABLE accounts.key ADD COLUMN kind text NOT NULL DEFAULT 'key' CHECK (kind IN ('key', 'session'));
ALTER TABLE accounts.key ADD COLUMN expires_at timestamptz;
