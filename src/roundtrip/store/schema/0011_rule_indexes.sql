-- By these a rule is tried on the last days without reading all that happened in them.

-- Large trades, by what they were worth and by how many tokens moved. The bounds stand in store/happening_trades.py,
-- too: below them so many trades are large enough that the newest ones tell. What has no eth_wei and is no eth is among
-- them by its own units, and is left out when it is looked at.
CREATE INDEX trade_large_eth ON facts.trade (coalesce(eth_wei, quote_raw))
    WHERE coalesce(eth_wei, quote_raw) > 100000000000000000;
CREATE INDEX trade_large_usd ON facts.trade (micro_usd) WHERE micro_usd > 300000000;
CREATE INDEX trade_large_part ON facts.trade (token_raw) WHERE token_raw > 1000000000000000000000000;

-- What a wallet gave away, and what was a large part of any launch's supply.
CREATE INDEX transfer_by_sender ON facts.transfer (from_id);
CREATE INDEX transfer_large ON facts.transfer (amount_raw) WHERE amount_raw > 1000000000000000000000000;

-- What happened to liquidity by whom; tokens of which a trade is a large part with few base units.
CREATE INDEX liquidity_by_sender ON facts.liquidity (sender_id);
CREATE INDEX token_small ON facts.token (token) WHERE supply_raw > 0 AND supply_raw < 1000000000000000000000000000;

-- The dearest trades of each pool, in wei a base unit: by them moves that were worth much are found. Above the bound a
-- launch's whole supply is worth more than 100 eth; below it moves of so much are large parts of a supply.
CREATE INDEX trade_dear ON facts.trade (pool_id, (coalesce(eth_wei, quote_raw) / nullif(token_raw, 0)) DESC)
    WHERE coalesce(eth_wei, quote_raw) * 10000000 > token_raw AND token_raw > 0;
