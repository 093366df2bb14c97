-- number: the NFT of a position manager, or the salt of another owner in a v4 pool; 0: none, and every change before this
-- migration. active_raw: the pool's active liquidity just before the change; 0 also where the change lay out of range;
-- NULL: not known.
ALTER TABLE facts.liquidity ADD COLUMN number numeric NOT NULL DEFAULT 0, ADD COLUMN active_raw numeric;

-- The block from which on positions, transfers of their NFTs and states of pools are folded: a pool that was opened
-- earlier may have more. NULL: no block was folded yet.
ALTER TABLE facts.cursor ADD COLUMN positions_from int;

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

-- The tick and the active liquidity of a pool of money at the end of a block that changed them; NULL: not known from there
-- on. Older rows than the blocks that are kept to find a fork are deleted where a newer one is as old.
CREATE TABLE facts.pool_state (
    pool_id      int NOT NULL,
    block_number int NOT NULL,
    tick         int,
    liquidity    numeric,
    PRIMARY KEY (pool_id, block_number)
);
CREATE INDEX pool_state_by_block ON facts.pool_state (block_number);
