-- What a mite's wallet holds is guarded from its own block on: guarded_from is how far the chain was known when it was made.
-- What is read of older blocks later on is no news.
ALTER TABLE accounts.mite ADD COLUMN guarded_from int NOT NULL DEFAULT -1;

-- source_id of the bag guard is the mite's own number.
ALTER TABLE accounts.alert_minute DROP CONSTRAINT alert_minute_kind_check,
    ADD CONSTRAINT alert_minute_kind_check CHECK (kind IN ('rule', 'follow', 'bag_guard'));

-- What holders of a token were last told of its verdict, or what it was when it was first looked at. seen_id: the
-- evidence that was read up to. next_level, next_at: what one check says otherwise, and when it was made; a second one has to
-- agree. told_at: when holders were last told of a change.
CREATE TABLE accounts.bag_verdict (
    token          bytea       PRIMARY KEY CHECK (octet_length(token) = 20),
    level          text        NOT NULL CHECK (level IN ('ok', 'warn', 'danger')),
    code           text        NOT NULL,
    policy_version text        NOT NULL,
    seen_id        bigint      NOT NULL,
    next_level     text        CHECK (next_level IN ('ok', 'warn', 'danger')),
    next_at        timestamptz,
    told_at        timestamptz,
    CHECK ((next_level IS NULL) = (next_at IS NULL))
);

-- What a wallet was given.
CREATE INDEX transfer_by_receiver ON facts.transfer (to_id);
