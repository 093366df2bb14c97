-- What mites watch, and what they were told of it.

-- Every reorganisation, written with it: facts above block to_number, which is of to_s, were taken away. By it whoever
-- read them steps back.
CREATE TABLE facts.rewound (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    to_number int NOT NULL,
    to_s      int NOT NULL
);

-- Rules and follows change in the order of these numbers: whoever changes any holds one advisory lock from before it
-- takes a number to the end of its transaction, so that no lower number comes to light after a higher one.
CREATE SEQUENCE accounts.watch_changes;

-- from_number: facts of later blocks count. rewound: the last reorganisation before it was made; a later one that goes
-- back further takes from_number with it. ended_at: no longer followed; kept until every reader has seen it.
CREATE TABLE accounts.follow (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mite_id     bigint      NOT NULL REFERENCES accounts.mite,
    wallet      bytea       NOT NULL CHECK (octet_length(wallet) = 20),
    name        text        NOT NULL,
    from_number int         NOT NULL,
    rewound     bigint      NOT NULL,
    made_at     timestamptz NOT NULL,
    ended_at    timestamptz,
    change      bigint      NOT NULL UNIQUE
);
CREATE UNIQUE INDEX follow_live ON accounts.follow (mite_id, wallet) WHERE ended_at IS NULL;

-- said: the canonical text. who_address: the wallet, or the token whose deployer or creator is meant; wallet: who that is.
-- over_raw: wei, millionths of a dollar, or millionths of the whole, as unit says. hits: alerts it raised, those beyond
-- a minute's limit counted, retracted ones not.
CREATE TABLE accounts.rule (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mite_id     bigint      NOT NULL REFERENCES accounts.mite,
    said        text        NOT NULL,
    who         text        NOT NULL CHECK (who IN ('follow', 'any', 'wallet', 'deployer', 'creator')),
    who_address bytea       CHECK (octet_length(who_address) = 20),
    wallet      bytea       CHECK (octet_length(wallet) = 20),
    verb        text        NOT NULL
        CHECK (verb IN ('buying', 'selling', 'launching', 'graduating', 'moving', 'draining')),
    unit        text        CHECK (unit IN ('eth', 'usd', '%')),
    over_raw    numeric     CHECK (over_raw >= 0),
    token       bytea       CHECK (octet_length(token) = 20),
    from_number int         NOT NULL,
    rewound     bigint      NOT NULL,
    made_at     timestamptz NOT NULL,
    hits        bigint      NOT NULL DEFAULT 0 CHECK (hits >= 0),
    ended_at    timestamptz,
    change      bigint      NOT NULL UNIQUE,
    CHECK ((unit IS NULL) = (over_raw IS NULL)),
    CHECK ((who IN ('follow', 'any')) = (wallet IS NULL))
);
CREATE UNIQUE INDEX rule_live ON accounts.rule (mite_id, said) WHERE ended_at IS NULL;

-- How far facts were read for alerts, and the last reorganisation that was undone.
CREATE TABLE accounts.alert_cursor (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    number   int     NOT NULL,
    at_s     int     NOT NULL,
    rewound  bigint  NOT NULL
);

-- One row that a mite is told. source_id: of the rule, the follow, or the channel (service, test). more: not a fact, but
-- how many more there were in that minute. retracted_at: a reorganisation took the fact away.
CREATE TABLE accounts.alert (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mite_id      bigint      NOT NULL REFERENCES accounts.mite,
    kind         text        NOT NULL CHECK (kind IN ('rule', 'follow', 'bag_guard', 'service', 'test')),
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
CREATE INDEX alert_inbox ON accounts.alert (mite_id, id DESC);
CREATE INDEX alert_by_time ON accounts.alert (made_at);
CREATE INDEX alert_by_block ON accounts.alert (block_number) WHERE retracted_at IS NULL;
-- The same fact is told of once, whoever tries it how often.
CREATE UNIQUE INDEX alert_once ON accounts.alert (mite_id, kind, source_id, block_number, log_index, verb)
    WHERE retracted_at IS NULL AND more = 0 AND block_number IS NOT NULL;
CREATE INDEX alert_more ON accounts.alert (at_s) WHERE retracted_at IS NULL AND more > 0;

-- What one rule or follow raised in one minute of the chain's clock (at_s / 60). beyond: those that became no rows;
-- told: how many of them "and n more" spoke of already.
CREATE TABLE accounts.alert_minute (
    kind      text   NOT NULL CHECK (kind IN ('rule', 'follow')),
    source_id bigint NOT NULL,
    minute    int    NOT NULL,
    mite_id   bigint NOT NULL,
    raised    int    NOT NULL,
    beyond    int    NOT NULL DEFAULT 0,
    told      int    NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, source_id, minute)
);
CREATE INDEX alert_minute_beyond ON accounts.alert_minute (minute) WHERE beyond > told;

-- Where a mite is told. kind: webhook, telegram, discord. target: what is sent to, encrypted but for Telegram: whoever knows
-- it could write there; shown: what its owner is shown of it. secret: encrypted; of webhooks only. state: as domain/channels.py says.
-- failing_since: of the failures without a success between them.
CREATE TABLE accounts.channel (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mite_id       bigint      NOT NULL REFERENCES accounts.mite,
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
    CHECK ((secret IS NOT NULL) = (kind = 'webhook'))
);
CREATE INDEX channel_by_mite ON accounts.channel (mite_id) WHERE state <> 'removed';

-- One message to one channel: its rows are of one kind. webhook_id: the same over all tries. retracted: it takes back what
-- its rows said. state: waiting, delivered, failed (tried to the end), dropped (its channel is gone).
CREATE TABLE accounts.delivery (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel_id   bigint      NOT NULL REFERENCES accounts.channel,
    webhook_id   text        NOT NULL UNIQUE,
    kind         text        NOT NULL,
    alert_ids    bigint[]    NOT NULL,
    retracted    boolean     NOT NULL DEFAULT false,
    state        text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed', 'dropped')),
    tries        int         NOT NULL DEFAULT 0,
    next_at      timestamptz NOT NULL,
    made_at      timestamptz NOT NULL,
    ended_at     timestamptz
);
CREATE INDEX delivery_waiting ON accounts.delivery (channel_id, id) WHERE state = 'waiting';
CREATE INDEX delivery_by_time ON accounts.delivery (made_at);

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
