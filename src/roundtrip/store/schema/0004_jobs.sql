-- Work to be done later, written in the transaction of whoever wants it done.
CREATE SCHEMA jobs;

-- key: what the job is about; of one kind and key at most one waits. claimed_until: whoever took it has so long;
-- then somebody else may. tries: how often it was taken.
CREATE TABLE jobs.job (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          text        NOT NULL,
    key           text        NOT NULL,
    payload       jsonb       NOT NULL DEFAULT '{}',
    run_at        timestamptz NOT NULL,
    claimed_until timestamptz,
    claim         uuid,
    tries         int         NOT NULL DEFAULT 0,
    last_error    text,
    failed        boolean     NOT NULL DEFAULT false,
    UNIQUE (kind, key)
);
CREATE INDEX job_due ON jobs.job (run_at) WHERE NOT failed;
