-- rests_until: of a channel that fails; before that nothing is sent there.
ALTER TABLE accounts.channel ADD COLUMN rests_until timestamptz;

-- How many chats were ever linked: with the next one a link is of no use any more.
ALTER TABLE accounts.mite ADD COLUMN chats_linked int NOT NULL DEFAULT 0;

-- By which a mite's webhook is found again, whose url is sealed: an HMAC.
ALTER TABLE accounts.channel ADD COLUMN target_hash bytea CHECK (octet_length(target_hash) = 32);

-- Messages up to this number that wait are not sent: they are dropped, some a run. 0: none are left of them.
ALTER TABLE accounts.channel ADD COLUMN dropped_to bigint NOT NULL DEFAULT 0;
CREATE INDEX delivery_tried ON accounts.delivery (channel_id) WHERE state = 'waiting' AND tries > 0;

-- Every target that was tried to be set, for as long as it counts against the limits of the mite and the target's host.
-- failed: until the test has arrived; of a host those alone count.
CREATE TABLE accounts.channel_attempt (
    mite_id bigint      NOT NULL REFERENCES accounts.mite,
    host    text        NOT NULL,
    made_at timestamptz NOT NULL,
    failed  boolean     NOT NULL DEFAULT true
);
CREATE INDEX channel_attempt_mite ON accounts.channel_attempt (mite_id, made_at);
CREATE INDEX channel_attempt_host ON accounts.channel_attempt (host, made_at) WHERE failed;
CREATE INDEX channel_attempt_time ON accounts.channel_attempt (made_at);
