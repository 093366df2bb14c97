-- facts: what can be had again from the chain, or was proven of it. Rebuilds may touch only this schema.
CREATE SCHEMA facts;

-- One row a check: the canonical document it was judged by. verdict_* are readings of it, for searching.
CREATE TABLE facts.evidence (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    checked_at     timestamptz NOT NULL,
    token          bytea       NOT NULL CHECK (length(token) = 20),
    block_number   bigint      NOT NULL,
    policy_version text        NOT NULL,
    verdict_code   text        NOT NULL,
    verdict_level  text        NOT NULL,
    document       bytea       NOT NULL
);

CREATE INDEX evidence_by_token ON facts.evidence (token, id DESC);
