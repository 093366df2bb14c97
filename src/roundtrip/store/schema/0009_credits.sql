-- Calls past the day's limit that were paid for. Conserved at every moment, for each mite: what its payments credited =
-- credits + its holds + spent.

-- Where payments went or go, from the block after from_block on. to_block: the newest when another took its place, which
-- ends it a while later; null: none did.
CREATE TABLE accounts.pay_to (
    address    bytea  PRIMARY KEY CHECK (octet_length(address) = 20),
    from_block bigint NOT NULL,
    to_block   bigint
);

-- What a mite's own wallet paid in one transaction, once for ever. amount_raw: base units of usdg.
CREATE TABLE accounts.payment (
    tx_hash      bytea          NOT NULL CHECK (octet_length(tx_hash) = 32),
    mite_id      bigint         NOT NULL REFERENCES accounts.mite,
    amount_raw   numeric(78, 0) NOT NULL CHECK (amount_raw > 0),
    credited     bigint         NOT NULL CHECK (credited > 0),
    block_number bigint         NOT NULL,
    block_hash   bytea          NOT NULL CHECK (octet_length(block_hash) = 32),
    redeemed_at  timestamptz    NOT NULL,
    PRIMARY KEY (tx_hash, mite_id)
);
CREATE INDEX payment_mite ON accounts.payment (mite_id);

-- A row for each mite that ever paid.
CREATE TABLE accounts.balance (
    mite_id bigint PRIMARY KEY REFERENCES accounts.mite,
    credits bigint NOT NULL CHECK (credits >= 0),
    spent   bigint NOT NULL DEFAULT 0 CHECK (spent >= 0)
);

-- A credit of a call that is not answered yet: spent once it is, else given back. until_ms, since 1970: from then on it is
-- nobody's call any more, because the process that had it is gone, and goes back.
CREATE TABLE accounts.hold (
    id       uuid   PRIMARY KEY,
    mite_id  bigint NOT NULL REFERENCES accounts.balance,
    until_ms bigint NOT NULL
);
CREATE INDEX hold_mite ON accounts.hold (mite_id);
