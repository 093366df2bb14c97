-- Gains of practice sells that do not count for the league: they are no part of eth_wei, and are never spent.
ALTER TABLE accounts.practice_account ADD COLUMN apart_wei numeric NOT NULL DEFAULT 0 CHECK (apart_wei >= 0);
