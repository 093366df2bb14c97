-- What a check asked the node, to be asked again: compressed JSON, for about a day. The evidence stays.
CREATE TABLE facts.proof (
    evidence_id bigint      PRIMARY KEY REFERENCES facts.evidence (id) ON DELETE CASCADE,
    made_at     timestamptz NOT NULL,
    document    bytea       NOT NULL
);

-- It is compressed already.
ALTER TABLE facts.proof ALTER COLUMN document SET STORAGE EXTERNAL;
