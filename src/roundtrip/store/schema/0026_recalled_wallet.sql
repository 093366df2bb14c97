-- Wallets of checks that met a refusal or a loss, by what they were drawn from: for a day each later check of the token tries
-- them again. at: the venue. number: -1 for the main wallet.
CREATE TABLE facts.recalled_wallet (
    token   bytea       NOT NULL,
    at      text        NOT NULL,
    seed    bytea       NOT NULL,
    number  smallint    NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (token, at, seed, number)
);

CREATE INDEX recalled_wallet_seen_at ON facts.recalled_wallet (seen_at);
