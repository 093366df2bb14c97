-- Accounts: small, backed up, never dropped, and made again from nothing.
CREATE SCHEMA accounts;

-- What only this service knows. name: nonce, from which the texts to sign are made.
CREATE TABLE accounts.secret (
    name  text  PRIMARY KEY,
    value bytea NOT NULL CHECK (octet_length(value) = 32)
);

-- A wallet that once showed that it is its own. keys_made: how many keys it ever made, which is part of the next text
-- to sign: what was signed once is of no use again.
CREATE TABLE accounts.mite (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    wallet      bytea       NOT NULL UNIQUE CHECK (octet_length(wallet) = 20),
    designation text        NOT NULL UNIQUE,
    is_agent    boolean     NOT NULL DEFAULT false,
    agent_name  text,
    keys_made   int         NOT NULL DEFAULT 0,
    made_at     timestamptz NOT NULL
);

-- hash: SHA-256 of the key, which nobody has but its owner. start: its first eight characters.
CREATE TABLE accounts.key (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mite_id    bigint      NOT NULL REFERENCES accounts.mite,
    hash       bytea       NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    start      text        NOT NULL,
    label      text        NOT NULL,
    made_at    timestamptz NOT NULL,
    revoked_at timestamptz
);
CREATE INDEX key_live ON accounts.key (mite_id) WHERE revoked_at IS NULL;

-- Calls of a mite in a day of UTC that count against its daily limit. granted: how many of those that came with the last
-- change had room.
CREATE TABLE accounts.day (
    mite_id bigint NOT NULL REFERENCES accounts.mite,
    day     date   NOT NULL,
    calls   int    NOT NULL CHECK (calls >= 0),
    granted int    NOT NULL,
    PRIMARY KEY (mite_id, day)
);

-- Calls of the last minute, by caller: "mite:" and its number, or an address. taken_ms: since 1970. calls: 1, or -1 where
-- a call is handed back. Each process holds its own in memory, and reads these when it starts.
CREATE TABLE accounts.call (
    caller   text     NOT NULL,
    taken_ms bigint   NOT NULL,
    calls    smallint NOT NULL
);
CREATE INDEX call_taken ON accounts.call (taken_ms);
