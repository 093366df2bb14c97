-- By which an owner reads the newest of a channel.
CREATE INDEX delivery_of_channel ON accounts.delivery (channel_id, id DESC);

-- Every message that its owner had sent again, for as long as it counts against the limit of an hour.
CREATE TABLE accounts.resend (
    mite_id bigint      NOT NULL REFERENCES accounts.mite,
    made_at timestamptz NOT NULL
);
CREATE INDEX resend_by_mite ON accounts.resend (mite_id, made_at);
CREATE INDEX resend_by_time ON accounts.resend (made_at);
