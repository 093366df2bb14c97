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
