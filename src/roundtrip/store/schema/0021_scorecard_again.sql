-- What of the scorecard is looked at again, and of how many tokens its counts are.

-- A verdict that a report proved wrong has a row of its own, also where its hour's first verdict has one: that one is judged
-- by what lies in its own time. So of a token, an hour and a code there may be more than one.
ALTER TABLE facts.score DROP CONSTRAINT score_token_hour_code_key;
CREATE INDEX score_of_hour ON facts.score (token, hour, code, evidence_id);

-- Verdicts of which the node did not give a receipt. again_at: when they are tried again; tries: how often they were.
CREATE TABLE facts.score_wait (
    evidence_id bigint      PRIMARY KEY,
    token       bytea       NOT NULL CHECK (length(token) = 20),
    code        text        NOT NULL,
    hour        int         NOT NULL,
    tries       int         NOT NULL,
    again_at    timestamptz NOT NULL
);
CREATE INDEX score_wait_again ON facts.score_wait (again_at);
CREATE INDEX score_wait_of_hour ON facts.score_wait (token, hour, code);

-- How many verdicts of each token are in a count, and of how many tokens a count is: written with them.
CREATE TABLE facts.score_token (
    token   bytea  NOT NULL CHECK (length(token) = 20),
    code    text   NOT NULL,
    outcome text   NOT NULL,
    scored  bigint NOT NULL CHECK (scored >= 0),
    PRIMARY KEY (token, code, outcome)
);
INSERT INTO facts.score_token (token, code, outcome, scored)
    SELECT token, code, outcome, count(*) FROM facts.score GROUP BY 1, 2, 3;
ALTER TABLE facts.score_count ADD COLUMN tokens bigint NOT NULL DEFAULT 0 CHECK (tokens >= 0);
UPDATE facts.score_count AS had SET tokens = (
    SELECT count(*) FROM facts.score_token AS one WHERE (one.code, one.outcome) = (had.code, had.outcome)
);

-- The checks of a token with a code, in the order of the chain: those before a block, and those after it.
CREATE INDEX evidence_by_code ON facts.evidence (token, verdict_code, block_number, id);

-- Reports that came too early. again_at: when they are weighed again; null: not again. tries: how often they were.
ALTER TABLE accounts.verdict_report ADD COLUMN tries int NOT NULL DEFAULT 0, ADD COLUMN again_at timestamptz,
    ADD CHECK (state = 'open' OR again_at IS NULL);
CREATE INDEX verdict_report_again ON accounts.verdict_report (again_at) WHERE again_at IS NOT NULL;
CREATE INDEX verdict_report_open ON accounts.verdict_report (id) WHERE state = 'open';
UPDATE accounts.verdict_report SET again_at = made_at WHERE state = 'open' AND starts_with(why_open, 'It is too new');
