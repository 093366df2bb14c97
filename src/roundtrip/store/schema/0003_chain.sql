-- What happened on the chain. Written by the sync alone, in the order of blocks, each block once.
-- Addresses are interned: they stand in every row, and 4 bytes are less than 21. Numbers of blocks and seconds
-- since 1970 are int4: enough until 2038, and a row of a trade with its indexes has to be small.

CREATE TABLE facts.address (
    id      int   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address bytea NOT NULL UNIQUE CHECK (length(address) = 20)
);

-- How far the chain was followed. first_hash: of that chain's block 0, and is_local: whether it is a local chain, which
-- may be begun anew: by them a database is not taken for another chain's. start_number: the first block that was read in full. older_number: of the
-- blocks before it launches and pools are known up to here; start_number: of all of them, the index is whole.
-- trades_from_s: raw trades before it were folded into position_base and are gone. changes: how often somebody
-- but the sync changed what was folded.
CREATE TABLE facts.cursor (
    only_one      boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    start_number  int   NOT NULL,
    number        int   NOT NULL,
    hash          bytea NOT NULL CHECK (length(hash) = 32),
    at_s          int   NOT NULL,
    trades_from_s int   NOT NULL DEFAULT 0,
    changes       int   NOT NULL DEFAULT 0,
    older_number  int   NOT NULL DEFAULT 0 CHECK (older_number BETWEEN 0 AND start_number),
    first_hash    bytea NOT NULL DEFAULT '',
    is_local      boolean NOT NULL DEFAULT false
);

-- Blocks by which a fork is found: the newest ones, and of older ones every thousandth.
CREATE TABLE facts.block (
    number int   PRIMARY KEY,
    hash   bytea NOT NULL CHECK (length(hash) = 32),
    at_s   int   NOT NULL
);

-- Everywhere a token may trade: curves, and pools of any two currencies. at: a contract's address or a v4 pool's
-- id. quote_id is the money side; in_money_from: the block since which it is money, NULL: neither side is.
CREATE TABLE facts.pool (
    id            int      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            bytea    NOT NULL UNIQUE CHECK (length(at) IN (20, 32)),
    kind          text     NOT NULL,
    token_id      int      NOT NULL,
    quote_id      int      NOT NULL,
    in_money_from int,
    fee_pips      int      NOT NULL,
    tick_spacing  int      NOT NULL,
    hook_id       int,
    block_number  int      NOT NULL,
    log_index     int      NOT NULL,
    at_s          int      NOT NULL
);
CREATE INDEX pool_by_token ON facts.pool (token_id);
CREATE INDEX pool_by_quote ON facts.pool (quote_id);
CREATE INDEX pool_by_block ON facts.pool (block_number);

-- generation 2: on a curve of its own; 1: in a v3 pool from its first block on. sender_id: who sent the launch;
-- the zero address: not known, as of what is older than the index's first block.
CREATE TABLE facts.launch (
    token_id      int      PRIMARY KEY,
    generation    smallint NOT NULL,
    deployer_id   int      NOT NULL,
    sender_id     int      NOT NULL,
    quote_id      int      NOT NULL,
    at            bytea    NOT NULL,
    threshold_raw numeric,
    block_number  int      NOT NULL,
    log_index     int      NOT NULL,
    at_s          int      NOT NULL,
    tx_hash       bytea    NOT NULL
);
CREATE INDEX launch_by_deployer ON facts.launch (deployer_id);
CREATE INDEX launch_by_block ON facts.launch (block_number);

-- What money launches were made against, from which block on.
CREATE TABLE facts.launch_quote (
    quote_id     int PRIMARY KEY,
    block_number int NOT NULL
);

-- step: swept, pooled, rescued.
CREATE TABLE facts.launch_step (
    block_number int   NOT NULL,
    log_index    int   NOT NULL,
    at_s         int   NOT NULL,
    token_id     int   NOT NULL,
    step         text  NOT NULL,
    quote_raw    numeric,
    token_raw    numeric,
    tx_hash      bytea NOT NULL,
    PRIMARY KEY (block_number, log_index)
);
CREATE INDEX launch_step_by_token ON facts.launch_step (token_id);

-- eth_wei: NULL where the quote is eth or weth, and quote_raw is it; also NULL where it is not known, as micro_usd.
CREATE TABLE facts.trade (
    micro_usd    bigint,
    at_s         int     NOT NULL,
    block_number int     NOT NULL,
    log_index    int     NOT NULL,
    pool_id      int     NOT NULL,
    trader_id    int     NOT NULL,
    buys         boolean NOT NULL,
    token_raw    numeric NOT NULL,
    quote_raw    numeric NOT NULL,
    eth_wei      numeric,
    tx_hash      bytea   NOT NULL,
    PRIMARY KEY (at_s, block_number, log_index)
) PARTITION BY RANGE (at_s);
-- One column each: repeated keys share one entry, and a day's partition is narrow enough.
CREATE INDEX trade_by_pool ON facts.trade (pool_id);
CREATE INDEX trade_by_trader ON facts.trade (trader_id);

CREATE TABLE facts.liquidity (
    at_s            int     NOT NULL,
    block_number    int     NOT NULL,
    log_index       int     NOT NULL,
    pool_id         int     NOT NULL,
    owner_id        int     NOT NULL,
    sender_id       int     NOT NULL,
    tick_lower      int     NOT NULL,
    tick_upper      int     NOT NULL,
    liquidity_delta numeric NOT NULL,
    token_raw       numeric,
    quote_raw       numeric,
    tx_hash         bytea   NOT NULL,
    PRIMARY KEY (at_s, block_number, log_index)
) PARTITION BY RANGE (at_s);
CREATE INDEX liquidity_by_pool ON facts.liquidity (pool_id);

-- Of tokens that a launchpad launched, for seven days.
CREATE TABLE facts.transfer (
    at_s         int     NOT NULL,
    block_number int     NOT NULL,
    log_index    int     NOT NULL,
    token_id     int     NOT NULL,
    from_id      int     NOT NULL,
    to_id        int     NOT NULL,
    amount_raw   numeric NOT NULL,
    tx_hash      bytea   NOT NULL,
    PRIMARY KEY (at_s, block_number, log_index)
) PARTITION BY RANGE (at_s);
CREATE INDEX transfer_by_token ON facts.transfer (token_id);

-- What a quote was worth after the last swap of a block that told it: usdg raw for 10^18 raw of the quote, which is
-- weth where it is eth. depth_raw: usdg raw in range of the pool that told it.
CREATE TABLE facts.price (
    quote_id     int     NOT NULL,
    block_number int     NOT NULL,
    at_s         int     NOT NULL,
    pool_id      int     NOT NULL,
    usdg_raw     numeric NOT NULL,
    depth_raw    numeric NOT NULL,
    PRIMARY KEY (quote_id, block_number)
);
CREATE INDEX price_by_block ON facts.price (block_number);

-- When a wallet was first met as blocks passed, and who first sent it eth in a plain transfer. What is older than
-- the index stands in facts.older_origin.
CREATE TABLE facts.origin (
    wallet_id     int PRIMARY KEY,
    first_number  int NOT NULL,
    first_s       int NOT NULL,
    funder_id     int,
    funded_number int,
    funded_s      int
);
CREATE INDEX origin_by_first ON facts.origin (first_number);
CREATE INDEX origin_by_funded ON facts.origin (funded_number);
CREATE INDEX origin_by_funder ON facts.origin (funder_id);

-- Found once in an archive, and kept for ever: rebuilds and reorganisations leave it alone. first_number NULL:
-- nothing ever reached the wallet up to searched_number.
CREATE TABLE facts.older_origin (
    wallet          bytea PRIMARY KEY CHECK (length(wallet) = 20),
    first_number    int,
    first_s         int,
    funder          bytea CHECK (length(funder) = 20),
    searched_number int NOT NULL
);

-- One row a wallet and token that it ever traded: its trades folded in order, as domain/profit.py says.
-- profit_wei: of closings. spent_micro_usd: NULL where it is not known of every buy.
CREATE TABLE facts.position (
    wallet_id       int     NOT NULL,
    token_id        int     NOT NULL,
    bought_raw      numeric NOT NULL,
    sold_raw        numeric NOT NULL,
    held_raw        numeric NOT NULL,
    cost_wei        numeric NOT NULL,
    spent_wei       numeric NOT NULL,
    got_wei         numeric NOT NULL,
    profit_wei      numeric NOT NULL,
    spent_micro_usd numeric,
    buys            int     NOT NULL,
    sells           int     NOT NULL,
    unpriced        int     NOT NULL,
    closed          int     NOT NULL,
    round_spent_wei numeric NOT NULL,
    round_got_wei   numeric NOT NULL,
    round_most_raw  numeric NOT NULL,
    round_unpriced  int     NOT NULL,
    round_number    int     NOT NULL,
    first_s         int     NOT NULL,
    last_s          int     NOT NULL,
    PRIMARY KEY (wallet_id, token_id)
);
CREATE INDEX position_by_token ON facts.position (token_id);

-- The same of trades whose rows are gone: where a fold begins.
CREATE TABLE facts.position_base (LIKE facts.position INCLUDING CONSTRAINTS INCLUDING INDEXES);

-- A wallet sold out of a token, and what everything it paid and got since it began was worth is known.
CREATE TABLE facts.closing (
    block_number int     NOT NULL,
    log_index    int     NOT NULL,
    at_s         int     NOT NULL,
    wallet_id    int     NOT NULL,
    token_id     int     NOT NULL,
    spent_wei    numeric NOT NULL,
    got_wei      numeric NOT NULL,
    PRIMARY KEY (block_number, log_index)
);
CREATE INDEX closing_by_time ON facts.closing (at_s);
CREATE INDEX closing_by_wallet ON facts.closing (wallet_id);

-- What a token says of itself, read by a job. Texts are as it gave them, cut short: cleaned where they are shown.
CREATE TABLE facts.token (
    token        bytea PRIMARY KEY CHECK (length(token) = 20),
    symbol       text,
    name         text,
    decimals     smallint,
    supply_raw   numeric,
    read_number  int NOT NULL
);
