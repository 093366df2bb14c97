-- Work to be done later, written in the transaction of whoever wants it done.
CREATE SCHEMA jobs;

-- key: what the job is about; of one kind and key there is at most one row. claim, claimed_until: whoever took it,
-- and how long it is theirs; then somebody else may take it. tries: how often it was taken. again_at: wished for again
-- while somebody had it, to be run then. failed_at: given up then, and kept for people.
CREATE TABLE jobs.job (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          text        NOT NULL,
    key           text        NOT NULL,
    payload       jsonb       NOT NULL DEFAULT '{}',
    run_at        timestamptz NOT NULL,
    claimed_until timestamptz,
    claim         uuid,
    again_at      timestamptz,
    tries         int         NOT NULL DEFAULT 0,
    last_error    text,
    failed_at     timestamptz,
    UNIQUE (kind, key),
    CHECK ((claim IS NULL) = (claimed_until IS NULL)),
    CHECK (claim IS NOT NULL OR again_at IS NULL),
    CHECK (claim IS NULL OR failed_at IS NULL)
);
CREATE INDEX job_due ON jobs.job (kind, run_at, id) WHERE failed_at IS NULL;
CREATE INDEX job_failed ON jobs.job (failed_at) WHERE failed_at IS NOT NULL;
