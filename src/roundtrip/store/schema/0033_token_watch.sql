-- Tokens of which an account is alerted when the verdict changes, whether its wallet holds them or not.
CREATE TABLE accounts.token_watch (
    account_id bigint      NOT NULL REFERENCES accounts.account,
    token      bytea       NOT NULL CHECK (octet_length(token) = 20),
    made_at    timestamptz NOT NULL,
    PRIMARY KEY (account_id, token)
);
CREATE INDEX token_watch_by_token ON accounts.token_watch (token);
