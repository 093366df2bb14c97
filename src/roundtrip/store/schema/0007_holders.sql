-- A token's transfers, folded into a book (domain/holder_book.py): everything up to the end of the block that is named.
-- It is read off the chain by that block's hash alone, and that is held against the chain whenever it is used: no row of
-- the index stands behind it. state: as domain/holder_read.py says; of what is unread there is no row. pruned: the node
-- had no logs of the blocks before first_number any more. asked_at: when somebody last asked for it.
CREATE TABLE facts.holder_read (
    token        bytea       PRIMARY KEY CHECK (length(token) = 20),
    state        text        NOT NULL CHECK (state IN ('reading', 'whole', 'capped')),
    block_number int         NOT NULL,
    block_hash   bytea       NOT NULL CHECK (length(block_hash) = 32),
    at_s         int         NOT NULL,
    transfers    bigint      NOT NULL CHECK (transfers >= 0),
    first_number int         NOT NULL CHECK (first_number >= 0),
    pruned       boolean     NOT NULL,
    book         bytea       NOT NULL,
    asked_at     timestamptz NOT NULL,
    read_at      timestamptz NOT NULL
);
-- It is compressed already.
ALTER TABLE facts.holder_read ALTER COLUMN book SET STORAGE EXTERNAL;
CREATE INDEX holder_read_by_asked ON facts.holder_read (asked_at);

-- The oldest pools where a token is the money, however many there are.
DROP INDEX facts.pool_by_quote;
CREATE INDEX pool_by_quote ON facts.pool (quote_id, id);
