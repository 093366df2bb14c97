-- The schema of release 0.1.0, by capability. Later releases change it by migrations of their own.

-- facts: what can be had again from the chain, or was proven of it. Rebuilds may touch only this schema.
CREATE SCHEMA facts;
-- jobs: work to be done later, written in the transaction of whoever wants it done.
CREATE SCHEMA jobs;
-- accounts: small, backed up, never dropped, and made again from nothing. The wire calls an account "mite".
CREATE SCHEMA accounts;

-- --- Checks ----------------------------------------------------------------------------------------------------------

-- One row a check: the canonical document it was judged by. verdict_* and loss_bps are readings of it, for searching.
-- asked: somebody asked for the check; a token that nobody asked for within a day is not checked again. deep, holders:
-- whether the check was deep, and how many real holders' sells it tried; a check that tried none does not refute one
-- that did. loss_bps: the loss of the round trip in hundredths of a percent; NULL: not measured.
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
-- The checks of a token with a code, in the order of the chain: those before a block, and those after it.
CREATE INDEX evidence_by_code ON facts.evidence (token, verdict_code, block_number, id);

-- What a check began with and what it asked the node, to be asked again: kept for about a day. The evidence stays.
-- trips: one piece of compressed JSON for each.
CREATE TABLE facts.proof (
    evidence_id bigint      PRIMARY KEY REFERENCES facts.evidence (id) ON DELETE CASCADE,
    made_at     timestamptz NOT NULL,
    began       bytea       NOT NULL,
    trips       bytea[]     NOT NULL
);
-- They are compressed already.
ALTER TABLE facts.proof ALTER COLUMN trips SET STORAGE EXTERNAL;

-- Wallets of checks that met a refusal or a loss, by what they were drawn from: for a day each later check of the token
-- tries them again. at: the venue. number: -1 for the main wallet.
CREATE TABLE facts.recalled_wallet (
    token   bytea       NOT NULL,
    at      text        NOT NULL,
    seed    bytea       NOT NULL,
    number  smallint    NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (token, at, seed, number)
);
CREATE INDEX recalled_wallet_seen_at ON facts.recalled_wallet (seen_at);

-- --- The chain -------------------------------------------------------------------------------------------------------

-- What happened on the chain. Written by the sync alone, in the order of blocks, each block once.
-- Addresses are interned: they stand in every row, and 4 bytes are less than 21. Numbers of blocks and seconds
-- since 1970 are int4: enough until 2038, and a row of a trade with its indexes has to be small.

CREATE TABLE facts.address (
    id      int   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address bytea NOT NULL UNIQUE CHECK (length(address) = 20)
);

-- Another number after every reorganisation, and for every chain that is begun: what was counted while it stayed is of
-- the chain that is there. From a sequence that nothing restarts.
CREATE SEQUENCE facts.rewinds;

-- How far the chain was followed. first_hash: of that chain's block 0, and is_local: whether it is a local chain, which
-- may be begun anew: by them a database is not taken for another chain's. start_number: the first block that was read
-- in full. older_number: of the blocks before it launches and pools are known up to here; start_number: of all of them,
-- the index is whole. trades_from_s: raw trades before it were folded into position_base and are gone. changes: how
-- often somebody but the sync changed what was folded. rewinds: from facts.rewinds; no default, so that none is
-- forgotten. positions_from: the block from which on positions of liquidity, transfers of their NFTs and states of
-- pools are folded; a pool that was opened earlier may have more. NULL: no block was folded yet.
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

-- Blocks by which a fork is found: the newest ones, and of older ones every thousandth.
CREATE TABLE facts.block (
    number int   PRIMARY KEY,
    hash   bytea NOT NULL CHECK (length(hash) = 32),
    at_s   int   NOT NULL
);

-- Every reorganisation, written with it: facts above block to_number, which is of to_s, were taken away. By it whoever
-- read them steps back. from_number: the newest block that was taken away; NULL: not known.
CREATE TABLE facts.rewound (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    to_number   int    NOT NULL,
    to_s        int    NOT NULL,
    from_number int
);

-- Everywhere a token may trade: curves, and pools of any two currencies. at: a contract's address or a v4 pool's
-- id. quote_id is the money side; in_money_from: the block since which it is money, NULL: neither side is.
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
-- The oldest pools of a token, and those where it is the money, however many there are.
CREATE INDEX pool_by_token ON facts.pool (token_id, id);
CREATE INDEX pool_by_quote ON facts.pool (quote_id, id);
CREATE INDEX pool_by_block ON facts.pool (block_number);

-- generation 2: on a curve of its own; 1: in a v3 pool from its first block on. sender_id: who sent the launch;
-- the zero address: not known, as of what is older than the index's first block. symbol_key: that of facts.token again:
-- the bearers of a symbol are ordered by their launches, and there may be ten thousand.
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
-- A deployer's newest without reading all that he launched, and without a look at each row: they lie far apart.
CREATE INDEX launch_by_deployer ON facts.launch (deployer_id, block_number, log_index) INCLUDE (token_id, generation);
CREATE INDEX launch_by_block ON facts.launch (block_number);
CREATE INDEX launch_by_time ON facts.launch (at_s);
CREATE INDEX launch_by_symbol ON facts.launch (symbol_key, block_number, log_index) INCLUDE (token_id);

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
CREATE INDEX launch_step_by_time ON facts.launch_step (at_s);

-- eth_wei: NULL where the quote is eth or weth, and quote_raw is it; also NULL where it is not known, as micro_usd.
-- kept_raw: what the launchpad kept of a trade on a curve, fee and tax, in the quote; NULL anywhere else.
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
-- The newest trades of a pool without reading all it had.
CREATE INDEX trade_by_pool ON facts.trade (pool_id, at_s);
-- One column: repeated keys share one entry, and a day's partition is narrow enough.
CREATE INDEX trade_by_trader ON facts.trade (trader_id);
-- Large trades, by what they were worth and by how many tokens moved: by these a rule is tried on the last days without
-- reading all that happened in them. The bounds are also in store/watch/happening_trades.py: below them so many trades
-- are large enough that the newest ones tell. What has no eth_wei and is no eth is among them by its own units, and is
-- left out when it is looked at. Of more than a thousandth of a launch's supply is every second trade, so the bound is
-- a hundredth.
CREATE INDEX trade_large_eth ON facts.trade (coalesce(eth_wei, quote_raw))
    WHERE coalesce(eth_wei, quote_raw) > 100000000000000000;
CREATE INDEX trade_large_usd ON facts.trade (micro_usd) WHERE micro_usd > 300000000;
CREATE INDEX trade_large_share ON facts.trade (token_raw) WHERE token_raw > 10000000000000000000000000;
-- The dearest trades of each pool, in wei a base unit: by them moves that were worth much are found. Above the bound a
-- launch's whole supply is worth more than 100 eth; below it moves of so much are large parts of a supply.
CREATE INDEX trade_dear ON facts.trade (pool_id, (coalesce(eth_wei, quote_raw) / nullif(token_raw, 0)) DESC)
    WHERE coalesce(eth_wei, quote_raw) * 10000000 > token_raw AND token_raw > 0;

-- number: the NFT of a position manager, or the salt of another owner in a v4 pool; 0: none. active_raw: the pool's
-- active liquidity just before the change; 0 also where the change lay out of range; NULL: not known.
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
-- What a wallet gave away and was given; what was a large part of any launch's supply, and who was given a thousandth
-- of it or more at once (store/watch/happening_moves.py, store/watch/bags.py).
CREATE INDEX transfer_by_sender ON facts.transfer (from_id);
CREATE INDEX transfer_by_receiver ON facts.transfer (to_id);
CREATE INDEX transfer_large ON facts.transfer (amount_raw) WHERE amount_raw > 1000000000000000000000000;
CREATE INDEX transfer_given ON facts.transfer (token_id, to_id) WHERE amount_raw >= 1000000000000000000000000;

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

-- When a wallet was first met as blocks passed, and who first sent it eth in a plain transfer. What is older than the
-- index stands in facts.older_origin. A plain transfer: one without calldata, of nobody's but its sender's making. With
-- a block and no funder the wallet had its first eth otherwise (a bridge, a contract's call), or did something before
-- anybody was seen to send it any: whoever sends it some later is not its funder.
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

-- Found once in an archive, and kept for ever: rebuilds and reorganisations leave it alone. first_number NULL:
-- nothing ever reached the wallet up to searched_number.
CREATE TABLE facts.older_origin (
    wallet          bytea PRIMARY KEY CHECK (length(wallet) = 20),
    first_number    int,
    first_s         int,
    funder          bytea CHECK (length(funder) = 20),
    searched_number int   NOT NULL
);

-- One row a wallet and token that it ever traded: its trades folded in order, as domain/market/profit.py says.
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
-- Some of a token's traders from any place on, however many there are.
CREATE INDEX position_by_token ON facts.position (token_id, wallet_id);

-- The same of trades whose rows are gone: where a fold begins.
CREATE TABLE facts.position_base (LIKE facts.position, PRIMARY KEY (wallet_id, token_id));
CREATE INDEX position_base_token_id_idx ON facts.position_base (token_id);

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
CREATE INDEX closing_by_wallet ON facts.closing (wallet_id, at_s)
    INCLUDE (token_id, spent_wei, got_wei, block_number, log_index);

-- What a token says of itself, read by a job. Texts are as it gave them, cut short: cleaned where they are shown.
-- symbol_key: the symbol as it is looked for: cleaned, and without regard to capitals.
CREATE TABLE facts.token (
    token       bytea PRIMARY KEY CHECK (length(token) = 20),
    symbol      text,
    name        text,
    decimals    smallint,
    supply_raw  numeric,
    read_number int   NOT NULL,
    symbol_key  text
);
-- Tokens by symbol or name, those read first first: what was read first is the older one of two that look alike.
CREATE INDEX token_by_symbol ON facts.token (symbol_key, read_number);
CREATE INDEX token_by_name ON facts.token (lower(left(name, 64)), read_number);
-- Tokens by the beginning of their symbol or name, on a server of any collation.
CREATE INDEX token_by_symbol_start ON facts.token (symbol_key text_pattern_ops);
CREATE INDEX token_by_name_start ON facts.token (lower(left(name, 64)) text_pattern_ops);
-- Tokens of which a trade is a large part with few base units.
CREATE INDEX token_small ON facts.token (token) WHERE supply_raw > 0 AND supply_raw < 1000000000000000000000000000;

-- --- Jobs ------------------------------------------------------------------------------------------------------------

-- key: what the job is about; of one kind and key there is at most one row. claim, claimed_until: whoever took it, and
-- how long it is theirs; then somebody else may take it. tries: how often it was taken. again_at: wished for again
-- while somebody had it, to be run then. failed_at: given up then, and kept for people. lane, owner, host: of kinds
-- that go in turn, in which lane it waits, whose it is, and at which host it works; NULL: it was not sorted yet, or is
-- not due.
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

-- Whose turn was the last one of a lane: all workers go on from there.
CREATE TABLE jobs.turn (
    kind  text   NOT NULL,
    lane  text   NOT NULL,
    owner bigint NOT NULL,
    PRIMARY KEY (kind, lane)
);

-- --- Boards ----------------------------------------------------------------------------------------------------------

-- What lies in a launch's curve, as it tells itself: buys less what was kept, less sells with what was kept, with
-- what it bought back of what was kept. last_s: of its newest trade, or of its launch. Curves whose launch is older
-- than the index's first block have no row: not all of their trades are known.
-- token_id and threshold_raw stand here, too, so that thousands of curves are put in order without a look elsewhere.
CREATE TABLE facts.curve (
    pool_id       int     PRIMARY KEY,
    token_id      int     NOT NULL,
    threshold_raw numeric NOT NULL,
    raised_raw    numeric NOT NULL,
    last_s        int     NOT NULL
);
CREATE INDEX curve_by_last ON facts.curve (last_s);

-- A curve bought its token with what it had kept.
CREATE TABLE facts.buyback (
    block_number int     NOT NULL,
    log_index    int     NOT NULL,
    at_s         int     NOT NULL,
    pool_id      int     NOT NULL,
    quote_raw    numeric NOT NULL,
    tx_hash      bytea   NOT NULL,
    PRIMARY KEY (block_number, log_index)
);

-- What those behind a launch, its deployer and whom the deployer first sent eth, did with its token in the last days,
-- and what anybody burned of it. what: sold, moved, burned. other_id: whom it was moved to.
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

-- Tokens that a crowd bought, as domain/market/fairness.py tells one, found out by block_number: it stays so.
CREATE TABLE facts.fair_token (
    token_id     int PRIMARY KEY,
    block_number int NOT NULL
);

-- Who closed the most profit in a span of time up to block_number: 24h, 7d, 30d, all. Counted now and then, whole.
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

-- Up to which block a span was counted: also where nobody won.
CREATE TABLE facts.winners_counted (
    span         text PRIMARY KEY,
    block_number int  NOT NULL,
    at_s         int  NOT NULL
);

-- What a token's buyers are exposed to, as it was read last. insiders_bps: the share of the supply that insiders hold.
-- free_bps: of its liquidity what somebody can withdraw now; unproven_bps: what is in unknown contracts, or with nobody
-- knows whom. NULL: could not be found out. ..._at: when it was read, by our clock; NULL: never.
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

-- A token's transfers, folded into a book (domain/holders/book.py): everything up to the end of the block that is
-- named. It is read off the chain by that block's hash alone, and that is held against the chain whenever it is used:
-- no row of the index stands behind it. state: as domain/holders/read_state.py says; of what is unread there is no row.
-- pruned: the node had no logs of the blocks before first_number any more. asked_at: when somebody last asked
-- for it.
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

-- What only this service knows. name: nonce, from which the texts to sign are made.
CREATE TABLE accounts.secret (
    name  text  PRIMARY KEY,
    value bytea NOT NULL CHECK (octet_length(value) = 32)
);

-- A wallet that once showed that it is its own. keys_made: how many keys it ever made, which is part of the next text
-- to sign: what was signed once is of no use again. chats_linked: how many chats it ever linked: with the next one a
-- link is of no use any more. guarded_from: how far the chain was known when it was made: what its wallet holds is
-- guarded from its own block on, and what is read of older blocks later on is no news.
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

-- hash: SHA-256 of the key, which nobody has but its owner. start: its first eight characters. kind session: of who
-- signed in to the pages: only a cookie carries it, it ends by itself, and it is none of the few that an account may
-- make.
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

-- Calls of an account in a day of UTC that count against its daily limit. granted: how many of those that came with the
-- last change had room. leased: those of the day's calls that processes took ahead and have not reported as made: calls
-- contains them, so calls made are calls - leased. What a killed process had not made stays leased until the day is
-- over. lent: how many of those that the last change wanted it got.
CREATE TABLE accounts.day (
    account_id bigint NOT NULL REFERENCES accounts.account,
    day        date   NOT NULL,
    calls      int    NOT NULL CHECK (calls >= 0),
    granted    int    NOT NULL,
    leased     int    NOT NULL DEFAULT 0 CHECK (leased >= 0),
    lent       int    NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, day)
);

-- Calls of the last minute, by caller: "mite:" and its number, or an address. taken_ms: since 1970. calls: 1, or -1
-- where a call is handed back. Each process holds its own in memory, and reads these when it starts.
CREATE TABLE accounts.call (
    caller   text     NOT NULL,
    taken_ms bigint   NOT NULL,
    calls    smallint NOT NULL
);
CREATE INDEX call_taken ON accounts.call (taken_ms);

-- How many accounts an address made this day. address_hash: HMAC-SHA256 of the address; days that are over are deleted.
CREATE TABLE accounts.made_from (
    day          date  NOT NULL,
    address_hash bytea NOT NULL CHECK (length(address_hash) = 32),
    made         int   NOT NULL,
    PRIMARY KEY (day, address_hash)
);

-- --- Credits ---------------------------------------------------------------------------------------------------------

-- Calls past the day's limit that were paid for. Conserved at every moment, for each account: what its payments
-- credited = credits + its holds + spent.

-- Where payments went or go, from the block after from_block on. to_block: the newest when another took its place,
-- which ends it a while later; null: none did.
CREATE TABLE accounts.pay_to (
    address    bytea  PRIMARY KEY CHECK (octet_length(address) = 20),
    from_block bigint NOT NULL,
    to_block   bigint
);

-- What an account's own wallet paid in one transaction, once for ever. amount_raw: base units of usdg.
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

-- A credit of a call that is not answered yet: spent once it is, else given back. until_ms, since 1970: from then on it
-- is nobody's call any more, because the process that had it is gone, and goes back.
CREATE TABLE accounts.hold (
    id         uuid   PRIMARY KEY,
    account_id bigint NOT NULL REFERENCES accounts.balance,
    until_ms   bigint NOT NULL
);
CREATE INDEX hold_account ON accounts.hold (account_id);

-- --- Rules and alerts ------------------------------------------------------------------------------------------------

-- Rules and follows change in the order of these numbers: whoever changes any holds one advisory lock from before it
-- takes a number to the end of its transaction, so that no lower number comes to light after a higher one.
CREATE SEQUENCE accounts.watch_changes;

-- from_number: facts of later blocks count. rewound: the last reorganisation before it was made; a later one that goes
-- back further takes from_number with it. ended_at: no longer followed; kept until every reader has seen it.
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

-- said: the canonical text. who_address: the wallet, or the token whose deployer or creator is meant; wallet: who that
-- is. over_raw: wei, millionths of a dollar, or millionths of the whole, as unit says. hits: alerts it raised, those
-- beyond a minute's limit counted, retracted ones not. A paused rule matches nothing; when it goes on, it counts from
-- the blocks after that: from_number.
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

-- How far facts were read for alerts, and the last reorganisation that was undone.
CREATE TABLE accounts.alert_cursor (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    number   int     NOT NULL,
    at_s     int     NOT NULL,
    rewound  bigint  NOT NULL
);

-- One row that an account is told. source_id: of the rule, the follow, or the channel (service, test). more: not a
-- fact, but how many more there were in that minute. retracted_at: a reorganisation took the fact away. An alert of an
-- unlock is not about a block: at_s is when it unlocks, wallet who can withdraw then.
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
    made_at      timestamptz NOT NULL,
    retracted_at timestamptz
);
CREATE INDEX alert_inbox ON accounts.alert (account_id, id DESC);
-- Who was told of a verdict: found among however many alerts an account has.
CREATE INDEX alert_verdict ON accounts.alert (account_id, token, at_s) WHERE kind = 'bag_guard' AND verb = 'verdict';
CREATE INDEX alert_by_time ON accounts.alert (made_at);
CREATE INDEX alert_by_block ON accounts.alert (block_number) WHERE retracted_at IS NULL;
-- The same fact is told of once, whoever tries it how often.
CREATE UNIQUE INDEX alert_once ON accounts.alert (account_id, kind, source_id, block_number, log_index, verb)
    WHERE retracted_at IS NULL AND more = 0 AND block_number IS NOT NULL;
CREATE UNIQUE INDEX alert_unlock_once ON accounts.alert (account_id, token, wallet, at_s) WHERE kind = 'unlock';
CREATE INDEX alert_unlock_by_time ON accounts.alert (at_s) WHERE kind = 'unlock';
CREATE INDEX alert_more ON accounts.alert (at_s) WHERE retracted_at IS NULL AND more > 0;

-- What one rule, follow or guarded token raised in one minute of the chain's clock (at_s / 60). source_id of the bag
-- guard: the token's number in facts.address, below zero where liquidity leaves: each token has its own twenty a
-- minute, of each account. beyond: those that became no rows; told: how many of them "and n more" spoke of already.
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

-- What holders of a token were last told of its verdict, or what it was when it was first looked at. seen_id: the
-- evidence that was read up to. next_level, next_at: what one check says otherwise, and when it was made; a second one
-- has to agree. told_at: when holders were last told of a change.
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

-- Tokens of which an account is alerted when the verdict changes, whether its wallet holds them or not.
CREATE TABLE accounts.token_watch (
    account_id bigint      NOT NULL REFERENCES accounts.account,
    token      bytea       NOT NULL CHECK (octet_length(token) = 20),
    made_at    timestamptz NOT NULL,
    PRIMARY KEY (account_id, token)
);
CREATE INDEX token_watch_by_token ON accounts.token_watch (token);

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

-- --- Deliveries ------------------------------------------------------------------------------------------------------

-- Where an account is told. kind: webhook, telegram, discord. target: what is sent to, encrypted but for Telegram:
-- whoever knows it could write there; shown: what its owner is shown of it. secret: encrypted; of webhooks only. state:
-- as domain/watch/channels.py says. failing_since: of the failures without a success between them. rests_until: of a
-- channel that fails; before that nothing is sent there. target_hash: an HMAC, by which an account's webhook is found
-- again, whose url is sealed. dropped_to: messages up to this number that wait are not sent: they are dropped, some a
-- run; 0: none are left of them. host: whose server is behind it, by which places are bounded; of Discord each
-- webhook's own, of Telegram each chat's. proven_at: since when it is known that whoever answers there wants this;
-- NULL: not yet. answers_ms: how long its answers take, as domain/watch/channels.py counts it.
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

-- One message to one channel: its rows are of one kind. webhook_id: the same over all tries. retracted: it takes back
-- what its rows said. state: waiting, delivered, failed (tried to the end), dropped (its channel is gone).
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
-- By which an owner reads the newest of a channel.
CREATE INDEX delivery_of_channel ON accounts.delivery (channel_id, id DESC);
-- What is sent before other messages of its channel.
CREATE INDEX delivery_urgent ON accounts.delivery (channel_id)
    WHERE state = 'waiting' AND kind IN ('bag_guard', 'service');

-- Each try, for seven days: by it a person sees what became of a message. status: what was answered; null: nothing was.
CREATE TABLE accounts.delivery_try (
    delivery_id bigint      NOT NULL REFERENCES accounts.delivery ON DELETE CASCADE,
    number      int         NOT NULL,
    tried_at    timestamptz NOT NULL,
    status      int,
    error       text,
    took_ms     int         NOT NULL,
    PRIMARY KEY (delivery_id, number)
);

-- Every target that was tried to be set, for as long as it counts against the limits of the account and the target's
-- host. failed: until the test has arrived; of a host those alone count.
CREATE TABLE accounts.channel_attempt (
    account_id bigint      NOT NULL REFERENCES accounts.account,
    host       text        NOT NULL,
    made_at    timestamptz NOT NULL,
    failed     boolean     NOT NULL DEFAULT true
);
CREATE INDEX channel_attempt_account ON accounts.channel_attempt (account_id, made_at);
CREATE INDEX channel_attempt_host ON accounts.channel_attempt (host, made_at) WHERE failed;
CREATE INDEX channel_attempt_time ON accounts.channel_attempt (made_at);

-- Every message that its owner had sent again, for as long as it counts against the limit of an hour.
CREATE TABLE accounts.resend (
    account_id bigint      NOT NULL REFERENCES accounts.account,
    made_at    timestamptz NOT NULL
);
CREATE INDEX resend_by_account ON accounts.resend (account_id, made_at);
CREATE INDEX resend_by_time ON accounts.resend (made_at);

-- Rows that went to a host in the minute that began then, of webhooks that did not echo the challenge.
CREATE TABLE accounts.host_minute (
    host     text        PRIMARY KEY,
    began_at timestamptz NOT NULL,
    rows     int         NOT NULL CHECK (rows >= 0)
);
CREATE INDEX host_minute_by_time ON accounts.host_minute (began_at);

-- --- Practice and its league -----------------------------------------------------------------------------------------

-- Pretend eth, traded at the chain's own prices. eth_wei is given_wei, less what buys paid, and what sells
-- brought; held_raw is what was bought, less what was sold and written off. No row: nothing was ever done.

-- given_wei: what it began with, and every gift. week_s: the Monday up to which gifts were looked at. apart_wei: gains
-- of sells that do not count for the league: they are no part of eth_wei, and are never spent.
CREATE TABLE accounts.practice_account (
    account_id bigint  PRIMARY KEY REFERENCES accounts.account,
    eth_wei    numeric NOT NULL CHECK (eth_wei >= 0),
    given_wei  numeric NOT NULL CHECK (given_wei >= 0),
    week_s     bigint  NOT NULL,
    apart_wei  numeric NOT NULL DEFAULT 0 CHECK (apart_wei >= 0)
);

-- cost_wei: of what is held. slot_layout, slot_base: where the token keeps its balances; null: not known. bought_at:
-- when it was last bought. at: the pool, the curve or the id of the pool where it is sold; null: not known. failed_at:
-- when all of it was first to be sold and that failed; null: never, or a sell went through since. stuck_at: since when
-- it is known that it cannot be sold, or taken for known.
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

-- Only ever added to. Buys and sells were priced at the block of that number and hash; a reorganisation changes none of
-- them. cost_wei: of a sell what that part had cost. sells_back: of a buy. counted: of a sell, for the league; why_not:
-- where it is not.
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

-- Answers to requests that named themselves, kept seven days. key_hash: of the name; asked_hash: of tool and
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

-- An account's week in the practice league: what its sells that count came to. week_s: Monday 00:00 UTC, in seconds
-- since 1970. is_agent: as the account is tagged; a week that is over keeps it. won: sells with a profit. last_s: of
-- the last sell.
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

-- The boards, read in their order: of everybody, and of those with a tag or without. Three sells are an entry.
CREATE INDEX league_board ON accounts.league_week (week_s, profit_wei DESC, sells, last_s, account_id)
    WHERE sells >= 3;
CREATE INDEX league_board_of ON accounts.league_week (week_s, is_agent, profit_wei DESC, sells, last_s, account_id)
    WHERE sells >= 3;

-- How many entries a week has, and how many accounts with too few sells for one: counting a hundred thousand rows takes
-- longer than all the rest of a board. Written with them, where a first or a third sell or a tag changes it.
CREATE TABLE accounts.league_count (
    week_s   int     NOT NULL,
    is_agent boolean NOT NULL,
    on_board int     NOT NULL CHECK (on_board >= 0),
    too_few  int     NOT NULL CHECK (too_few >= 0),
    PRIMARY KEY (week_s, is_agent)
);

-- --- Marks and flags -------------------------------------------------------------------------------------------------

-- One row an account and wallet. name: as the account wrote it; name_key: as names are compared. When it is public
-- domain/community/marks.py says.
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

-- What enough people said of wallets: counted now and then by a job, whole. what, key: a name as names are compared, or
-- a mark; said: a name as most wrote it, or the mark; people: how many gave it. is_first: one row a wallet, what most
-- said.
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

-- What an account says will become of a token, and the control that was drawn with it: the same of a token by chance,
-- by nobody. kind, state: as domain/community/flag_calls.py says. at_s, block_number, ends_s: by the chain's clock,
-- where the index stood. held_raw: what 0.1 eth bought then; slot_layout, slot_base: where the token keeps its
-- balances, for it to be sold again. pool, liquidity: where it was traded most, and of drains the liquidity in it that
-- was not the account's; deployer_raw: what the deployer held by his trades. seen_...: the first reading of two by
-- which it runs. looked_at: by our clock; answered_s: the chain's time when it could last be found out. settled_...:
-- the proof.
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

-- What became of verdicts, by what was really traded later (domain/scorecard/scorecard.py): a reading of facts, kept
-- because trades and receipts go. evidence_id: of the verdict; from_s, from_number: its block. hour: from_s / 3600: of
-- a token, an hour and a code the first verdict alone is scored. by_...: of the trade, of the failed sell, or of the later
-- check that decided it.
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

-- How many of each there are, and of how many tokens: written with them.
CREATE TABLE facts.score_count (
    code    text   NOT NULL,
    outcome text   NOT NULL,
    scored  bigint NOT NULL CHECK (scored >= 0),
    tokens  bigint NOT NULL DEFAULT 0 CHECK (tokens >= 0),
    PRIMARY KEY (code, outcome)
);

-- How many verdicts of each token are in a count: written with them.
CREATE TABLE facts.score_token (
    token   bytea  NOT NULL CHECK (length(token) = 20),
    code    text   NOT NULL,
    outcome text   NOT NULL,
    scored  bigint NOT NULL CHECK (scored >= 0),
    PRIMARY KEY (token, code, outcome)
);

-- Verdicts of which the node did not give a receipt. again_at: when they are tried again; tries: how often they were.
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

-- Up to which evidence verdicts were scored.
CREATE TABLE facts.score_cursor (
    only_one    boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    evidence_id bigint  NOT NULL
);

-- Real sells of plain wallets that failed, of tokens with verdicts, found soon after (services/scorecard/failed_sells.py):
-- later nodes have no state to find out why. refused: not for a reason of their own; false: not found out.
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

-- The sum of the changes in facts.liquidity, also of those that were deleted. owner_id: whom the pool knows, such as a
-- position manager. Below zero: earlier changes are not known. No row where it is zero.
CREATE TABLE facts.lp_position (
    pool_id    int     NOT NULL,
    owner_id   int     NOT NULL,
    number     numeric NOT NULL,
    tick_lower int     NOT NULL,
    tick_upper int     NOT NULL,
    liquidity  numeric NOT NULL,
    PRIMARY KEY (pool_id, owner_id, number, tick_lower, tick_upper)
);

-- NFTs of position managers that were minted (from the zero address), given or burned (to it): the newest row says who
-- holds one. Kept for ever.
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

-- The tick and the active liquidity of a pool of money at the end of a block that changed them; NULL: not known from
-- there on. Older rows than the blocks that are kept to find a fork are deleted where a newer one is as old.
CREATE TABLE facts.pool_state (
    pool_id      int NOT NULL,
    block_number int NOT NULL,
    tick         int,
    liquidity    numeric,
    PRIMARY KEY (pool_id, block_number)
);
CREATE INDEX pool_state_by_block ON facts.pool_state (block_number);

-- --- Reads by key ----------------------------------------------------------------------------------------------------

-- Reads of one pool, wallet or token, for statements that make them once for each row of something else. PostgreSQL
-- puts the body in place of the call: its plans are those of a subquery. Where tables are placed on several nodes
-- (store/server/distribute.py) the call asks the node of that key. Parameters have numbers instead of names, which
-- could be taken for columns.

-- pool, after and up to which second, how many, least token amount; the newest first
CREATE FUNCTION facts.newest_trades(int, int, int, int, numeric) RETURNS SETOF facts.trade LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.trade AS trade
    WHERE trade.pool_id = $1 AND trade.at_s > $2 AND trade.at_s <= $3 AND trade.token_raw >= $5
    ORDER BY trade.at_s DESC, trade.block_number DESC, trade.log_index DESC LIMIT $4
$$;
-- The same by the second only, as the index has them: those of one second come in no order.
CREATE FUNCTION facts.trades_by_second(int, int, int, int) RETURNS SETOF facts.trade LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM facts.trade AS trade WHERE trade.pool_id = $1 AND trade.at_s > $2 AND trade.at_s <= $3
    ORDER BY trade.at_s DESC LIMIT $4
$$;
-- pool, moments, how many seconds before a moment to look, the second after which to look, how many trades are passed
-- over, least wei, whether the quote is eth: the last trade before each moment that tells a price. Bounded, because
-- anybody can make any number of trades that tell none. By the second only, as the index has them: to sort the trades
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
-- pool, second; between which two seconds, as above
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
-- token, wallet: what came (above zero) and what went
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
-- from and up to which second, after and up to which block: the highest price of each pool, of those that trade_dear
-- has. Step by step from pool to pool, by that index.
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
