-- Reads of one pool, wallet or token, for statements that make them once for each row of something else. PostgreSQL puts
-- the body in place of the call: its plans are those of a subquery. Where tables are placed on several nodes
-- (store/server/distribute.py) the call asks the node of that key. Parameters have numbers instead of names, which could
-- be taken for columns.

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
-- over, least wei, whether the quote is eth: the last trade before each moment that tells a price. Bounded, because anybody can make any
-- number of trades that tell none. By the second only, as the index has them: to sort the trades of a second would read
-- dozens for each price.
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
-- from and up to which second, after and up to which block: the highest price of each pool, of those that trade_dear has.
-- Step by step from pool to pool, by that index.
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
