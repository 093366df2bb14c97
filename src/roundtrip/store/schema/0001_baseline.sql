-- The schema of release 0.1.0, by capability. Later releases change it by migrations of their own.

-- facts: what the sync can read again from the chain, and what checks and jobs found out. Rebuilds may touch only this
-- schema.
CREATE SCHEMA facts;
-- jobs: background jobs, each written in the transaction of the caller that enqueues it.
CREATE SCHEMA jobs;
-- accounts: small, backed up, never dropped; only a backup can restore it. The wire calls an account "mite".
CREATE SCHEMA accounts;

-- --- Checks ----------------------------------------------------------------------------------------------------------

-- One row for each check: the canonical document that was judged. verdict_* and loss_bps are copied from it, to be
-- searched. asked: a user requested the check; after events of a token, the sync enqueues a check only if a user
-- requested one within a day. deep, holders: whether the check was deep, and how many real holders' simulated sells
-- gave a result; a check with none does not refute one with some. loss_bps: the loss of the round trip in hundredths of
-- a percent; NULL: not measured. ends_at: from when on the verdict no longer counts, since its snipe tax has ended;
-- NULL: no end is known.
CREATE TABLE facts.evidence (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    checked_at     timestamptz NOT NULL,
    token          bytea       NOT NULL CHECK (length(token) = 20),
    block_number   bigint      NOT NULL,
    policy_version text        NOT NULL,
    verdict_code   text        NOT NULL,
    verdict_level  text        NOT NULL,
    document       bytea       NOT NULL,
    asked          boolean     NOT NULL DEFAULT true,
    deep           boolean     NOT NULL DEFAULT false,
    holders        int         NOT NULL DEFAULT 0,
    loss_bps       int,
    ends_at        timestamptz
);
CREATE INDEX evidence_by_token ON facts.evidence (token, id DESC);
CREATE INDEX evidence_deep_by_token ON facts.evidence (token, id DESC) WHERE deep;
-- A token's checks with one code, in the order of the chain: those before a block, and those after it.
CREATE INDEX evidence_by_code ON facts.evidence (token, verdict_code, block_number, id);

-- A check's inputs (began) and its requests to the node, so that it can be repeated: kept for about a day. The evidence
-- stays. trips: compressed JSON, one piece for each round trip to the node.
CREATE TABLE facts.proof (
    evidence_id bigint      PRIMARY KEY REFERENCES facts.evidence (id) ON DELETE CASCADE,
    made_at     timestamptz NOT NULL,
    began       bytea       NOT NULL,
    trips       bytea[]     NOT NULL
);
-- They are compressed already.
ALTER TABLE facts.proof ALTER COLUMN trips SET STORAGE EXTERNAL;

-- Simulated wallets that met a refusal or a loss in a check, as the seed and number that they are drawn from: for a day
-- each later check of the token tries them again. at: the venue. number: -1 for the main wallet.
CREATE TABLE facts.recalled_wallet (
    token   bytea       NOT NULL,
    at      text        NOT NULL,
    seed    bytea       NOT NULL,
    number  smallint    NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (token, at, seed, number)
);
CREATE INDEX recalled_wallet_seen_at ON facts.recalled_wallet (seen_at);

-- Real holders that could not sell in a check: for a day each later check of the token asks some of them first, until they
-- can.
CREATE TABLE facts.caught_holder (
    token   bytea       NOT NULL,
    holder  bytea       NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (token, holder)
);
CREATE INDEX caught_holder_seen_at ON facts.caught_holder (seen_at);

-- --- The chain -------------------------------------------------------------------------------------------------------

-- What happened on the chain. Unless a table says otherwise, the sync alone writes it, in the order of blocks, each
-- block once. Addresses are interned: they occur in every row, and a number takes 4 bytes, an address 21. Block numbers
-- and seconds since 1970 are int4, which is enough until 2038: a trade's row with its indexes has to be small.

CREATE TABLE facts.address (
    id      int   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address bytea NOT NULL UNIQUE CHECK (length(address) = 20)
);

-- Gives cursor.rewinds another number after every reorganisation, and for every chain that is begun. While the number
-- stays the same, what was counted still belongs to the chain. Nothing restarts this sequence.
CREATE SEQUENCE facts.rewinds;

-- How far the sync has followed the chain. first_hash: the hash of the chain's block 0; is_local: the chain is a local
-- one, which may be restarted. By these two the sync notices that a database belongs to another chain. start_number:
-- the first block that was read in full. older_number: launches and pools of older blocks are indexed up to this block;
-- once it is start_number, the index has all of them. trades_from_s: trades before it were folded into position_base
-- and deleted. changes: how often a process other than the sync changed folded rows. rewinds: from facts.rewinds;
-- without a default, so that no statement forgets it. positions_from: the block from which on positions of liquidity,
-- transfers of their NFTs and states of pools are folded; a pool that was opened earlier may have more. NULL: no block
-- was folded yet.
CREATE TABLE facts.cursor (
    only_one       boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    start_number   int     NOT NULL,
    number         int     NOT NULL,
    hash           bytea   NOT NULL CHECK (length(hash) = 32),
    at_s           int     NOT NULL,
    trades_from_s  int     NOT NULL DEFAULT 0,
    changes        int     NOT NULL DEFAULT 0,
    older_number   int     NOT NULL DEFAULT 0 CHECK (older_number BETWEEN 0 AND start_number),
    first_hash     bytea   NOT NULL DEFAULT '',
    is_local       boolean NOT NULL DEFAULT false,
    rewinds        bigint  NOT NULL,
    positions_from int
);

-- Blocks that serve to find a fork: the newest ones, and every thousandth of the older ones.
CREATE TABLE facts.block (
    number int   PRIMARY KEY,
    hash   bytea NOT NULL CHECK (length(hash) = 32),
    at_s   int   NOT NULL
);

-- Every reorganisation, written in its transaction: facts above block to_number, whose time is to_s, were deleted.
-- Readers of facts then go back to that block. from_number: the newest block that was removed; NULL: not known.
CREATE TABLE facts.rewound (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    to_number   int    NOT NULL,
    to_s        int    NOT NULL,
    from_number int
);

-- Every place where a token may trade: curves, and pools of any two currencies. at: a contract's address or a v4 pool's
-- id. quote_id: the side that is money; in_money_from: the block since which it is money; NULL: neither side is.
CREATE TABLE facts.pool (
    id            int   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            bytea NOT NULL UNIQUE CHECK (length(at) IN (20, 32)),
    kind          text  NOT NULL,
    token_id      int   NOT NULL,
    quote_id      int   NOT NULL,
    in_money_from int,
    fee_pips      int   NOT NULL,
    tick_spacing  int   NOT NULL,
    hook_id       int,
    block_number  int   NOT NULL,
    log_index     int   NOT NULL,
    at_s          int   NOT NULL
);
-- Find a token's oldest pools, and those in which it is the quote, however many there are.
CREATE INDEX pool_by_token ON facts.pool (token_id, id);
CREATE INDEX pool_by_quote ON facts.pool (quote_id, id);
CREATE INDEX pool_by_block ON facts.pool (block_number);

-- generation 2: launched on a curve of its own; 1: in a v3 pool from its first block on. sender_id: the sender of the
-- launch; the zero address: not known, since the launch is older than the index's first block. symbol_key: a copy from
-- facts.token: the up to ten thousand tokens that bear a symbol are ordered by their launches.
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
    tx_hash       bytea    NOT NULL,
    symbol_key    text
);
-- Finds a deployer's newest launches without reading all of them, and without visiting each row: they lie far apart.
CREATE INDEX launch_by_deployer ON facts.launch (deployer_id, block_number, log_index) INCLUDE (token_id, generation);
CREATE INDEX launch_by_block ON facts.launch (block_number);
CREATE INDEX launch_by_time ON facts.launch (at_s);
CREATE INDEX launch_by_symbol ON facts.launch (symbol_key, block_number, log_index) INCLUDE (token_id);

-- The quotes that launches were made against, and the block from which on each is money.
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
CREATE INDEX launch_step_by_time ON facts.launch_step (at_s);

-- eth_wei: the worth in wei; NULL where the quote is eth or weth (then it is quote_raw), and where it is not known.
-- micro_usd: in millionths of a dollar; NULL: not known. kept_raw: what the launchpad kept of a trade on a curve, fee
-- and tax, in the quote; NULL in any other place.
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
    kept_raw     numeric,
    PRIMARY KEY (at_s, block_number, log_index)
) PARTITION BY RANGE (at_s);
-- Finds the newest trades of a pool without reading all of them.
CREATE INDEX trade_by_pool ON facts.trade (pool_id, at_s);
-- One column: repeated keys share one entry, and a day's partition is narrow enough.
CREATE INDEX trade_by_trader ON facts.trade (trader_id);
-- Large trades, by worth and by tokens moved: with these indexes a rule is tried on the last days without reading all
-- trades. store/watch/happening_trades.py has the same bounds: below them so many trades match that the newest ones
-- suffice. A trade without eth_wei whose quote is not eth is indexed by quote_raw, and left out when it is read. Every
-- second trade moves more than a thousandth of a launch's supply, so that bound is a hundredth.
CREATE INDEX trade_large_eth ON facts.trade (coalesce(eth_wei, quote_raw))
    WHERE coalesce(eth_wei, quote_raw) > 100000000000000000;
CREATE INDEX trade_large_usd ON facts.trade (micro_usd) WHERE micro_usd > 300000000;
CREATE INDEX trade_large_share ON facts.trade (token_raw) WHERE token_raw > 10000000000000000000000000;
-- The trades with the highest price of each pool, in wei for a base unit: they help to find moves of much worth. Above
-- the bound a launch's whole supply is worth more than 100 eth; below it such moves are large parts of a supply.
CREATE INDEX trade_dear ON facts.trade (pool_id, (coalesce(eth_wei, quote_raw) / nullif(token_raw, 0)) DESC)
    WHERE coalesce(eth_wei, quote_raw) * 10000000 > token_raw AND token_raw > 0;

-- number: the NFT of a position manager, or the salt of another owner in a v4 pool; 0: none. active_raw: the pool's
-- active liquidity just before the change; 0 also where the change was out of range; NULL: not known.
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
    number          numeric NOT NULL DEFAULT 0,
    active_raw      numeric,
    PRIMARY KEY (at_s, block_number, log_index)
) PARTITION BY RANGE (at_s);
CREATE INDEX liquidity_by_pool ON facts.liquidity (pool_id);
CREATE INDEX liquidity_by_sender ON facts.liquidity (sender_id);

-- Transfers of tokens that a launchpad launched, kept for seven days.
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
-- Find what a wallet sent and received; the transfers of a large part of any launch's supply; and who received a
-- thousandth of it or more at once (store/watch/happening_moves.py, store/watch/bags.py).
CREATE INDEX transfer_by_sender ON facts.transfer (from_id);
CREATE INDEX transfer_by_receiver ON facts.transfer (to_id);
CREATE INDEX transfer_large ON facts.transfer (amount_raw) WHERE amount_raw > 1000000000000000000000000;
CREATE INDEX transfer_given ON facts.transfer (token_id, to_id) WHERE amount_raw >= 1000000000000000000000000;

-- The price of a quote after the last swap of a block that set it: usdg raw for 10^18 raw of the quote; eth has the
-- quote weth. depth_raw: the usdg raw in range of the pool that set the price.
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

-- When the sync first met a wallet, and who first sent it eth in a plain transfer: one without calldata, sent by its
-- sender's own transaction. facts.older_origin has what is older than the index. A row with funded_number and without a
-- funder: the wallet got its first eth otherwise (from a bridge, by a contract's call), or acted before the sync saw it
-- get any; a later sender is not its funder.
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
COMMENT ON COLUMN facts.origin.funder_id IS 'NULL with a funded_number: it has none, for ever';

-- Found by a job in an archive node, and kept permanently: rebuilds and reorganisations do not change it. first_number
-- NULL: the wallet does not appear up to block searched_number.
CREATE TABLE facts.older_origin (
    wallet          bytea PRIMARY KEY CHECK (length(wallet) = 20),
    first_number    int,
    first_s         int,
    funder          bytea CHECK (length(funder) = 20),
    searched_number int   NOT NULL
);

-- One row for each wallet and token that it ever traded: its trades folded in order, as domain/market/profit.py
-- defines. profit_wei: of closings. spent_micro_usd: NULL where it is not known for every buy.
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
-- Finds some of a token's traders, from any wallet's number on, however many there are.
CREATE INDEX position_by_token ON facts.position (token_id, wallet_id);

-- As facts.position, of the trades that are deleted: folds begin here.
CREATE TABLE facts.position_base (LIKE facts.position, PRIMARY KEY (wallet_id, token_id));
CREATE INDEX position_base_token_id_idx ON facts.position_base (token_id);

-- One row for each round in which a wallet bought a token and sold out of it, if the worth of each of its trades is
-- known.
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
CREATE INDEX closing_by_wallet ON facts.closing (wallet_id, at_s)
    INCLUDE (token_id, spent_wei, got_wei, block_number, log_index);

-- A token's own metadata, read by a job. The texts are the token's, cut to a length; they are cleaned where they are
-- shown. symbol_key: the symbol as it is searched for: cleaned, and in one case.
CREATE TABLE facts.token (
    token       bytea PRIMARY KEY CHECK (length(token) = 20),
    symbol      text,
    name        text,
    decimals    smallint,
    supply_raw  numeric,
    read_number int   NOT NULL,
    symbol_key  text
);
-- Tokens by symbol or name, those first that were read first: of two that look alike, that one is the older.
CREATE INDEX token_by_symbol ON facts.token (symbol_key, read_number);
CREATE INDEX token_by_name ON facts.token (lower(left(name, 64)), read_number);
-- Tokens by the beginning of their symbol or name, whatever the server's collation.
CREATE INDEX token_by_symbol_start ON facts.token (symbol_key text_pattern_ops);
CREATE INDEX token_by_name_start ON facts.token (lower(left(name, 64)) text_pattern_ops);
-- Tokens with a small supply, of which few base units are a large part.
CREATE INDEX token_small ON facts.token (token) WHERE supply_raw > 0 AND supply_raw < 1000000000000000000000000000;

-- --- Jobs ------------------------------------------------------------------------------------------------------------

-- key: what the job is about; a kind and key have at most one row. claim, claimed_until: the worker's claim, and how
-- long it holds; then another worker may claim the job. tries: how often it was claimed. again_at: it was enqueued
-- again while it ran, and runs again then. failed_at: when it was given up; it is kept for operators. lane, owner,
-- host: for kinds whose owners take turns, the lane in which the job waits, its owner, and the host that it sends to;
-- NULL: not assigned yet, or not due.
CREATE TABLE jobs.job (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          text        NOT NULL,
    key           text        NOT NULL,
    payload       jsonb       NOT NULL DEFAULT '{}',
    run_at        timestamptz NOT NULL,
    claimed_until timestamptz,
    claim         uuid,
    again_at      timestamptz,
    tries         int         NOT NULL DEFAULT 0,
    last_error    text,
    failed_at     timestamptz,
    lane          text,
    owner         bigint,
    host          text,
    UNIQUE (kind, key),
    CHECK ((claim IS NULL) = (claimed_until IS NULL)),
    CHECK (claim IS NOT NULL OR again_at IS NULL),
    CHECK (claim IS NULL OR failed_at IS NULL)
);
CREATE INDEX job_due ON jobs.job (kind, run_at, id) WHERE failed_at IS NULL;
CREATE INDEX job_failed ON jobs.job (failed_at) WHERE failed_at IS NOT NULL;
CREATE INDEX job_unsorted ON jobs.job (run_at, id) WHERE kind = 'deliver' AND lane IS NULL AND failed_at IS NULL;
CREATE INDEX job_turn ON jobs.job (kind, lane, owner, run_at, id) WHERE lane IS NOT NULL;
CREATE INDEX job_claimed ON jobs.job (kind) WHERE claim IS NOT NULL;

-- The owner who had the last turn in a lane: all workers go on from there.
CREATE TABLE jobs.turn (
    kind  text   NOT NULL,
    lane  text   NOT NULL,
    owner bigint NOT NULL,
    PRIMARY KEY (kind, lane)
);

-- --- Boards ----------------------------------------------------------------------------------------------------------

-- The money in a launch's curve, folded from its events: buys less what was kept, less sells and what was kept of them,
-- plus buybacks from what was kept. last_s: the time of its newest trade, or of its launch. Curves that were launched
-- before the index's first block have no row: not all of their trades are known. token_id and threshold_raw are copies,
-- so that thousands of curves can be sorted without a join.
CREATE TABLE facts.curve (
    pool_id       int     PRIMARY KEY,
    token_id      int     NOT NULL,
    threshold_raw numeric NOT NULL,
    raised_raw    numeric NOT NULL,
    last_s        int     NOT NULL
);
CREATE INDEX curve_by_last ON facts.curve (last_s);

-- A curve bought its token with money that it had kept.
CREATE TABLE facts.buyback (
    block_number int     NOT NULL,
    log_index    int     NOT NULL,
    at_s         int     NOT NULL,
    pool_id      int     NOT NULL,
    quote_raw    numeric NOT NULL,
    tx_hash      bytea   NOT NULL,
    PRIMARY KEY (block_number, log_index)
);

-- What a launch's insiders, its deployer and the wallets whose first eth the deployer sent, did with its token in the
-- last days, and what anybody burned of it. what: sold, moved, burned. other_id: the recipient of a move.
CREATE TABLE facts.inside (
    block_number int     NOT NULL,
    log_index    int     NOT NULL,
    at_s         int     NOT NULL,
    what         text    NOT NULL CHECK (what IN ('sold', 'moved', 'burned')),
    token_id     int     NOT NULL,
    wallet_id    int     NOT NULL,
    other_id     int,
    token_raw    numeric NOT NULL,
    eth_wei      numeric,
    tx_hash      bytea   NOT NULL,
    PRIMARY KEY (block_number, log_index)
);
CREATE INDEX inside_by_time ON facts.inside (at_s);
CREATE INDEX inside_by_token ON facts.inside (token_id);

-- Tokens that are fair, as domain/market/fairness.py defines it. block_number: the block as of which that was found
-- out; a fair token stays fair.
CREATE TABLE facts.fair_token (
    token_id     int PRIMARY KEY,
    block_number int NOT NULL
);

-- The wallets that closed the most profit in a span (24h, 7d, 30d, all) up to a block. A job counts each span anew from
-- time to time and replaces all of its rows.
CREATE TABLE facts.winner (
    span           text    NOT NULL CHECK (span IN ('24h', '7d', '30d', 'all')),
    rank           int     NOT NULL,
    wallet_id      int     NOT NULL,
    profit_wei     numeric NOT NULL,
    spent_wei      numeric NOT NULL,
    closed         int     NOT NULL,
    won            int     NOT NULL,
    best_token_id  int     NOT NULL,
    best_spent_wei numeric NOT NULL,
    best_got_wei   numeric NOT NULL,
    best_s         int     NOT NULL,
    PRIMARY KEY (span, rank)
);
CREATE INDEX winner_by_wallet ON facts.winner (wallet_id);

-- The block up to which a span was counted, also where nobody won.
CREATE TABLE facts.winners_counted (
    span         text PRIMARY KEY,
    block_number int  NOT NULL,
    at_s         int  NOT NULL
);

-- What a token's buyers are exposed to, as it was read last. insiders_bps: the share of the supply that insiders hold.
-- free_bps: the share of its liquidity that somebody can withdraw now; unproven_bps: the share in unknown contracts, or
-- of unknown holders. NULL: could not be found out. ..._at: when it was read, by the system clock; NULL: never.
CREATE TABLE facts.exposure (
    token        bytea PRIMARY KEY CHECK (octet_length(token) = 20),
    insiders_bps int,
    insiders_at  timestamptz,
    free_bps     int,
    unproven_bps int,
    liquidity_at timestamptz
);
CREATE INDEX exposure_by_time ON facts.exposure (greatest(insiders_at, liquidity_at));

-- --- Holders ---------------------------------------------------------------------------------------------------------

-- A token's transfers, folded into a book (domain/holders/book.py): all up to the end of the named block. The book is
-- read from the chain, not from the index, and whoever uses it checks that block's hash against the chain. state: as in
-- domain/holders/read_state.py; an unread book has no row. pruned: the node no longer had logs of the blocks before
-- first_number. asked_at: when the book was last requested.
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

-- --- Accounts --------------------------------------------------------------------------------------------------------

-- The service's secrets. name: nonce (for texts to sign), telegram (for link codes) and service are random bytes; seal
-- is the fingerprint of the key that encrypts channels.
CREATE TABLE accounts.secret (
    name  text  PRIMARY KEY,
    value bytea NOT NULL CHECK (octet_length(value) = 32)
);

-- An account: a wallet that has proved its control by a signature. keys_made: how many keys and sessions it ever
-- created. The number is part of the next text to sign, so that a signature works once. chats_linked: how many chats it
-- ever linked; a link works only for the number that it was made for. guarded_from: the newest block known when the
-- account was created: it is alerted of later events of what its wallet holds.
CREATE TABLE accounts.account (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    wallet       bytea       NOT NULL UNIQUE CHECK (octet_length(wallet) = 20),
    designation  text        NOT NULL UNIQUE,
    is_agent     boolean     NOT NULL DEFAULT false,
    agent_name   text,
    keys_made    int         NOT NULL DEFAULT 0,
    made_at      timestamptz NOT NULL,
    chats_linked int         NOT NULL DEFAULT 0,
    guarded_from int         NOT NULL DEFAULT -1
);

-- hash: SHA-256 of the key, which only its owner has. start: its first eight characters. kind session: for a person who
-- signed in to the pages: only a cookie carries it, it expires by itself, and it does not count against the keys that
-- an account may have.
CREATE TABLE accounts.key (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id bigint      NOT NULL REFERENCES accounts.account,
    hash       bytea       NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    start      text        NOT NULL,
    label      text        NOT NULL,
    made_at    timestamptz NOT NULL,
    revoked_at timestamptz,
    kind       text        NOT NULL DEFAULT 'key' CHECK (kind IN ('key', 'session')),
    expires_at timestamptz
);
CREATE INDEX key_live ON accounts.key (account_id) WHERE revoked_at IS NULL;

-- An account's calls of a day of UTC that count against its daily limit. granted: how many calls of the last change had
-- room. leased: calls that processes have taken ahead and have not reported as made; calls contains them, so the calls
-- made are calls - leased. What a killed process had leased and not made stays leased until the day is over. lent: how
-- many calls the last change of a lease got.
CREATE TABLE accounts.day (
    account_id bigint NOT NULL REFERENCES accounts.account,
    day        date   NOT NULL,
    calls      int    NOT NULL CHECK (calls >= 0),
    granted    int    NOT NULL,
    leased     int    NOT NULL DEFAULT 0 CHECK (leased >= 0),
    lent       int    NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, day)
);

-- Calls of the last minute. caller: "mite:" and the account's number, or a network address. taken_ms: since 1970.
-- calls: 1, or -1 where a call is refunded. Each process has its own calls in memory, and reads these when it starts.
CREATE TABLE accounts.call (
    caller   text     NOT NULL,
    taken_ms bigint   NOT NULL,
    calls    smallint NOT NULL
);
CREATE INDEX call_taken ON accounts.call (taken_ms);

-- How many accounts a network address created on a day. address_hash: HMAC-SHA256 of the address; days that are over
-- are deleted.
CREATE TABLE accounts.made_from (
    day          date  NOT NULL,
    address_hash bytea NOT NULL CHECK (length(address_hash) = 32),
    made         int   NOT NULL,
    PRIMARY KEY (day, address_hash)
);

-- --- Credits ---------------------------------------------------------------------------------------------------------

-- Calls beyond the daily limit, paid for. For each account, at every moment: what its payments credited = credits + its
-- holds + spent.

-- The addresses for payments, each from the block after from_block on. to_block: the newest block when another address
-- replaced it; payments count for a while longer. NULL: it is in use.
CREATE TABLE accounts.pay_to (
    address    bytea  PRIMARY KEY CHECK (octet_length(address) = 20),
    from_block bigint NOT NULL,
    to_block   bigint
);

-- What an account's wallet paid in one transaction, counted once. amount_raw: base units of usdg.
CREATE TABLE accounts.payment (
    tx_hash      bytea          NOT NULL CHECK (octet_length(tx_hash) = 32),
    account_id   bigint         NOT NULL REFERENCES accounts.account,
    amount_raw   numeric(78, 0) NOT NULL CHECK (amount_raw > 0),
    credited     bigint         NOT NULL CHECK (credited > 0),
    block_number bigint         NOT NULL,
    block_hash   bytea          NOT NULL CHECK (octet_length(block_hash) = 32),
    redeemed_at  timestamptz    NOT NULL,
    PRIMARY KEY (tx_hash, account_id)
);
CREATE INDEX payment_account ON accounts.payment (account_id);

-- A row for each account that ever paid.
CREATE TABLE accounts.balance (
    account_id bigint PRIMARY KEY REFERENCES accounts.account,
    credits    bigint NOT NULL CHECK (credits >= 0),
    spent      bigint NOT NULL DEFAULT 0 CHECK (spent >= 0)
);

-- A credit held for a call that is not answered yet: spent when it is, otherwise returned. until_ms, since 1970: from
-- then on the credit is returned, because the process that held it is gone.
CREATE TABLE accounts.hold (
    id         uuid   PRIMARY KEY,
    account_id bigint NOT NULL REFERENCES accounts.balance,
    until_ms   bigint NOT NULL
);
CREATE INDEX hold_account ON accounts.hold (account_id);

-- --- Rules and alerts ------------------------------------------------------------------------------------------------

-- Numbers the changes of rules and follows. Whoever changes one holds an advisory lock from before it draws the number
-- to the end of its transaction, so that changes become visible in the order of their numbers.
CREATE SEQUENCE accounts.watch_changes;

-- from_number: facts of later blocks count. rewound: the last reorganisation before the follow was made; a later one
-- that goes back further lowers from_number. ended_at: when it ended; the row is kept until every reader has seen that.
CREATE TABLE accounts.follow (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  bigint      NOT NULL REFERENCES accounts.account,
    wallet      bytea       NOT NULL CHECK (octet_length(wallet) = 20),
    name        text        NOT NULL,
    from_number int         NOT NULL,
    rewound     bigint      NOT NULL,
    made_at     timestamptz NOT NULL,
    ended_at    timestamptz,
    change      bigint      NOT NULL UNIQUE
);
CREATE UNIQUE INDEX follow_live ON accounts.follow (account_id, wallet) WHERE ended_at IS NULL;

-- said: the canonical text. who_address: the wallet, or the token whose deployer or creator is meant; wallet: the
-- wallet that this is. over_raw: wei, millionths of a dollar, or millionths of the whole, by unit. hits: how often it
-- matched, matches beyond a minute's limit included, retracted ones not. A paused rule matches nothing; a resumed one
-- applies to blocks after from_number.
CREATE TABLE accounts.rule (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  bigint      NOT NULL REFERENCES accounts.account,
    said        text        NOT NULL,
    who         text        NOT NULL CHECK (who IN ('follow', 'any', 'wallet', 'deployer', 'creator')),
    who_address bytea       CHECK (octet_length(who_address) = 20),
    wallet      bytea       CHECK (octet_length(wallet) = 20),
    verb        text        NOT NULL
        CHECK (verb IN ('buying', 'selling', 'launching', 'graduating', 'moving', 'draining', 'removing')),
    unit        text        CHECK (unit IN ('eth', 'usd', '%')),
    over_raw    numeric     CHECK (over_raw >= 0),
    token       bytea       CHECK (octet_length(token) = 20),
    from_number int         NOT NULL,
    rewound     bigint      NOT NULL,
    made_at     timestamptz NOT NULL,
    hits        bigint      NOT NULL DEFAULT 0 CHECK (hits >= 0),
    ended_at    timestamptz,
    change      bigint      NOT NULL UNIQUE,
    paused      boolean     NOT NULL DEFAULT false,
    CHECK ((unit IS NULL) = (over_raw IS NULL)),
    CHECK ((who IN ('follow', 'any')) = (wallet IS NULL))
);
CREATE UNIQUE INDEX rule_live ON accounts.rule (account_id, said) WHERE ended_at IS NULL;

-- The block up to which facts were read for alerts, and the last reorganisation that was undone.
CREATE TABLE accounts.alert_cursor (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    number   int     NOT NULL,
    at_s     int     NOT NULL,
    rewound  bigint  NOT NULL
);

-- One alert of an account. source_id: the rule, the follow, or the channel (service, test); of the bag guard as in
-- alert_minute. more: above 0 in a summary: how many more matches there were in that minute. retracted_at: when a
-- reorganisation removed the fact. An alert of an unlock is not about a block: at_s is the time of the unlock, wallet
-- can withdraw then.
CREATE TABLE accounts.alert (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id   bigint      NOT NULL REFERENCES accounts.account,
    kind         text        NOT NULL CHECK (kind IN ('rule', 'follow', 'bag_guard', 'unlock', 'service', 'test')),
    source_id    bigint,
    verb         text,
    who          text,
    wallet       bytea       CHECK (octet_length(wallet) = 20),
    token        bytea       CHECK (octet_length(token) = 20),
    eth_wei      numeric,
    micro_usd    numeric,
    share_ppm    bigint,
    tx_hash      bytea       CHECK (octet_length(tx_hash) = 32),
    block_number int,
    log_index    int,
    at_s         int         NOT NULL,
    rule         text,
    said         text        NOT NULL,
    more         int         NOT NULL DEFAULT 0 CHECK (more >= 0),
    -- Of a changed verdict: the level that was reported.
    level        text,
    made_at      timestamptz NOT NULL,
    retracted_at timestamptz
);
CREATE INDEX alert_inbox ON accounts.alert (account_id, id DESC);
-- Finds who was alerted of a verdict, however many alerts an account has.
CREATE INDEX alert_verdict ON accounts.alert (account_id, token, at_s) WHERE kind = 'bag_guard' AND verb = 'verdict';
CREATE INDEX alert_by_time ON accounts.alert (made_at);
CREATE INDEX alert_by_block ON accounts.alert (block_number) WHERE retracted_at IS NULL;
-- A fact raises one alert, however often it is inserted.
CREATE UNIQUE INDEX alert_once ON accounts.alert (account_id, kind, source_id, block_number, log_index, verb)
    WHERE retracted_at IS NULL AND more = 0 AND block_number IS NOT NULL;
CREATE UNIQUE INDEX alert_unlock_once ON accounts.alert (account_id, token, wallet, at_s) WHERE kind = 'unlock';
CREATE INDEX alert_unlock_by_time ON accounts.alert (at_s) WHERE kind = 'unlock';
CREATE INDEX alert_more ON accounts.alert (at_s) WHERE retracted_at IS NULL AND more > 0;

-- How many alerts one rule, follow or guarded token raised in one minute of the chain's clock (at_s / 60). source_id of
-- the bag guard: the token's number in facts.address, below zero where liquidity leaves: each token has a limit of its
-- own, for each account. beyond: matches over the limit, which got no alert; told: how many of them a summary has
-- reported.
CREATE TABLE accounts.alert_minute (
    kind       text   NOT NULL CHECK (kind IN ('rule', 'follow', 'bag_guard')),
    source_id  bigint NOT NULL,
    minute     int    NOT NULL,
    account_id bigint NOT NULL,
    raised     int    NOT NULL,
    beyond     int    NOT NULL DEFAULT 0,
    told       int    NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, source_id, minute, account_id)
);
CREATE INDEX alert_minute_beyond ON accounts.alert_minute (minute) WHERE beyond > told;

-- The verdict that a token's holders know: the last one that they were alerted of, or the first one that was read.
-- seen_id: the evidence up to which checks were read. next_level, next_at: another level that one check found, and
-- when; a second check has to agree. told_at: when holders were last alerted of a change.
CREATE TABLE accounts.bag_verdict (
    token          bytea  PRIMARY KEY CHECK (octet_length(token) = 20),
    level          text   NOT NULL CHECK (level IN ('ok', 'warn', 'danger')),
    code           text   NOT NULL,
    policy_version text   NOT NULL,
    seen_id        bigint NOT NULL,
    next_level     text   CHECK (next_level IN ('ok', 'warn', 'danger')),
    next_at        timestamptz,
    told_at        timestamptz,
    CHECK ((next_level IS NULL) = (next_at IS NULL))
);

-- Tokens that an account watches: it is alerted when their verdict changes, whether its wallet holds them or not.
CREATE TABLE accounts.token_watch (
    account_id bigint      NOT NULL REFERENCES accounts.account,
    token      bytea       NOT NULL CHECK (octet_length(token) = 20),
    made_at    timestamptz NOT NULL,
    PRIMARY KEY (account_id, token)
);
CREATE INDEX token_watch_by_token ON accounts.token_watch (token);

-- When locked liquidity can be withdrawn, as a job's newest reading of the token found; all rows of a token are
-- replaced together. manager, number: the NFT of a position manager; number 0: none. holder: who can withdraw it then.
-- share_bps: the share of its pool's active liquidity; NULL: not known. read_number: the block of the reading.
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

-- --- Deliveries ------------------------------------------------------------------------------------------------------

-- A channel: where an account's messages go. target: encrypted but for Telegram, since whoever knows it could write
-- there; shown: what its owner is shown of it. secret: encrypted; only webhooks have one. state: as in
-- domain/watch/channels.py. failing_since: the first of the failures that count, without a success since. rests_until:
-- after a failure nothing is sent before that. target_hash: an HMAC that finds an account's channel again, whose target
-- is encrypted. dropped_to: waiting messages up to this id are not sent but dropped, some in each run; 0: none is left
-- to drop. host: the remote host whose limits it counts against; of Discord each webhook, of Telegram each chat is one.
-- proven_at: since when the receiver is known to want the messages; NULL: not yet. answers_ms: how long its answers
-- take, as in domain/watch/channels.py.
CREATE TABLE accounts.channel (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id    bigint      NOT NULL REFERENCES accounts.account,
    kind          text        NOT NULL CHECK (kind IN ('webhook', 'telegram', 'discord')),
    target        bytea       NOT NULL,
    shown         text        NOT NULL,
    secret        bytea,
    state         text        NOT NULL CHECK (state IN ('live', 'failing', 'off', 'removed')),
    made_at       timestamptz NOT NULL,
    failing_since timestamptz,
    failures      int         NOT NULL DEFAULT 0,
    delivered_at  timestamptz,
    last_error    text,
    rests_until   timestamptz,
    target_hash   bytea       CHECK (octet_length(target_hash) = 32),
    dropped_to    bigint      NOT NULL DEFAULT 0,
    host          text        NOT NULL DEFAULT '',
    proven_at     timestamptz,
    answers_ms    int         NOT NULL DEFAULT 0 CHECK (answers_ms >= 0),
    CHECK ((secret IS NOT NULL) = (kind = 'webhook'))
);
CREATE INDEX channel_by_account ON accounts.channel (account_id) WHERE state <> 'removed';

-- One message to one channel; its alerts are of one kind. webhook_id: the same in all tries. retracted: the message
-- retracts its alerts. state: waiting, delivered, failed (for the last time), dropped (as in domain/watch/channels.py).
CREATE TABLE accounts.delivery (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel_id bigint      NOT NULL REFERENCES accounts.channel,
    webhook_id text        NOT NULL UNIQUE,
    kind       text        NOT NULL,
    alert_ids  bigint[]    NOT NULL,
    retracted  boolean     NOT NULL DEFAULT false,
    state      text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed', 'dropped')),
    tries      int         NOT NULL DEFAULT 0,
    next_at    timestamptz NOT NULL,
    made_at    timestamptz NOT NULL,
    ended_at   timestamptz
);
CREATE INDEX delivery_waiting ON accounts.delivery (channel_id, id) WHERE state = 'waiting';
CREATE INDEX delivery_by_time ON accounts.delivery (made_at);
CREATE INDEX delivery_tried ON accounts.delivery (channel_id) WHERE state = 'waiting' AND tries > 0;
-- Finds a channel's newest messages, for its owner.
CREATE INDEX delivery_of_channel ON accounts.delivery (channel_id, id DESC);
-- Finds the messages that are sent before others of their channel.
CREATE INDEX delivery_urgent ON accounts.delivery (channel_id)
    WHERE state = 'waiting' AND kind IN ('bag_guard', 'service');

-- Each try to send a message, kept as long as the message. status: of the answer; NULL: there was no answer.
CREATE TABLE accounts.delivery_try (
    delivery_id bigint      NOT NULL REFERENCES accounts.delivery ON DELETE CASCADE,
    number      int         NOT NULL,
    tried_at    timestamptz NOT NULL,
    status      int,
    error       text,
    took_ms     int         NOT NULL,
    PRIMARY KEY (delivery_id, number)
);

-- Every attempt to set a target, for as long as it counts against the limits of the account and of the target's host.
-- failed: true until the test message has arrived; only failed attempts count for a host.
CREATE TABLE accounts.channel_attempt (
    account_id bigint      NOT NULL REFERENCES accounts.account,
    host       text        NOT NULL,
    made_at    timestamptz NOT NULL,
    failed     boolean     NOT NULL DEFAULT true
);
CREATE INDEX channel_attempt_account ON accounts.channel_attempt (account_id, made_at);
CREATE INDEX channel_attempt_host ON accounts.channel_attempt (host, made_at) WHERE failed;
CREATE INDEX channel_attempt_time ON accounts.channel_attempt (made_at);

-- Every message that its owner sent again, for as long as it counts against the limit of an hour.
CREATE TABLE accounts.resend (
    account_id bigint      NOT NULL REFERENCES accounts.account,
    made_at    timestamptz NOT NULL
);
CREATE INDEX resend_by_account ON accounts.resend (account_id, made_at);
CREATE INDEX resend_by_time ON accounts.resend (made_at);

-- Alerts that were sent to a host in the minute from began_at on, of webhooks that have not echoed the challenge.
CREATE TABLE accounts.host_minute (
    host     text        PRIMARY KEY,
    began_at timestamptz NOT NULL,
    rows     int         NOT NULL CHECK (rows >= 0)
);
CREATE INDEX host_minute_by_time ON accounts.host_minute (began_at);

-- --- Practice and its league -----------------------------------------------------------------------------------------

-- Pretend eth, traded at the chain's own prices. eth_wei is given_wei, less what buys paid, plus what sells brought;
-- held_raw is what was bought, less what was sold and written off. An account without a row has never practised.

-- given_wei: the first balance and every gift. week_s: the Monday up to which gifts were handled. apart_wei: gains of
-- sells that do not count for the league: they are not part of eth_wei, and are never spent.
CREATE TABLE accounts.practice_account (
    account_id bigint  PRIMARY KEY REFERENCES accounts.account,
    eth_wei    numeric NOT NULL CHECK (eth_wei >= 0),
    given_wei  numeric NOT NULL CHECK (given_wei >= 0),
    week_s     bigint  NOT NULL,
    apart_wei  numeric NOT NULL DEFAULT 0 CHECK (apart_wei >= 0)
);

-- cost_wei: of what is held. slot_layout, slot_base: where the token keeps its balances; NULL: not known. bought_at:
-- the time of the last buy. at: the pool, the curve or the id of the v4 pool where it is sold; NULL: not known.
-- failed_at: when selling all of it first failed; NULL: never, or a sell succeeded since. stuck_at: since when it
-- counts as unsellable.
CREATE TABLE accounts.practice_position (
    account_id  bigint      NOT NULL REFERENCES accounts.practice_account,
    token       bytea       NOT NULL CHECK (octet_length(token) = 20),
    state       text        NOT NULL CHECK (state IN ('open', 'closed')),
    held_raw    numeric     NOT NULL CHECK (held_raw >= 0),
    cost_wei    numeric     NOT NULL CHECK (cost_wei >= 0),
    decimals    smallint    NOT NULL,
    slot_layout text        CHECK (slot_layout IN ('solidity', 'vyper', 'solady')),
    slot_base   numeric,
    opened_at   timestamptz NOT NULL,
    bought_at   timestamptz NOT NULL,
    at          text,
    failed_at   timestamptz,
    stuck_at    timestamptz,
    PRIMARY KEY (account_id, token),
    CHECK ((state = 'open') = (held_raw > 0)),
    CHECK (state = 'open' OR (cost_wei = 0 AND failed_at IS NULL AND stuck_at IS NULL)),
    CHECK ((slot_layout IS NULL) = (slot_base IS NULL))
);
CREATE INDEX practice_position_open ON accounts.practice_position (account_id) WHERE state = 'open';

-- The ledger: rows are only added. Buys and sells were priced at the block of that number and hash; a reorganisation
-- changes none of them. cost_wei: of a sell, the cost of the part sold. sells_back: of a buy. counted: of a sell,
-- whether it counts for the league; why_not: why it does not.
CREATE TABLE accounts.practice_trade (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id   bigint      NOT NULL REFERENCES accounts.practice_account,
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
CREATE INDEX practice_trade_newest ON accounts.practice_trade (account_id, id DESC);
CREATE INDEX practice_trade_by_time ON accounts.practice_trade (account_id, made_at);

-- Answers to requests with an idempotency key, kept for seven days. key_hash: of the key; asked_hash: of tool and
-- parameters.
CREATE TABLE accounts.practice_repeat (
    account_id bigint      NOT NULL REFERENCES accounts.practice_account,
    key_hash   bytea       NOT NULL CHECK (octet_length(key_hash) = 32),
    asked_hash bytea       NOT NULL CHECK (octet_length(asked_hash) = 32),
    answer     bytea       NOT NULL,
    made_at    timestamptz NOT NULL,
    PRIMARY KEY (account_id, key_hash)
);
CREATE INDEX practice_repeat_by_time ON accounts.practice_repeat (made_at);

-- An account's week in the practice league: the result of its sells that count. week_s: Monday 00:00 UTC, in seconds
-- since 1970. is_agent: as the account is tagged; a week that is over keeps it. won: sells with a profit. last_s: the
-- time of the last sell.
CREATE TABLE accounts.league_week (
    week_s          int     NOT NULL,
    account_id      bigint  NOT NULL REFERENCES accounts.account,
    is_agent        boolean NOT NULL,
    profit_wei      numeric NOT NULL,
    sells           int     NOT NULL CHECK (sells > 0),
    won             int     NOT NULL CHECK (won BETWEEN 0 AND sells),
    best_token      bytea   NOT NULL CHECK (octet_length(best_token) = 20),
    best_profit_wei numeric NOT NULL,
    last_s          int     NOT NULL,
    PRIMARY KEY (week_s, account_id)
);

-- The boards in their order: of everybody, and of those with or without the agent tag. Three sells put an account on a
-- board.
CREATE INDEX league_board ON accounts.league_week (week_s, profit_wei DESC, sells, last_s, account_id)
    WHERE sells >= 3;
CREATE INDEX league_board_of ON accounts.league_week (week_s, is_agent, profit_wei DESC, sells, last_s, account_id)
    WHERE sells >= 3;

-- How many accounts of a week are on the board, and how many have too few sells: counting a hundred thousand rows takes
-- longer than the rest of a board. Updated in the transaction of a first sell, a third sell or a tag.
CREATE TABLE accounts.league_count (
    week_s   int     NOT NULL,
    is_agent boolean NOT NULL,
    on_board int     NOT NULL CHECK (on_board >= 0),
    too_few  int     NOT NULL CHECK (too_few >= 0),
    PRIMARY KEY (week_s, is_agent)
);

-- --- Marks and flags -------------------------------------------------------------------------------------------------

-- One row for each account and wallet that it marked. name: as the account wrote it; name_key: as names are compared.
-- domain/community/marks.py defines when it becomes public.
CREATE TABLE accounts.mark (
    account_id bigint      NOT NULL REFERENCES accounts.account,
    wallet     bytea       NOT NULL CHECK (octet_length(wallet) = 20),
    name       text        CHECK (length(name) BETWEEN 1 AND 24),
    name_key   text,
    mark       text        CHECK (mark IN ('good', 'bad', 'scam')),
    made_at    timestamptz NOT NULL,
    PRIMARY KEY (account_id, wallet),
    CHECK ((name IS NULL) = (name_key IS NULL)),
    CHECK (name IS NOT NULL OR mark IS NOT NULL)
);

-- Names and marks that enough people gave a wallet. A job counts them from time to time, all at once. what, key: a name
-- as names are compared, or a mark; said: the name as most wrote it, or the mark; people: how many gave it. is_first:
-- true in one row of each wallet, what most people gave.
CREATE TABLE accounts.public_name (
    wallet   bytea   NOT NULL CHECK (octet_length(wallet) = 20),
    what     text    NOT NULL CHECK (what IN ('name', 'mark')),
    key      text    NOT NULL,
    said     text    NOT NULL,
    people   int     NOT NULL,
    is_first boolean NOT NULL,
    PRIMARY KEY (wallet, what, key)
);
CREATE INDEX public_name_by_key ON accounts.public_name (key, people DESC, wallet) WHERE what = 'name';
CREATE INDEX public_name_by_people ON accounts.public_name (people DESC, wallet) WHERE is_first;

-- An account's prediction for a token, and the control that was drawn with it: the same prediction for a random token,
-- of no account. kind, state: as in domain/community/flag_calls.py. at_s, block_number: the index's last block when it
-- was made; ends_s: by the chain's clock. held_raw: what 0.1 eth bought then; slot_layout, slot_base: where the token
-- keeps its balances, so that the sell can be simulated. pool, liquidity: the place where it was traded most, and for
-- drains the liquidity there that was not the account's; deployer_raw: what the deployer held by its trades. seen_...:
-- the first of the two readings that prove runs. looked_at: the last review, by the system clock; answered_s: the
-- latest time of the chain for which the state could be read. settled_...: the proof.
CREATE TABLE accounts.flag (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id    bigint      REFERENCES accounts.account,
    control_of    bigint      UNIQUE REFERENCES accounts.flag,
    token         bytea       NOT NULL CHECK (octet_length(token) = 20),
    kind          text        NOT NULL CHECK (kind IN ('runs', 'drains', 'dead')),
    state         text        NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'seen', 'proved', 'failed', 'void')),
    made_at       timestamptz NOT NULL,
    at_s          int         NOT NULL,
    block_number  int         NOT NULL,
    ends_s        int         NOT NULL,
    held_raw      numeric     CHECK (held_raw > 0),
    slot_layout   text,
    slot_base     numeric,
    pool          bytea,
    liquidity     numeric     CHECK (liquidity > 0),
    deployer_raw  numeric     CHECK (deployer_raw > 0),
    seen_s        int,
    seen_block    int,
    seen_wei      numeric,
    looked_at     timestamptz,
    answered_s    int,
    settled_at    timestamptz,
    settled_s     int,
    settled_block int,
    settled_tx    bytea       CHECK (octet_length(settled_tx) = 32),
    settled_by    text        CHECK (settled_by IN ('price', 'liquidity', 'deployer')),
    settled_wei   numeric,
    CHECK ((account_id IS NULL) = (control_of IS NOT NULL)),
    CHECK ((slot_layout IS NULL) = (slot_base IS NULL)),
    CHECK ((pool IS NULL) = (liquidity IS NULL) OR kind <> 'drains'),
    CHECK ((held_raw IS NOT NULL AND slot_layout IS NOT NULL AND pool IS NOT NULL) OR kind = 'drains'),
    CHECK (liquidity IS NOT NULL OR deployer_raw IS NOT NULL OR kind <> 'drains'),
    CHECK ((state = 'seen') = (seen_s IS NOT NULL AND settled_at IS NULL)),
    CHECK ((state IN ('open', 'seen')) = (settled_at IS NULL)),
    CHECK ((state = 'proved') = (settled_by IS NOT NULL))
);
CREATE INDEX flag_by_account ON accounts.flag (account_id, made_at) WHERE account_id IS NOT NULL;
CREATE UNIQUE INDEX flag_once ON accounts.flag (account_id, token, kind) WHERE state IN ('open', 'seen') AND account_id IS NOT NULL;
CREATE INDEX flag_waiting ON accounts.flag (looked_at NULLS FIRST, id) WHERE state IN ('open', 'seen');
CREATE INDEX flag_proved ON accounts.flag (settled_at DESC, id DESC) WHERE state = 'proved' AND account_id IS NOT NULL;
CREATE INDEX flag_by_token ON accounts.flag (token, state) WHERE account_id IS NOT NULL;
CREATE INDEX flag_controls ON accounts.flag (kind, state) WHERE account_id IS NULL;

-- --- The scorecard ---------------------------------------------------------------------------------------------------

-- Verdicts scored by real trades (domain/scorecard/scorecard.py), stored since trades and receipts are not kept for
-- ever. evidence_id: the verdict; from_s, from_number: its block. hour: from_s / 3600; only the first verdict of a
-- token, hour and code is scored. by_...: the trade, the failed sell or the later check that decided it.
CREATE TABLE facts.score (
    evidence_id bigint      PRIMARY KEY,
    token       bytea       NOT NULL CHECK (length(token) = 20),
    code        text        NOT NULL,
    level       text        NOT NULL,
    from_number bigint      NOT NULL,
    from_s      int         NOT NULL,
    hour        int         NOT NULL,
    outcome     text        NOT NULL CHECK (outcome IN ('right', 'wrong', 'undecided')),
    cause       text        NOT NULL,
    by_number   bigint,
    by_s        int,
    by_tx       bytea       CHECK (length(by_tx) = 32),
    by_wallet   bytea       CHECK (length(by_wallet) = 20),
    cost_bps    int,
    scored_at   timestamptz NOT NULL
);
CREATE INDEX score_of_hour ON facts.score (token, hour, code, evidence_id);
CREATE INDEX score_wrong ON facts.score (from_s DESC, evidence_id DESC) WHERE outcome = 'wrong';

-- How many scores there are of each code and outcome, and of how many tokens. Written with the scores.
CREATE TABLE facts.score_count (
    code    text   NOT NULL,
    outcome text   NOT NULL,
    scored  bigint NOT NULL CHECK (scored >= 0),
    tokens  bigint NOT NULL DEFAULT 0 CHECK (tokens >= 0),
    PRIMARY KEY (code, outcome)
);

-- How many scores each token has of a code and outcome. Written with the scores.
CREATE TABLE facts.score_token (
    token   bytea  NOT NULL CHECK (length(token) = 20),
    code    text   NOT NULL,
    outcome text   NOT NULL,
    scored  bigint NOT NULL CHECK (scored >= 0),
    PRIMARY KEY (token, code, outcome)
);

-- Verdicts that wait for a receipt which the node did not return. again_at: the time of the next try; tries: tries so
-- far.
CREATE TABLE facts.score_wait (
    evidence_id bigint      PRIMARY KEY,
    token       bytea       NOT NULL CHECK (length(token) = 20),
    code        text        NOT NULL,
    hour        int         NOT NULL,
    tries       int         NOT NULL,
    again_at    timestamptz NOT NULL
);
CREATE INDEX score_wait_again ON facts.score_wait (again_at);
CREATE INDEX score_wait_of_hour ON facts.score_wait (token, hour, code);

-- The evidence up to which verdicts were read for scoring.
CREATE TABLE facts.score_cursor (
    only_one    boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    evidence_id bigint  NOT NULL
);

-- Real sells of plain wallets that failed, of tokens with verdicts, written by a job soon after
-- (services/scorecard/failed_sells.py): later, nodes lack the state to find out why. refused: the token or its pool
-- refused it; false: not found out.
CREATE TABLE facts.failed_sell (
    tx_hash      bytea   PRIMARY KEY CHECK (length(tx_hash) = 32),
    token        bytea   NOT NULL CHECK (length(token) = 20),
    wallet       bytea   NOT NULL CHECK (length(wallet) = 20),
    block_number int     NOT NULL,
    at_s         int     NOT NULL,
    token_raw    numeric NOT NULL CHECK (token_raw > 0),
    refused      boolean NOT NULL
);
CREATE INDEX failed_sell_of_token ON facts.failed_sell (token, at_s);
CREATE INDEX failed_sell_by_block ON facts.failed_sell (block_number);

-- --- Positions of liquidity ------------------------------------------------------------------------------------------

-- The sum of the changes in facts.liquidity, deleted ones included. owner_id: the owner that the pool knows, such as a
-- position manager. liquidity below zero: earlier changes are not known. A position of zero has no row.
CREATE TABLE facts.lp_position (
    pool_id    int     NOT NULL,
    owner_id   int     NOT NULL,
    number     numeric NOT NULL,
    tick_lower int     NOT NULL,
    tick_upper int     NOT NULL,
    liquidity  numeric NOT NULL,
    PRIMARY KEY (pool_id, owner_id, number, tick_lower, tick_upper)
);

-- Transfers of position managers' NFTs, from the zero address when minted, to it when burned: the newest row names the
-- holder. Kept permanently.
CREATE TABLE facts.lp_transfer (
    manager_id   int     NOT NULL,
    number       numeric NOT NULL,
    block_number int     NOT NULL,
    log_index    int     NOT NULL,
    at_s         int     NOT NULL,
    from_id      int     NOT NULL,
    to_id        int     NOT NULL,
    tx_hash      bytea   NOT NULL,
    PRIMARY KEY (manager_id, number, block_number, log_index)
);
CREATE INDEX lp_transfer_by_block ON facts.lp_transfer (block_number);

-- The tick and the active liquidity of a pool with money at the end of each block that changed them; NULL: not known
-- from there on. A row older than the blocks that are kept to find a fork is deleted once a newer such row exists.
CREATE TABLE facts.pool_state (
    pool_id      int NOT NULL,
    block_number int NOT NULL,
    tick         int,
    liquidity    numeric,
    PRIMARY KEY (pool_id, block_number)
);
CREATE INDEX pool_state_by_block ON facts.pool_state (block_number);

-- --- Reads by key ----------------------------------------------------------------------------------------------------

-- Reads of one pool, wallet or token, for statements that run them for each row of another read. PostgreSQL puts the
-- body in place of the call, so it plans a subquery. Where tables are placed on several nodes
-- (store/server/migrate.py), the node of that key answers. Parameters have numbers, since names could be taken for
-- columns.

-- pool, after and up to which second, how many, least token amount; the newest first
CREATE FUNCTION facts.newest_trades(int, int, int, int, numeric) RETURNS SETOF facts.trade LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.trade AS trade
    WHERE trade.pool_id = $1 AND trade.at_s > $2 AND trade.at_s <= $3 AND trade.token_raw >= $5
    ORDER BY trade.at_s DESC, trade.block_number DESC, trade.log_index DESC LIMIT $4
$$;
-- As newest_trades, ordered by the second only, as the index is: trades of one second come in no order.
CREATE FUNCTION facts.trades_by_second(int, int, int, int) RETURNS SETOF facts.trade LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.trade AS trade WHERE trade.pool_id = $1 AND trade.at_s > $2 AND trade.at_s <= $3
    ORDER BY trade.at_s DESC LIMIT $4
$$;
-- pool, moments, how many seconds before a moment to look, the second after which to look, how many trades are
-- searched, least wei, whether the quote is eth: the last trade before each moment that sets a price. Bounded, because
-- anybody can make any number of trades that set none. Ordered by the second only, as the index is: sorting the trades
-- of a second would read dozens for each price.
CREATE FUNCTION facts.priced_trades(int, int[], int, int, int, numeric, boolean) RETURNS TABLE (
    moment_s int, buys boolean, token_raw numeric, quote_raw numeric, eth_wei numeric, kept_raw numeric
) LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT moment.at_s, last.buys, last.token_raw, last.quote_raw, last.eth_wei, last.kept_raw
    FROM unnest($2) AS moment (at_s) CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT * FROM facts.trade AS trade WHERE trade.pool_id = $1 AND trade.at_s <= moment.at_s
                AND trade.at_s > moment.at_s - $3 AND trade.at_s > $4
            ORDER BY trade.at_s DESC LIMIT $5
        ) AS one
        WHERE one.token_raw > 0 AND one.quote_raw > 0
            AND coalesce(one.eth_wei, CASE WHEN $7 THEN one.quote_raw END) >= $6
        ORDER BY one.at_s DESC LIMIT 1
    ) AS last
$$;
-- pool, second; between which two seconds, constants of a statement by which its plan leaves out days
CREATE FUNCTION facts.trades_in_second(int, int, int, int) RETURNS SETOF facts.trade
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.trade AS trade
    WHERE trade.pool_id = $1 AND trade.at_s = $2 AND trade.at_s BETWEEN $3 AND $4 OFFSET 0
$$;
-- trader, from which second on
CREATE FUNCTION facts.trades_of(int, int) RETURNS SETOF facts.trade LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.trade AS trade WHERE trade.trader_id = $1 AND trade.at_s >= $2
$$;
-- wallet, token
CREATE FUNCTION facts.position_of(int, int) RETURNS SETOF facts.position LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.position AS own WHERE own.wallet_id = $1 AND own.token_id = $2
$$;
-- wallet, how many, least that is held; those of the newest tokens
CREATE FUNCTION facts.newest_positions(int, int, numeric) RETURNS SETOF facts.position LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.position AS own WHERE own.wallet_id = $1 AND own.held_raw >= $3 ORDER BY own.token_id DESC LIMIT $2
$$;
-- wallet, how many; in no order
CREATE FUNCTION facts.positions_of(int, int) RETURNS SETOF facts.position LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.position AS own WHERE own.wallet_id = $1 LIMIT $2
$$;
-- token, how many; in no order
CREATE FUNCTION facts.buyers_in(int, int) RETURNS SETOF facts.position LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.position AS one WHERE one.token_id = $1 AND one.buys > 0 LIMIT $2
$$;
-- token, how many. BETWEEN, and in that order: otherwise the plan scans all positions.
CREATE FUNCTION facts.positions_in(int, int) RETURNS SETOF facts.position LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.position AS one WHERE one.token_id BETWEEN $1 AND $1 ORDER BY one.token_id, one.wallet_id LIMIT $2
$$;
-- wallet, how many; the newest
CREATE FUNCTION facts.newest_closings(int, int) RETURNS SETOF facts.closing LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.closing AS one WHERE one.wallet_id = $1 ORDER BY one.at_s DESC LIMIT $2
$$;
-- token, least amount
CREATE FUNCTION facts.large_transfers(int, numeric) RETURNS SETOF facts.transfer LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.transfer AS one WHERE one.token_id = $1 AND one.amount_raw >= $2
$$;
-- token, wallet: amounts received (above zero) and sent (below zero)
CREATE FUNCTION facts.moves_of(int, int) RETURNS TABLE (raw numeric) LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT one.amount_raw FROM facts.transfer AS one WHERE one.to_id = $2 AND one.token_id = $1
    UNION ALL SELECT -one.amount_raw FROM facts.transfer AS one WHERE one.from_id = $2 AND one.token_id = $1
$$;
-- second, block
CREATE FUNCTION facts.trades_at(int, int) RETURNS SETOF facts.trade LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.trade AS trade WHERE trade.at_s = $1 AND trade.block_number = $2
$$;
-- pool, after and up to which second, before which block and log index, between which two seconds: the last trade that
-- moved tokens. The last two are constants of a statement, by which its plan leaves out days.
CREATE FUNCTION facts.last_trade_before(int, int, int, int, int, int, int) RETURNS SETOF facts.trade
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.trade AS trade
    WHERE trade.pool_id = $1 AND trade.at_s > $2 AND trade.at_s <= $3 AND trade.token_raw > 0
        AND (trade.block_number, trade.log_index) < ($4, $5) AND trade.at_s BETWEEN $6 AND $7
    ORDER BY trade.at_s DESC, trade.block_number DESC, trade.log_index DESC LIMIT 1
$$;
-- from and up to which second
CREATE FUNCTION facts.transfers_within(int, int) RETURNS SETOF facts.transfer LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.transfer AS one WHERE one.at_s BETWEEN $1 AND $2
$$;
-- from and up to which second, after and up to which block: the highest price of each pool, among the trades that the
-- index trade_dear has. Goes from pool to pool along that index.
CREATE FUNCTION facts.dear_prices(int, int, int, int) RETURNS TABLE (pool_id int, price numeric) LANGUAGE sql STABLE PARALLEL SAFE AS $$
    WITH RECURSIVE dear AS (
        (SELECT trade.pool_id, coalesce(trade.eth_wei, trade.quote_raw) / nullif(trade.token_raw, 0) AS price
        FROM facts.trade AS trade
        WHERE trade.at_s BETWEEN $1 AND $2 AND trade.block_number > $3 AND trade.block_number <= $4
            AND coalesce(trade.eth_wei, trade.quote_raw) * 10000000 > trade.token_raw AND trade.token_raw > 0
        ORDER BY trade.pool_id, coalesce(trade.eth_wei, trade.quote_raw) / nullif(trade.token_raw, 0) DESC LIMIT 1)
        UNION ALL SELECT one.* FROM dear CROSS JOIN LATERAL (
            SELECT trade.pool_id, coalesce(trade.eth_wei, trade.quote_raw) / nullif(trade.token_raw, 0) AS price
            FROM facts.trade AS trade
            WHERE trade.at_s BETWEEN $1 AND $2 AND trade.block_number > $3 AND trade.block_number <= $4
                AND coalesce(trade.eth_wei, trade.quote_raw) * 10000000 > trade.token_raw AND trade.token_raw > 0
                AND trade.pool_id > dear.pool_id
            ORDER BY trade.pool_id, coalesce(trade.eth_wei, trade.quote_raw) / nullif(trade.token_raw, 0) DESC LIMIT 1
        ) AS one
    ) SELECT dear.pool_id, dear.price FROM dear
$$;
