-- What mites say of wallets and of tokens.

-- One row a mite and wallet. name: as the mite wrote it; name_key: as names are compared. When it is public
-- domain/marks.py says.
CREATE TABLE accounts.mark (
    mite_id  bigint      NOT NULL REFERENCES accounts.mite,
    wallet   bytea       NOT NULL CHECK (octet_length(wallet) = 20),
    name     text        CHECK (length(name) BETWEEN 1 AND 24),
    name_key text,
    mark     text        CHECK (mark IN ('good', 'bad', 'scam')),
    made_at  timestamptz NOT NULL,
    PRIMARY KEY (mite_id, wallet),
    CHECK ((name IS NULL) = (name_key IS NULL)),
    CHECK (name IS NOT NULL OR mark IS NOT NULL)
);
CREATE INDEX mark_by_wallet ON accounts.mark (wallet);
CREATE INDEX mark_by_name ON accounts.mark (name_key) WHERE name_key IS NOT NULL;

-- What a mite says will become of a token, and the control that was drawn with it: the same of a token by chance, by
-- nobody. kind, state: as domain/calls.py says. at_s, block_number, ends_s: by the chain's clock, where the index stood.
-- held_raw: what 0.1 eth bought then; slot_layout, slot_base: where the token keeps its balances, for it to be sold again.
-- pool, liquidity: where it was traded most, and the liquidity in it that was not the mite's; deployer_raw: what the
-- deployer held by his trades. seen_...: the first reading of two by which it runs. looked_at: by our clock; answered_s: the
-- chain's time when it could last be found out. settled_...: the proof.
CREATE TABLE accounts.flag (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mite_id        bigint      REFERENCES accounts.mite,
    control_of     bigint      UNIQUE REFERENCES accounts.flag,
    token          bytea       NOT NULL CHECK (octet_length(token) = 20),
    kind           text        NOT NULL CHECK (kind IN ('runs', 'drains', 'dead')),
    state          text        NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'seen', 'proved', 'failed', 'void')),
    made_at        timestamptz NOT NULL,
    at_s           int         NOT NULL,
    block_number   int         NOT NULL,
    ends_s         int         NOT NULL,
    held_raw       numeric     CHECK (held_raw > 0),
    slot_layout    text,
    slot_base      numeric,
    pool           bytea,
    liquidity      numeric     CHECK (liquidity > 0),
    deployer_raw   numeric     CHECK (deployer_raw > 0),
    seen_s         int,
    seen_block     int,
    seen_wei       numeric,
    looked_at      timestamptz,
    answered_s     int,
    settled_at     timestamptz,
    settled_s      int,
    settled_block  int,
    settled_tx     bytea       CHECK (octet_length(settled_tx) = 32),
    settled_by     text        CHECK (settled_by IN ('price', 'liquidity', 'deployer')),
    settled_wei    numeric,
    CHECK ((mite_id IS NULL) = (control_of IS NOT NULL)),
    CHECK ((slot_layout IS NULL) = (slot_base IS NULL)),
    CHECK ((pool IS NULL) = (liquidity IS NULL)),
    CHECK ((held_raw IS NOT NULL AND slot_layout IS NOT NULL) OR kind = 'drains'),
    CHECK (liquidity IS NOT NULL OR deployer_raw IS NOT NULL OR kind <> 'drains'),
    CHECK ((state = 'seen') = (seen_s IS NOT NULL AND settled_at IS NULL)),
    CHECK ((state IN ('open', 'seen')) = (settled_at IS NULL)),
    CHECK ((state = 'proved') = (settled_by IS NOT NULL))
);
CREATE INDEX flag_by_mite ON accounts.flag (mite_id, made_at) WHERE mite_id IS NOT NULL;
CREATE UNIQUE INDEX flag_once ON accounts.flag (mite_id, token, kind) WHERE state IN ('open', 'seen') AND mite_id IS NOT NULL;
CREATE INDEX flag_waiting ON accounts.flag (looked_at NULLS FIRST, id) WHERE state IN ('open', 'seen');
CREATE INDEX flag_proved ON accounts.flag (settled_at DESC, id DESC) WHERE state = 'proved' AND mite_id IS NOT NULL;
CREATE INDEX flag_by_token ON accounts.flag (token, state) WHERE mite_id IS NOT NULL;
CREATE INDEX flag_controls ON accounts.flag (kind, state) WHERE mite_id IS NULL;
