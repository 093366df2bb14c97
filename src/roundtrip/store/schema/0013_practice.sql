-- Practice: pretend eth, traded at the chain's own prices. eth_wei is given_wei, less what buys paid, and what sells
-- brought; held_raw is what was bought, less what was sold and written off. No row: nothing was ever done.

-- given_wei: what it began with, and every gift. week_s: the Monday up to which gifts were looked at.
CREATE TABLE accounts.practice_account (
    mite_id   bigint  PRIMARY KEY REFERENCES accounts.mite,
    eth_wei   numeric NOT NULL CHECK (eth_wei >= 0),
    given_wei numeric NOT NULL CHECK (given_wei >= 0),
    week_s    bigint  NOT NULL
);

-- cost_wei: of what is held. slot_layout, slot_base: where the token keeps its balances; null: not known. bought_at: when
-- it was last bought. stuck_at: since when the chain would not have it sold.
CREATE TABLE accounts.practice_position (
    mite_id     bigint      NOT NULL REFERENCES accounts.practice_account,
    token       bytea       NOT NULL CHECK (octet_length(token) = 20),
    state       text        NOT NULL CHECK (state IN ('open', 'closed')),
    held_raw    numeric     NOT NULL CHECK (held_raw >= 0),
    cost_wei    numeric     NOT NULL CHECK (cost_wei >= 0),
    decimals    smallint    NOT NULL,
    slot_layout text        CHECK (slot_layout IN ('solidity', 'vyper', 'solady')),
    slot_base   numeric,
    opened_at   timestamptz NOT NULL,
    bought_at   timestamptz NOT NULL,
    stuck_at    timestamptz,
    PRIMARY KEY (mite_id, token),
    CHECK ((state = 'open') = (held_raw > 0)),
    CHECK (state = 'open' OR (cost_wei = 0 AND stuck_at IS NULL)),
    CHECK ((slot_layout IS NULL) = (slot_base IS NULL))
);
CREATE INDEX practice_position_open ON accounts.practice_position (mite_id) WHERE state = 'open';

-- Only ever added to. Buys and sells were priced at the block of that number and hash; a reorganisation changes none of
-- them. cost_wei: of a sell what that part had cost. sells_back: of a buy. counted: of a sell, for the league; why_not:
-- where it is not.
CREATE TABLE accounts.practice_trade (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mite_id      bigint      NOT NULL REFERENCES accounts.practice_account,
    token        bytea       CHECK (octet_length(token) = 20),
    side         text        NOT NULL CHECK (side IN ('buy', 'sell', 'gift', 'written_off')),
    token_raw    numeric     NOT NULL CHECK (token_raw >= 0),
    eth_wei      numeric     NOT NULL CHECK (eth_wei >= 0),
    cost_wei     numeric     NOT NULL CHECK (cost_wei >= 0),
    profit_wei   numeric,
    block_number int,
    block_hash   bytea       CHECK (octet_length(block_hash) = 32),
    venue        text,
    made_at      timestamptz NOT NULL,
    sells_back   text        CHECK (sells_back IN ('yes', 'no', 'unknown')),
    counted      boolean,
    why_not      text,
    CHECK ((side = 'gift') = (token IS NULL)),
    CHECK ((side IN ('buy', 'sell')) = (block_number IS NOT NULL)),
    CHECK ((block_number IS NULL) = (block_hash IS NULL)),
    CHECK ((block_number IS NULL) = (venue IS NULL)),
    CHECK ((side = 'buy') = (sells_back IS NOT NULL)),
    CHECK ((side = 'sell') = (counted IS NOT NULL))
);
CREATE INDEX practice_trade_newest ON accounts.practice_trade (mite_id, id DESC);
CREATE INDEX practice_trade_by_time ON accounts.practice_trade (mite_id, made_at);

-- Answers to requests that named themselves, kept seven days. key_hash: of the name; asked_hash: of tool and parameters.
CREATE TABLE accounts.practice_repeat (
    mite_id    bigint      NOT NULL REFERENCES accounts.practice_account,
    key_hash   bytea       NOT NULL CHECK (octet_length(key_hash) = 32),
    asked_hash bytea       NOT NULL CHECK (octet_length(asked_hash) = 32),
    answer     bytea       NOT NULL,
    made_at    timestamptz NOT NULL,
    PRIMARY KEY (mite_id, key_hash)
);
CREATE INDEX practice_repeat_by_time ON accounts.practice_repeat (made_at);
