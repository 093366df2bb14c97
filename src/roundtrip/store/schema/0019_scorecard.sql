-- What became of verdicts, by what was really traded later (domain/scorecard.py): a reading of facts, kept because trades
-- and receipts go. evidence_id: of the verdict; from_s, from_number: its block. hour: from_s / 3600: of a token, an hour and
-- a code the first verdict alone is scored. by_...: of the trade, or of the later check, that decided it.
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
    reported    boolean     NOT NULL DEFAULT false,
    scored_at   timestamptz NOT NULL,
    UNIQUE (token, hour, code)
);
CREATE INDEX score_wrong ON facts.score (from_s DESC, evidence_id DESC) WHERE outcome = 'wrong';

-- How many of each there are: written with them.
CREATE TABLE facts.score_count (
    code    text   NOT NULL,
    outcome text   NOT NULL,
    scored  bigint NOT NULL CHECK (scored >= 0),
    PRIMARY KEY (code, outcome)
);

-- Up to which evidence verdicts were scored.
CREATE TABLE facts.score_cursor (
    only_one    boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    evidence_id bigint  NOT NULL
);

-- What people say of verdicts. evidence_id: the verdict that it speaks of; null: none was found. state: proved changed a
-- score; open changed nothing, and why_open says why.
CREATE TABLE accounts.verdict_report (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mite_id     bigint      NOT NULL REFERENCES accounts.mite,
    token       bytea       NOT NULL CHECK (octet_length(token) = 20),
    tx_hash     bytea       NOT NULL CHECK (octet_length(tx_hash) = 32),
    note        text        NOT NULL CHECK (length(note) <= 280),
    state       text        NOT NULL CHECK (state IN ('proved', 'open')),
    why_open    text,
    evidence_id bigint,
    made_at     timestamptz NOT NULL,
    UNIQUE (mite_id, token, tx_hash),
    CHECK ((state = 'open') = (why_open IS NOT NULL)),
    CHECK (state = 'open' OR evidence_id IS NOT NULL)
);
CREATE INDEX verdict_report_by_mite ON accounts.verdict_report (mite_id, made_at);
