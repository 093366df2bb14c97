-- What was followed before was not kept for this: the next sync begins anew. It takes the blocks again, and no
-- check is lost. First of all: of what is empty an index is made at once. A sync of before must not go on in it: it
-- does not know of facts.cursor.rewinds, which has no default.
TRUNCATE facts.cursor, facts.block, facts.address, facts.pool, facts.launch, facts.launch_quote, facts.launch_step,
    facts.trade, facts.liquidity, facts.transfer, facts.price, facts.origin, facts.position, facts.position_base,
    facts.closing RESTART IDENTITY;
DELETE FROM facts.token;

-- What the launchpad kept of a trade on a curve, fee and tax, in the quote; NULL anywhere else.
ALTER TABLE facts.trade ADD COLUMN kept_raw numeric;

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

-- Tokens that a crowd bought, as domain/crowd.py tells one, found out by block_number: it stays so.
CREATE TABLE facts.fair_token (
    token_id     int PRIMARY KEY,
    block_number int NOT NULL
);

-- Who closed the most profit in a span of time up to block_number: 24h, 7d, 30d, all. Counted now and then, whole.
CREATE TABLE facts.winner (
    span         text    NOT NULL CHECK (span IN ('24h', '7d', '30d', 'all')),
    rank         int     NOT NULL,
    wallet_id    int     NOT NULL,
    profit_wei   numeric NOT NULL,
    spent_wei    numeric NOT NULL,
    closed       int     NOT NULL,
    won          int     NOT NULL,
    best_token_id int    NOT NULL,
    best_spent_wei numeric NOT NULL,
    best_got_wei numeric NOT NULL,
    best_s       int     NOT NULL,
    PRIMARY KEY (span, rank)
);
CREATE INDEX winner_by_wallet ON facts.winner (wallet_id);

-- Up to which block a span was counted: also where nobody won.
CREATE TABLE facts.winners_counted (
    span         text PRIMARY KEY,
    block_number int  NOT NULL,
    at_s         int  NOT NULL
);

-- Whether the check was deep, and as how many real holders it sold. What caught them is not undone by one that asked
-- nobody.
ALTER TABLE facts.evidence ADD COLUMN deep boolean NOT NULL DEFAULT false;
ALTER TABLE facts.evidence ADD COLUMN holders int NOT NULL DEFAULT 0;
CREATE INDEX evidence_deep_by_token ON facts.evidence (token, id DESC) WHERE deep;

-- Another number after every reorganisation, and for every chain that is begun: what was counted while it stayed is of
-- the chain that is there. Of a sequence that nothing begins anew.
CREATE SEQUENCE facts.rewinds;
ALTER TABLE facts.cursor ADD COLUMN rewinds bigint NOT NULL;

-- The newest of one deployer, and of one wallet, without reading all there are; and without a look at each, which
-- lie far apart.
DROP INDEX facts.launch_by_deployer, facts.closing_by_wallet;
CREATE INDEX launch_by_deployer ON facts.launch (deployer_id, block_number, log_index) INCLUDE (token_id, generation);
CREATE INDEX closing_by_wallet ON facts.closing (wallet_id, at_s)
    INCLUDE (token_id, spent_wei, got_wei, block_number, log_index);
CREATE INDEX launch_by_time ON facts.launch (at_s);
CREATE INDEX launch_step_by_time ON facts.launch_step (at_s);

-- By it some of a token's traders are taken, from any place on, however many there are.
DROP INDEX facts.position_by_token;
CREATE INDEX position_by_token ON facts.position (token_id, wallet_id);

-- The newest trades of a pool without reading all it had; the oldest pools of a token, however many there are.
DROP INDEX facts.trade_by_pool, facts.pool_by_token;
CREATE INDEX trade_by_pool ON facts.trade (pool_id, at_s);
CREATE INDEX pool_by_token ON facts.pool (token_id, id);

-- The symbol as it is looked for: cleaned, and without regard to capitals.
ALTER TABLE facts.token ADD COLUMN symbol_key text;
CREATE INDEX token_by_symbol ON facts.token (symbol_key);
-- Of what was launched the same again: who bears a symbol is told by who was launched last, and ten thousand may.
ALTER TABLE facts.launch ADD COLUMN symbol_key text;
CREATE INDEX launch_by_symbol ON facts.launch (symbol_key, block_number, log_index) INCLUDE (token_id);

-- Whoever sent the first eth that reached a wallet, in a plain transfer: one without calldata, of nobody's but its
-- sender's making. With a block and no funder the wallet had its first eth otherwise (a bridge, a contract's call), or
-- did something before anybody was seen to send it any: whoever sends it some later is not its funder.
COMMENT ON COLUMN facts.origin.funder_id IS 'NULL with a funded_number: it has none, for ever';
