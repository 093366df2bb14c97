-- A mite's week in the practice league: what its sells that count came to. week_s: Monday 00:00 UTC, in seconds since
-- 1970. is_agent: as the mite is tagged; a week that is over keeps it. won: sells with a profit. last_s: of the last sell.
CREATE TABLE accounts.league_week (
    week_s          int     NOT NULL,
    mite_id         bigint  NOT NULL REFERENCES accounts.mite,
    is_agent        boolean NOT NULL,
    profit_wei      numeric NOT NULL,
    sells           int     NOT NULL CHECK (sells > 0),
    won             int     NOT NULL CHECK (won BETWEEN 0 AND sells),
    best_token      bytea   NOT NULL CHECK (octet_length(best_token) = 20),
    best_profit_wei numeric NOT NULL,
    last_s          int     NOT NULL,
    PRIMARY KEY (week_s, mite_id)
);

-- The boards, read in their order: of everybody, and of those with a tag or without. Three sells are an entry.
CREATE INDEX league_board ON accounts.league_week (week_s, profit_wei DESC, sells, last_s, mite_id)
    WHERE sells >= 3;
CREATE INDEX league_board_of ON accounts.league_week (week_s, is_agent, profit_wei DESC, sells, last_s, mite_id)
    WHERE sells >= 3;

-- How many entries a week has, and how many mites with too few sells for one: counting a hundred thousand rows takes
-- longer than all the rest of a board. Written with them, where a first or a third sell or a tag changes it.
CREATE TABLE accounts.league_count (
    week_s   int     NOT NULL,
    is_agent boolean NOT NULL,
    on_board int     NOT NULL CHECK (on_board >= 0),
    too_few  int     NOT NULL CHECK (too_few >= 0),
    PRIMARY KEY (week_s, is_agent)
);
