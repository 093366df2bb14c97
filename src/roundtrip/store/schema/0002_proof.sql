-- What a check began with and what it asked the node, to be asked again: kept for about a day. The evidence stays.
-- trips: one piece of compressed JSON for each.
CREATE TABLE facts.proof (
    evidence_id bigint      PRIMARY KEY REFERENCES facts.evidence (id) ON DELETE CASCADE,
    made_at     timestamptz NOT NULL,
    began       bytea       NOT NULL,
    trips       bytea[]     NOT NULL
);

-- They are compressed already.
ALTER TABLE facts.proof ALTER COLUMN trips SET STORAGE EXTERNAL;
