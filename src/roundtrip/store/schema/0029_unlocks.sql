-- A rule may be about removals of active liquidity.
ALTER TABLE accounts.rule DROP CONSTRAINT rule_verb_check, ADD CONSTRAINT rule_verb_check
    CHECK (verb IN ('buying', 'selling', 'launching', 'graduating', 'moving', 'draining', 'removing'));

-- When locked liquidity can be withdrawn, as a token's newest reading found it: those of a token are replaced together.
-- manager, number: the NFT of a position manager; number 0: none. holder: who can withdraw it then. share_bps: of its
-- pool's active liquidity; NULL: not known. read_number: the block of the reading.
CREATE TABLE facts.unlock (
    token       bytea   NOT NULL CHECK (octet_length(token) = 20),
    manager     bytea   NOT NULL CHECK (octet_length(manager) = 20),
    number      numeric NOT NULL,
    holder      bytea   NOT NULL CHECK (octet_length(holder) = 20),
    at_s        int     NOT NULL,
    share_bps   int,
    read_number int     NOT NULL,
    PRIMARY KEY (token, manager, number, holder, at_s)
);
CREATE INDEX unlock_by_time ON facts.unlock (at_s);

-- An alert of an unlock is not about a block: at_s is when it unlocks, wallet who can withdraw then.
ALTER TABLE accounts.alert DROP CONSTRAINT alert_kind_check, ADD CONSTRAINT alert_kind_check
    CHECK (kind IN ('rule', 'follow', 'bag_guard', 'unlock', 'service', 'test'));
CREATE UNIQUE INDEX alert_unlock_once ON accounts.alert (account_id, token, wallet, at_s) WHERE kind = 'unlock';
CREATE INDEX alert_unlock_by_time ON accounts.alert (at_s) WHERE kind = 'unlock';
